site "t" {}
network "boot" {
  cidr = "10.0.0.0/20"
  dhcp { mode = "authoritative" }
}
bmc "b" {
  protocol = "ipmi"
  network  = network.boot
  username = "admin"
  password = secret("env:PW")
}
hardware "h" {
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  hca "s" {
    fabric    = fabric.storage
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:00:04.0" }]
  }
}
image "debian" "os" { release = "bookworm" }
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
}
rack "r" {
  units = 40
  switch "leaf" {
    ports  = 32
    fabric = fabric.storage
    tier   = "leaf"
  }
  node "n" {
    for_each = { n1 = 1, n2 = 3 }
    name     = each.key
    role     = role.w
    unit     = each.value
    bmc { address = "10.0.8.${each.value}" }
  }
}
