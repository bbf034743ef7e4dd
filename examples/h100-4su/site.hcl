# Four scalable units: 127 DGX H100 in four rows, 32 leaves and 16 spines. The
# 128th place is empty: its ports are those of the subnet managers.
#
# Sources: NVIDIA DGX SuperPOD Reference Architecture, DGX H100 (RA-11333), table
# of component counts for 4 SU: 127 nodes, 32 leaves, 16 spines, 1,020 cables of
# nodes and managers, 1,024 between leaves and spines. Racks as in ../h100-su.
# What a unit is stands once, in modules/su.

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list; these serials and MACs are made up
  rails   = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
  units   = { A = 1, B = 2, C = 3, D = 4 } # a scalable unit in each row
}

site "h100-4su" {
  domain       = "h100-4su.example"
  time_servers = ["10.20.0.2"]
  max_erase    = 8
  geometry { # for the routes of cables
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "0.5m"
  }
}

controller "head1" {
  address   = "10.20.0.2"
  interface = "eno1"
}

network "oob" {
  cidr = "10.10.0.0/20"
}

network "boot" {
  cidr    = "10.20.0.0/20"
  gateway = "10.20.0.1"
  dns     = ["10.20.0.2"]
  dhcp {
    mode   = "authoritative"
    relays = ["10.20.0.1"]
  }
}

bmc "redfish" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD") # read when apply logs in, never before
  tls      = "pin-first-seen"
}

hardware "dgx-h100" {
  vendor     = "NVIDIA"
  product    = "DGXH100"
  rack_units = 8
  weight     = "130.5kg" # DGX H100 User Guide: 287.6 lb
  boot       = "uefi"
  power {
    typical  = "8.5kW"  # a budget: measure your own load
    max      = "10.2kW" # DGX H100 User Guide, system specifications
    supplies = 6        # of 3.3 kW, 4 + 2
    required = 4
  }
  cpu {
    model   = "Xeon Platinum 8480C"
    sockets = 2
    cores   = 112
  }
  memory {
    size  = "2TiB"
    dimms = 32
  }
  gpu {
    vendor       = "nvidia"
    model        = "H100 SXM5 80GB"
    count        = 8
    interconnect = "nvswitch"
  }
  disk "os" {
    type  = "nvme"
    count = 2
    size  = ">= 1.9TB"
  }
  nic "mgmt" {
    speed   = "100Gbps"
    network = network.boot
    pci     = ["0000:29:00.1"]
    boot    = true
  }
  hca "rail" { # four OSFP cages of two ports
    fabric    = fabric.compute
    model     = "ConnectX-7"
    speed     = "400Gbps"
    link_type = "infiniband"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${floor(i / 2) + 1}/${i % 2 + 1}" }]
  }
  console {
    port = "ttyS0"
    baud = 115200
  }
}

image "debian" "hpc" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

disk_layout "os" {
  on   = "os"
  raid = 1
  root {
    size       = "200GB"
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone    = "UTC"
  kernel_args = ["iommu=pt"]
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
}

driver "doca" "doca32" {
  version = "3.2.1"
  profile = "doca-ofed"
  repository { # NVIDIA's packages, mirrored inside the site
    url = "http://mirror.example/doca/3.2.1/debian12/x86_64/"
  }
}

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  module         = "open"
  fabric_manager = true
  repository { # likewise
    url = "http://mirror.example/cuda/debian12/x86_64/"
  }
}

driver "tools" "tools" { # what the tests of nodes run: Open MPI, perftest, and the tests of NCCL, which the controller compiles once
  nccl_tests {
    source   = "https://github.com/NVIDIA/nccl-tests/archive/v2.17.6.tar.gz"
    checksum = "sha256:38974e70342150ede0e3fb8fd24bfe60ccbde90fa20241716ba8bb338e6b61a0"
  }
  cuda_checksum {} # compares what GPUs compute
}

fabric "infiniband" "compute" {
  rails     = 8
  link      = "400Gbps"
  topology  = "rail-optimized"
  unit_size = 32
  switch {
    model = "QM9700"
    ports = 64
    os    = "mlnx-os"
  }
  subnet_manager {
    run_on  = [controller.head1] # the RA has two UFM appliances, which ironrail does not configure
    routing = ["ftree", "updn"]
    ports   = 4 # of leaves, that managers take
  }
}

validation "h100" {
  burn_in = "30min"
  quorum  = "90%"
  all_reduce {
    engine = "nccl"
    scope  = ["node", "pair", "unit", "all"]
    sizes  = ["8GiB", "16GiB"]
    floor  = "92%"
  }
  limit "gpu.hbm_copy" {
    at_least = "2850GB/s"
  }
}

handover "slurm" "prod" {
  controller = "10.20.0.3"
  partition  = "gpu"
  topology   = "tree"
}

role "worker" {
  hardware   = hardware.dgx-h100
  bmc        = bmc.redfish
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r580, driver.tools]
  validation = validation.h100
  handover   = handover.prod
}

feed "A" {}
feed "B" {}
feed "C" {}

# Four scalable units. Addresses follow from numbers of racks: those with nodes are
# numbered through, and a fifth unit goes on at 33; those with switches have the
# fifties.
use "su" {
  source     = "modules/su"
  for_each   = local.units
  name       = lower(each.key)
  row        = each.key
  unit       = each.value
  first_rack = each.value * 8 - 7
  network    = each.value + 50
  systems    = local.shipped
  role       = role.worker
  fabric     = fabric.compute
}
