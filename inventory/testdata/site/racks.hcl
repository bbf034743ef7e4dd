rack "a" {
  count       = var.racks
  number      = count.index + 1
  row         = local.hall
  units       = 48
  max_power   = "44kW"
  max_weight  = "1.2t"
  orientation = "rear"

  pdu "p" {
    for_each = toset(["left", "right"])
    name     = each.key
    feed     = each.key == "left" ? "A" : "B"
    phases   = 3
    voltage  = "415V"
    current  = "63A"
    outlets  = 36
  }

  switch "leaf" {
    unit    = 48
    ports   = 64
    address = cidrhost(network.oob.cidr, 41 + rack.count.index)
    power   = "1.5kW"
    feeds   = { psu1 = "left/36", psu2 = "right/36" }
    fabric  = fabric.scale-out
  }

  node "amd" {
    for_each = { for d in local.delivered : d.unit => d if d.rack == rack.name }
    name     = "${rack.name}-u${each.key}"
    role     = role.amd
    unit     = each.key
    serial   = each.value.serial
    boot_mac = each.value.mac
    feeds    = ["left", "right"]
  }
}

rack "tray" {
  number = 10
  units  = 44

  shelf "power" {
    unit       = 40
    height     = 1
    count      = 6
    capacity   = "5.5kW"
    redundancy = "n+1"
  }

  switch "nv" {
    kind = "nvlink"
    unit = 20
  }

  node "t" {
    count    = 2
    role     = role.nvl
    hardware = hardware.tray
    unit     = 1 + count.index
    domain   = "tray"
    bmc {
      cipher_suite = 3
      username     = "admin"
    }
  }
}

cable {
  from   = "a-0-u1/rail/0"
  to     = "a-0/leaf/1"
  type   = "AOC"
  length = "10m"
}

override "a-1-u1" {
  reason       = "Its scratch disks are on loan."
  expires      = "2031-12-31"
  protect      = true
  address      = "10.1.200.1"
  disks        = disk_layout.plain
  install_disk = "S6CKNE0X100132"
  allow        = ["power.feed-loss"]
  bmc {
    address = "10.0.200.1"
  }
}
