site "t" {
  geometry {
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "0.5m"
  }
  prices {
    currency = "EUR"
    kwh      = 0.18
    part "gpu" { each = 300000 }
    part "DAC 400Gbps" { each = 110 }
    part "DAC 400Gbps 3m" { each = 120 }
    part "QM9700" { each = 24000 }
  }
}
network "boot" { cidr = "10.20.0.0/16" }
network "oob" { cidr = "10.10.0.0/16" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}
fabric "infiniband" "compute" {
  rails    = 2
  link     = "400Gbps"
  topology = "explicit"
  switch {
    model = "QM9700"
    ports = 64
  }
}
hardware "gpu" {
  rack_units = 8
  power { max = "8kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    speed   = "1Gbps"
    boot    = true
  }
  hca "rail" {
    fabric = fabric.compute
    speed  = "400Gbps"
    ports  = [for i in range(2) : { rail = i, pci = "0000:1${i}:00.0" }]
  }
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
role "worker" {
  hardware = hardware.gpu
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
rack "r" {
  for_each = { r01 = 1, r02 = 2, r09 = 9 }
  name     = each.key
  number   = each.value
  position = each.value
  row      = "A"
  units    = 48
  node "n" {
    for_each = { u01 = 1, u21 = 21, u33 = 33 }
    name     = "${rack.name}-${each.key}"
    role     = role.worker
    unit     = each.value
  }
  switch "leaf" {
    unit   = 44
    ports  = 64
    fabric = fabric.compute
  }
  switch "mgmt" {
    unit  = 46
    ports = 48
  }
}
