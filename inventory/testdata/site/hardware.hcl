hardware "mi300x" {
  vendor      = "Vendor"
  product     = "G8"
  rack_units  = 8
  weight      = "140kg"
  secure_boot = true
  tpm         = "2.0"
  power {
    max      = "10.2kW"
    supplies = 6
    required = 4
  }
  cpu {
    sockets = 2
    cores   = 128
  }
  memory {
    size  = "1.5TiB"
    dimms = 24
  }
  gpu {
    vendor       = "amd"
    model        = "MI300X"
    count        = 8
    memory       = "192GiB"
    interconnect = "xgmi"
  }
  disk "os" {
    type  = "nvme"
    count = 2
    size  = ">= 900GB, <= 2TB"
  }
  disk "scratch" {
    type  = "nvme"
    count = 8
    size  = ">= 3.8TB"
  }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:01:00.0", "0000:01:00.1"]
    boot    = true
  }
  hca "rail" {
    fabric    = fabric.scale-out
    speed     = "400Gbps"
    link_type = "ethernet"
    ports     = [for i in range(8) : { rail = i, pci = format("0000:%02x:00.0", 16 + i), panel = "P${i}" }]
  }
  dpu "bf3" {
    model = "BlueField-3"
    bmc   = true
  }
  firmware {
    bmc = ">= 1.2.3"
    gpu = "<= 9"
  }
  bios = {
    "IOMMU" = "Enabled"
  }
}

hardware "tray" {
  boot = "uefi-http"
  power {
    max      = "1.8kW"
    supplies = 0
  }
  gpu {
    vendor       = "nvidia"
    model        = "GB200"
    count        = 4
    interconnect = "nvlink"
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0006:03:00.0"]
    boot    = true
  }
  hca "ib" {
    fabric = fabric.compute
    ports  = [{ rail = 0, pci = "0000:03:00.0" }, { rail = 1, pci = "0002:03:00.0" }]
  }
}
