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
    "0000:06:00.0", "0000:23:00.0", "0000:43:00.0", "0000:66:00.0",
    "0000:86:00.0", "0000:a3:00.0", "0000:c3:00.0", "0000:e6:00.0",
  ]
}

@include site@

@include bmc@

# What one chassis is. What you write here is measured on each node, and one that
# lacks a DIMM is not installed.
hardware "mi300x" {
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
    cores   = 192
  }
  memory {
    size  = "2304GiB"
    dimms = 24
  }
  gpu {
    vendor       = "amd"
    model        = "MI300X"
    memory       = "192GB"
    interconnect = "xgmi"
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
    speed     = "400Gbps"
    link_type = "ethernet"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "QSFP ${i + 1}" }]
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

driver "rocm" "rocm7" {
  version = "7.0.2"
  amdgpu  = "30.10.2"
  repository { # AMD's packages: best a mirror inside the site
    url        = "http://mirror.example/rocm/apt/7.0.2"
    suite      = "jammy"
    components = ["main"]
    # key = file("keys/rocm.asc")
  }
}

driver "tools" "tools" { # what the tests of nodes run: Open MPI, perftest, and the tests of RCCL, which the controller compiles once
  # github.com/ROCm/rccl-tests has no releases: take an archive of a commit, and put it
  # here before `ironrail image build`. ironrail.lock keeps what it was.
  rccl_tests {
    source = "sources/rccl-tests.tar.gz"
  }
}

# The fast network. The topology says which port each cable goes to.
fabric "roce" "compute" {
  rails      = 8
  link       = "400Gbps"
  topology   = "top-of-rack" # with more racks: "rail-optimized"
  addressing = "subnet"
  cidr       = "10.200.0.0/14"
  mtu        = 9000
  switch {
    ports = 64
    speed = "400Gbps"
    os    = "sonic"
  }
  lossless {
    priority = 3
    dscp     = 26
    cnp_dscp = 48
    pfc      = true
    ecn      = true
  }
}

# What nodes must prove before anybody may use them.
validation "gpu" {
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  all_reduce {
    engine = "rccl"
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
  hardware   = hardware.mi300x
  bmc        = bmc.board
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.rocm7, driver.tools]
  validation = validation.gpu
  handover   = handover.prod
}

@include rack-8u@

  switch "leaf" {
    name   = "leaf-1"
    unit   = 40
    height = 2
    ports  = 64
    os     = "sonic"
    power  = "1.5kW" # with optics; yours may differ
    weight = "25kg"
    feeds  = ["a1", "b1"]
    fabric = fabric.compute
  }

@include nodes-8u@
}
