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
host "held" {
  hold_kernel = true
}
image "ubuntu" "noble" {
  release = "24.04"
}
fabric "infiniband" "compute" {
  topology  = "explicit"
  rails     = 2
  unit_size = 2
}
fabric "roce" "plain" {
  topology = "explicit"
}
hardware "h100" {
  disk "os" {}
  gpu {
    vendor       = "nvidia"
    model        = "H100 SXM5 80GB"
    count        = 8
    interconnect = "nvswitch"
  }
  hca "rail" {
    fabric = fabric.compute
    speed  = "400Gbps"
    ports  = [{ rail = 0, pci = "0000:18:00.0" }, { rail = 1, pci = "0000:40:00.0" }]
  }
}
hardware "mi300x" {
  disk "os" {}
  gpu {
    vendor       = "amd"
    model        = "MI300X"
    count        = 8
    interconnect = "xgmi"
  }
}
hardware "cpu" {
  disk "os" {}
  nic "soft" {
    fabric        = fabric.plain
    pci           = ["0000:01:00.0"]
    speed         = "10Gbps"
    software_rdma = "rxe"
  }
}
role "w" {
  hardware   = hardware.h100
  bmc        = bmc.b
  image      = image.noble
  disks      = disk_layout.os
  validation = validation.v
}
