# What every case has beside its own files: two kinds of chassis, and roles.
site "s" {}
network "boot" {
  cidr = "10.1.0.0/16"
}
network "oob" {
  cidr = "10.2.0.0/16"
}
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
image "debian" "os" {
  release = "bookworm"
}
disk_layout "os" {
  on = "os"
  root {}
}
hardware "dgx" { # DGX H100: six supplies, four needed
  rack_units = 8
  weight     = "130.5kg"
  power {
    typical  = "8kW"
    max      = "10.2kW"
    supplies = 6
    required = 4
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
}
hardware "small" { # two supplies, one needed
  weight = "20kg"
  power {
    max      = "1kW"
    supplies = 2
    required = 1
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
}
role "dgx" {
  hardware = hardware.dgx
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
role "small" {
  hardware = hardware.small
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
