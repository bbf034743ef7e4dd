# A site: everything that stands in the room, and what it is to become. This one is
# a rack with @NODES@ of eight GPUs and their leaf. It checks and rehearses as it
# is; nothing of it has to exist for that:
#
#   ironrail check       find mistakes, before anything is bought
#   ironrail rehearse    the whole bring-up on simulated hardware
#   ironrail draw        the rack, its power and its cables
#
@include about@

  # The PCI address of each rail, in order: `lspci` of the first node says them.
  rails = [
    "0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0",
    "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0",
  ]
}

@include site@

@include bmc@

# What one chassis is. What you write here is measured on each node, and one that
# lacks a DIMM is not installed.
hardware "hgx-h100" {
  rack_units = 8
  weight     = "105kg" # with rails and cables; yours may differ
  boot       = "uefi"  # or "uefi-http"
  power {
    typical  = "7.2kW"
    max      = "8.9kW" # with a cap that three supplies of 3 kW carry
    supplies = 6
    required = 3 # how many carry it at its maximum
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
    interconnect = "nvswitch"
    count        = 8
  }
  disk "os" {
    type = "nvme"
    size = ">= 900GB"
  }
  nic "mgmt" { # it boots from this one
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" { # eight rails
    fabric    = fabric.compute
    model     = "ConnectX-7"
    speed     = "400Gbps"
    link_type = "infiniband"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${i + 1}" }]
  }
  console {
    port = "ttyS1"
    baud = 115200
  }
}

# What is installed.
image "debian" "hpc" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

@include disks@

driver "doca" "doca32" { # the RDMA stack
  version = "3.2.1"
  repository { # NVIDIA's packages: best a mirror inside the site
    url = "http://mirror.example/doca/3.2.1/debian12/x86_64/"
    # key = file("keys/doca.asc")
  }
}

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  fabric_manager = true # these GPUs are joined by NVSwitches
  repository {
    url = "http://mirror.example/cuda/debian12/x86_64/"
    # key = file("keys/cuda.asc")
  }
}

driver "tools" "tools" { # what the tests of nodes run: Open MPI, perftest, and the tests of NCCL, which the controller compiles once
  nccl_tests {
    source   = "https://github.com/NVIDIA/nccl-tests/archive/v2.17.6.tar.gz"
    checksum = "sha256:38974e70342150ede0e3fb8fd24bfe60ccbde90fa20241716ba8bb338e6b61a0"
  }
}

# The fast network. The topology says which port each cable goes to.
fabric "infiniband" "compute" {
  rails    = 8
  link     = "400Gbps"
  topology = "top-of-rack" # with more racks: "rail-optimized"
  switch {
    model = "QM9700"
    ports = 64
  }
  subnet_manager {
    run_on = [controller.head1]
    engine = "opensm"
  }
}

# What nodes must prove before anybody may use them.
validation "gpu" {
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  all_reduce {
    engine = "nccl"
    scope  = ["node", "pair", "all"]
    sizes  = ["8GiB"]
  }
}

# Who gets them then.
handover "slurm" "prod" {
  controller = "head1"
  partition  = "gpu"
  topology   = "flat"
}

# What a node is for: all of the above together.
role "worker" {
  hardware   = hardware.hgx-h100
  bmc        = bmc.board
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r580, driver.tools]
  validation = validation.gpu
  handover   = handover.prod
}

@include rack-8u@

  switch "leaf" {
    name   = "leaf-1"
    model  = "QM9700"
    unit   = 40
    ports  = 64
    power  = "1720W" # QM97x0 user manual: with active cables in all ports
    weight = "14.8kg"
    feeds  = ["a1", "b1"]
    fabric = fabric.compute
  }

@include nodes-8u@
}
