# What every case has beside its own files.
site "s" {}
network "boot" {
  cidr = "10.1.0.0/24"
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
disk_layout "os" {
  on = "os"
  root {}
}
image "ubuntu" "noble" {
  release = "24.04"
}
hardware "h" {
  disk "os" {}
}
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.noble
  disks    = disk_layout.os
  handover = handover.prod
}
