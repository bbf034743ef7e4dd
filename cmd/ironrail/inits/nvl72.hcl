# A site: everything that stands in the room, and what it is to become. This one is
# a GB200 NVL72 rack with @NODES@ (compute trays) of four GPUs, and the rack of
# its switches. It checks and rehearses as it is; nothing of it has to exist for that:
#
#   ironrail check       find mistakes, before anything is bought
#   ironrail rehearse    the bring-up on simulated hardware, as far as it is planned
#   ironrail draw        the rack, its power and its cables
#
@include about@

  # The PCI address of each rail, in order: `lspci` of the first node says them.
  rails = ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"]
}

@include site@

@include bmc@

# What one chassis is. What you write here is measured on each node, and one that
# lacks a DIMM is not installed.
hardware "gb200-tray" {
  arch       = "arm64" # Grace
  rack_units = 1
  weight     = "35kg" # a budget; yours may differ
  boot       = "uefi" # Grace has no BIOS
  power {             # a budget: 132 kW of the rack, divided
    typical  = "5.7kW"
    max      = "6.3kW"
    supplies = 0 # none of its own: the rack's bus bar feeds it
    required = 0
    liquid   = "85%" # of the heat
  }
  cpu {
    model   = "Grace"
    sockets = 2
    cores   = 144
  }
  memory {
    size = "960GiB"
  }
  gpu {
    vendor       = "nvidia"
    model        = "GB200"
    interconnect = "nvlink"
    count        = 4
  }
  disk "os" {
    type  = "nvme"
    count = 1
    size  = ">= 1.9TB"
  }
  nic "mgmt" { # it boots from this one
    speed   = "200Gbps"
    network = network.boot
    pci     = ["0006:03:00.0"]
    boot    = true
  }
  hca "rail" { # four rails
    fabric    = fabric.compute
    model     = "ConnectX-7"
    speed     = "400Gbps"
    link_type = "infiniband"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${i + 1}" }]
  }
  console {
    port = "ttyAMA0"
    baud = 115200
  }
}

# What is installed.
image "debian" "hpc" {
  arch     = "arm64"
  release  = "trixie"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

disk_layout "os" {
  on = "os" # the disk of the hardware block, never a device name
  root {
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone = "UTC"
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
  # accounts {
  #   authorized_keys = [file("keys/me.pub")]
  # }
}

driver "doca" "doca32" { # the RDMA stack
  version = "3.2.1"
  repository { # NVIDIA's packages: best a mirror inside the site
    url = "http://mirror.example/doca/3.2.1/debian13/arm64-sbsa/"
    # key = file("keys/doca.asc")
  }
}

# The fabric manager runs on the NVLink switches. R595 is the first branch that NVIDIA's
# repository for Debian 13 on SBSA has.
driver "cuda" "r595" {
  version = "595.71.05"
  cuda    = "13.2"
  repository {
    url = "http://mirror.example/cuda/debian13/sbsa/"
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
  rails     = 4
  link      = "400Gbps"
  topology  = "rail-optimized"
  unit_size = 18 # a leaf takes one rail of the 18 trays of a rack
  switch {
    model = "QM9700"
    ports = 64
  }
  subnet_manager {
    run_on = [controller.head1]
    engine = "opensm"
  }
}

# What makes one computer of the rack's GPUs: its trays are one NVLink domain.
fabric "nvlink" "nvl72" {
  domain_size = length(local.shipped) # trays: 18 in a whole rack
  imex        = true
}

# What nodes must prove before anybody may use them.
validation "gpu" {
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  all_reduce {
    engine = "nccl"
    scope  = ["node", "pair", "domain", "all"] # "domain" is over NVLink between trays, "pair" and "all" over the rails
    sizes  = ["8GiB"]
  }
}

# Who gets them then. A block is an NVLink domain.
handover "slurm" "prod" {
  controller = "head1"
  partition  = "gpu"
  topology   = "block"
  block_size = length(local.shipped)
}

# What a node is for: all of the above together.
role "worker" {
  hardware   = hardware.gb200-tray
  bmc        = bmc.board
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r595, driver.tools]
  validation = validation.gpu
  handover   = handover.prod
}

# The rack, and what stands in it. Where trays and shelves stand differs by maker.
rack "r01" {
  number         = 1 # addresses follow from it: never change it
  row            = "A"
  units          = 48
  max_power      = "140kW"
  cooling        = "25kW"  # of air
  liquid_cooling = "120kW" # of the loop
  max_weight     = "1500kg"

  # A whip to each power shelf, four on each feed.
  pdu "w" {
    count   = 8
    name    = "w${count.index + 1}"
    feed    = count.index % 2 == 0 ? "A" : "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 6
  }

  # Eight shelves of six supplies feed the bus bar, four below and four above.
  shelf "ps" {
    for_each   = { ps1 = 3, ps2 = 4, ps3 = 5, ps4 = 6, ps5 = 34, ps6 = 35, ps7 = 36, ps8 = 37 }
    name       = each.key
    unit       = each.value
    count      = 6
    capacity   = "5.5kW"
    redundancy = "n+1"
    weight     = "30kg" # a budget
    feeds      = ["w${trimprefix(each.key, "ps")}"]
  }

  # One node for each row of the list with this rack.
  node "tray" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    domain   = rack.name # of NVLink
  }

  switch "nv" { # NVLink switch trays
    count  = 9
    name   = "nv-${count.index + 1}"
    kind   = "nvlink"
    model  = "NVLink5 tray"
    unit   = 15 + count.index
    os     = "nvos"
    power  = "1.2kW" # a budget
    liquid = "85%"
    weight = "30kg" # a budget
    fabric = fabric.nvl72
  }
}

# The switches, in the rack beside it: an NVL72 rack has no air for them.
rack "net" {
  number     = 2
  row        = "A"
  units      = 48
  max_power  = "20kW"
  cooling    = "20kW"
  max_weight = "1000kg"

  pdu "p" {
    for_each = { a = "A", b = "B" }
    name     = each.key
    feed     = each.value
    phases   = 3
    voltage  = "415V"
    current  = "32A"
    derate   = 0.8
    outlets  = 36
  }

  switch "leaf" { # one for each rail
    count  = 4
    name   = "leaf-${count.index + 1}"
    model  = "QM9700"
    unit   = 40 - count.index
    ports  = 64
    power  = "1720W" # QM97x0 user manual: with active cables in all ports
    weight = "14.8kg"
    feeds  = ["a", "b"]
    fabric = fabric.compute
    rail   = count.index
  }
  switch "spine" { # so that every rail reaches every other
    count  = 2
    name   = "spine-${count.index + 1}"
    model  = "QM9700"
    unit   = 30 - count.index
    ports  = 64
    power  = "1720W"
    weight = "14.8kg"
    feeds  = ["a", "b"]
    fabric = fabric.compute
  }
}
