// SPDX-License-Identifier: Apache-2.0

package artifacts

// site has an image that is built here, and two nodes with it and a driver stack.
const site = `
site "t" {}
network "boot" {
  cidr = "192.0.2.0/24"
  dhcp { mode = "authoritative" }
}
bmc "b" {
  protocol = "ipmi"
  network  = network.boot
  username = "admin"
  password = secret("env:PW")
}
hardware "h" {
  boot = "bios"
  disk "os" { type = "virtio" }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe"
    ports         = [{ rail = 0, pci = "0000:00:04.0" }]
  }
}
image "debian" "os" {
  release  = "bookworm"
  packages = [PACKAGES]
}
disk_layout "os" {
  on = "os"
  root { size = "3GiB" }
}
driver "inbox" "rdma" { packages = ["rdma-core"] }
fabric "roce" "rail" {
  rails      = 1
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "198.51.100.0/24"
  mtu        = 1500
}
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
  drivers  = [driver.rdma]
}
rack "r" {
  units = 10
  node "n" {
    for_each = { n1 = 1, n2 = 3 }
    name     = each.key
    role     = role.w
    unit     = each.value
    boot_mac = "02:00:00:00:00:0${each.value}"
    bmc { address = "192.0.2.10${each.value}" }
  }
}
`

const one = "1111111111111111111111111111111111111111111111111111111111111111"
