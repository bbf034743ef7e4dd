# Written by `ironrail import netbox`. Changes by hand are lost with the next import.

rack "r01" {
  number = 1
  units  = 48
  switch "leaf-1" {
    unit    = 40
    model   = "QM9700"
    fabric  = fabric.compute
    address = "10.10.0.201"
  }
  node "gpu01" {
    role     = role.worker
    unit     = 1
    serial   = "SN1"
    boot_mac = "ac:1f:6b:00:00:01"
    address  = "10.20.0.11"
    bmc {
      address = "10.10.0.11"
    }
  }
  node "gpu02" {
    role     = role.worker
    unit     = 9
    serial   = "SN2"
    boot_mac = "ac:1f:6b:00:00:02"
    address  = "10.20.0.12"
    bmc {
      address = "10.10.0.12"
    }
  }
}

rack "r02" {
  number = 2
  units  = 42
  switch "leaf-2" {
    unit   = 40
    model  = "QM9700"
    fabric = fabric.compute
  }
  node "gpu03" {
    role   = role.worker
    unit   = 1
    serial = "SN3"
  }
}

cable {
  from   = "gpu01/rail/0"
  to     = "r01/leaf-1/1"
  type   = "DAC"
  length = "2m"
}

# Over "pp-1 1", "pp-1 rear", "pp-2 rear", "pp-2 1".
cable {
  from   = "gpu01/rail/1"
  to     = "r01/leaf-1/5"
  length = "35m"
}

cable {
  from   = "gpu02/rail/0"
  to     = "r01/leaf-1/2"
  type   = "AOC"
  length = "4.999m"
}

cable {
  from = "gpu03/rail/0"
  to   = "r02/leaf-2/1"
}

cable {
  from   = "gpu03/rail/1"
  to     = "r02/leaf-2/4/1"
  type   = "DAC"
  length = "2m"
}

cable {
  from   = "gpu03/rail/2"
  to     = "r02/leaf-2/4/2"
  type   = "DAC"
  length = "2m"
}
