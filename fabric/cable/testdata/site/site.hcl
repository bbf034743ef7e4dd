site "golden" {
  geometry {
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "0.5m"
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
  rails    = 4
  link     = "400Gbps"
  topology = "explicit"
  switch {
    model = "QM9700"
    ports = 64
  }
}
fabric "roce" "planes" {
  rails  = 1
  link   = "800Gbps"
  planes = 2
  switch {
    ports = 64
    speed = "800Gbps"
    split = 2
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
    ports  = [for i in range(4) : { rail = i, pci = "0000:1${i}:00.0", panel = "OSFP ${floor(i / 2) + 1}/${i % 2 + 1}" }]
  }
  hca "north" {
    fabric = fabric.planes
    speed  = "800Gbps"
    ports  = [{ rail = 0, pci = "0000:2a:00.0", panel = "=cmd()" }]
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
  for_each = { r01 = "A", r02 = "A", r03 = "B" }
  name     = each.key
  number   = tonumber(substr(each.key, 1, 2))
  row      = each.value
  units    = 48
  node "n" {
    for_each = { u01 = 1, u33 = 33 }
    name     = "${rack.name}-${each.key}"
    role     = role.worker
    unit     = each.value
  }
  switch "leaf" {
    unit   = 44
    ports  = 64
    tier   = "leaf"
    fabric = fabric.compute
  }
  switch "mgmt" {
    unit  = 46
    ports = 48
  }
}
rack "s" {
  number      = 9
  row         = "B"
  position    = 20
  orientation = "rear"
  units       = 48
  switch "spine" {
    unit   = 40
    ports  = 64
    tier   = "spine"
    fabric = fabric.compute
  }
  switch "plane" {
    for_each = { p0 = 20, p1 = 22 }
    name     = each.key
    unit     = each.value
    height   = 2
    fabric   = fabric.planes
  }
}
locals {
  nodes = { "r01-u01" = 0, "r01-u33" = 1, "r02-u01" = 2, "r02-u33" = 3, "r03-u01" = 4, "r03-u33" = 5 }
}
cable {
  for_each = { for p in setproduct(keys(local.nodes), range(4)) : "${p[0]}/rail/${p[1]}" => 4 * local.nodes[p[0]] + p[1] + 1 }
  from     = each.key
  to       = "r01/leaf/${each.value}"
}
cable {
  for_each = local.nodes
  from     = "${each.key}/mgmt/0"
  to       = "${substr(each.key, 0, 3)}/mgmt/${each.value + 1}"
}
cable {
  count = 4
  from  = "r01/leaf/${count.index + 33}"
  to    = "s/spine/${count.index + 1}"
}
cable {
  count  = 2
  from   = "r02/leaf/${count.index + 1}"
  to     = "r03/leaf/${count.index + 1}"
  type   = "fibre"
  length = "15m"
}
