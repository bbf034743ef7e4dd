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
hardware "h100" {
  disk "os" {}
  gpu {
    vendor       = "nvidia"
    model        = "H100 SXM5 80GB"
    count        = 8
    interconnect = "nvswitch"
  }
}
hardware "mi300x" {
  disk "os" {}
  gpu {
    vendor       = "amd"
    model        = "MI300X OAM"
    count        = 8
    interconnect = "xgmi"
  }
}
