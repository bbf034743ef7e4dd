# Racks of eight 8-GPU nodes, as many as the variable says: `make bench-scale`
# rehearses 128, 1,024 and 4,096 nodes, and 1,024 with the GPU stack.

variable "nodes" {
  default = 128
}

# "gpu": the driver of the GPUs, and the all-reduce over all of them.
variable "stack" {
  default = "rdma"
}

# "rail-optimized": with leaves, spines and all cables, so that exchanged ones can be planted.
variable "topology" {
  default = "explicit"
}

locals {
  racks = ceil(tonumber(var.nodes) / 8)
}

site "scale" {
  domain    = "scale.example"
  max_erase = 1
}

controller "head1" {
  address   = "10.20.0.2"
  interface = "eno1"
}

state "file" {}

network "oob" {
  cidr = "10.10.0.0/16"
}

network "boot" {
  cidr    = "10.20.0.0/16"
  gateway = "10.20.0.1"
  dhcp {
    mode   = "authoritative"
    relays = ["10.20.0.1"]
  }
}

bmc "any" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
  tls      = "pin-first-seen"
}

hardware "hgx" {
  vendor     = "Supermicro"
  product    = "SYS-821GE-TNHR"
  rack_units = 4
  boot       = "uefi"
  power {
    typical  = "7.2kW"
    max      = "8.4kW"
    supplies = 6
    required = 3
  }
  cpu {
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
    type = "nvme"
    size = ">= 900GB"
  }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" {
    # Without link_type its ports stay as they were delivered, and are compared.
    fabric = fabric.compute
    model  = "ConnectX-7"
    speed  = "400Gbps"
    ports  = [for i, a in ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"] : { rail = i, pci = a, panel = "OSFP ${i + 1}" }]
  }
  console {
    port = "ttyS1"
    baud = 115200
  }
}

image "debian" "os" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony"]
}

image "debian" "gpu" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony"]
}

disk_layout "os" {
  on = "os"
  root {
    size       = "200GB"
    filesystem = "ext4"
  }
}

host "gpu" {
  # GPU modules are built for one kernel: hold it on the nodes (apt-mark hold).
  timezone = "UTC"
}

driver "inbox" "rdma" {
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  module         = "open"
  fabric_manager = true
  repository { # NVIDIA's packages, mirrored inside the site
    url = "http://mirror.example/cuda/debian12/x86_64/"
  }
}

driver "tools" "tools" { # what the tests of nodes run: Open MPI, perftest, and the tests of NCCL, which the controller compiles once
  nccl_tests {
    source   = "https://github.com/NVIDIA/nccl-tests/archive/v2.17.6.tar.gz"
    checksum = "sha256:38974e70342150ede0e3fb8fd24bfe60ccbde90fa20241716ba8bb338e6b61a0"
  }
}

fabric "roce" "compute" {
  rails      = 8
  link       = "400Gbps"
  topology   = var.topology
  unit_size  = 64
  switch {
    model = "any" # of 51.2 Tbit/s
    ports = 128
    speed = "400Gbps"
    os    = "sonic"
  }
  addressing = "subnet"
  cidr       = "10.128.0.0/11"
  mtu        = 9000
}

validation "h100" {
  quorum = "75%"
  pair {
    engine = "perftest"
    size   = "1MiB"
  }
  all_reduce {
    engine = "mpi"
    scope  = ["all"]
    sizes  = ["1MiB", "64MiB"]
  }
  limit "rdma.write_bw" {
    at_least = "48GB/s"
  }
}

validation "gpus" {
  quorum = "75%"
  all_reduce {
    engine = "nccl"
    scope  = ["all"]
    sizes  = ["8GiB"]
    floor  = "92%"
  }
}

handover "slurm" "prod" {
  controller = "head1"
  partition  = "gpu"
  topology   = "tree"
}

role "worker" {
  hardware   = hardware.hgx
  bmc        = bmc.any
  image      = { rdma = image.os, gpu = image.gpu }[var.stack]
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = { rdma = [driver.rdma], gpu = [driver.rdma, driver.r580, driver.tools] }[var.stack]
  validation = { rdma = validation.h100, gpu = validation.gpus }[var.stack]
  handover   = handover.prod
}

rack "r" {
  count  = local.racks
  name   = "r${format("%04d", count.index + 1)}"
  number = count.index + 1
  units  = 48

  node "n" {
    for_each = { for i in range(8) : "${i + 1}" => i if tonumber(rack.number - 1) * 8 + i < tonumber(var.nodes) }
    name     = "${rack.name}-n${each.key}"
    role     = role.worker
    unit     = 1 + 5 * each.value
    address  = cidrhost(network.boot.cidr, 256 + (rack.number - 1) * 8 + each.value)
    serial   = "S${format("%04d", rack.number)}${each.key}"
    boot_mac = "b8:ce:f6:${format("%02x", floor(rack.number / 256))}:${format("%02x", rack.number % 256)}:0${each.key}"
    bmc_mac  = "3c:ec:ef:${format("%02x", floor(rack.number / 256))}:${format("%02x", rack.number % 256)}:0${each.key}"
    bmc {
      address = cidrhost(network.oob.cidr, 256 + (rack.number - 1) * 8 + each.value)
    }
  }
}
