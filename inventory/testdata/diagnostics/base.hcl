# What every case has beside its own files, unless it brings its own base.hcl.
site "s" {}
network "boot" {
  cidr = "10.1.0.0/24"
  dhcp {
    pool = "10.1.0.200-10.1.0.250"
  }
}
network "oob" {
  cidr = "10.0.0.0/24"
}
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
hardware "h" {
  rack_units = 2
  power {
    max      = "1kW"
    supplies = 2
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
}
image "debian" "os" {
  release = "bookworm"
}
disk_layout "os" {
  on = "os"
  root {}
}
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
