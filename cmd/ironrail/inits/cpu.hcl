# A site: everything that stands in the room, and what it is to become. This one is
# a rack with @NODES@ and a switch. It checks and rehearses as it is; nothing of it
# has to exist for that:
#
#   ironrail check       find mistakes, before anything is bought
#   ironrail rehearse    the whole bring-up on simulated hardware
#   ironrail draw        the rack, its power and its cables
#   ironrail plan        what would be done to the real one
#
@include about@
}

@include site@

# How BMCs are reached. Say "redfish" where they speak it. The password is never in
# these files: here it is in the environment of whoever runs `apply`.
bmc "board" {
  protocol = "ipmi"
  network  = network.oob
  username = "ADMIN"
  password = secret("env:BMC_PASSWORD")
}

# What one chassis is. What you write here is measured on each node, and one that
# lacks a DIMM is not installed. Take the PCI addresses from `lspci` of the first.
hardware "node" {
  rack_units = 1
  weight     = "20kg"
  boot       = "uefi" # or "uefi-http", "bios"
  power {
    typical  = "450W"
    max      = "800W"
    supplies = 2
    required = 1 # how many carry it at its maximum
  }
  cpu {
    sockets = 2
    cores   = 64
  }
  memory {
    size  = "512GiB"
    dimms = 16
  }
  disk "os" {
    type = "nvme"
    size = ">= 400GB"
  }
  nic "mgmt" { # it boots from this one
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "data" { # and computes over this one
    fabric    = fabric.data
    speed     = "100Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:5e:00.0", panel = "QSFP 1" }]
  }
  console {
    port = "ttyS1"
    baud = 115200
  }
}

# What is installed: `ironrail image build` makes the image.
image "debian" "os" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony"]
}

disk_layout "os" {
  on = "os" # the disk of the hardware block, never a device name
  root {
    filesystem = "ext4"
  }
}

host "plain" {
  timezone = "UTC"
  # accounts {
  #   authorized_keys = [file("keys/me.pub")]
  # }
}

driver "inbox" "rdma" { # the distribution's own RDMA stack
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

# The fast network. The topology says which port each cable goes to.
fabric "roce" "data" {
  link       = "100Gbps"
  topology   = "top-of-rack"
  addressing = "subnet"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
  switch {
    ports = 32
    speed = "100Gbps"
  }
}

# What nodes must prove before anybody may use them.
validation "data" {
  quorum = "90%"
  pair { # RDMA writes between all pairs
    engine = "perftest"
    size   = "1MiB"
  }
  limit "rdma.write_bw" {
    at_least = "12GB/s" # of the 12.5 that 100 Gb/s are
  }
}

# Who gets them then. `ironrail handover` prints the files for Slurm.
handover "slurm" "prod" {
  controller = "head1"
  partition  = "main"
  topology   = "flat"
}

# What a node is for: all of the above together.
role "worker" {
  hardware   = hardware.node
  bmc        = bmc.board
  image      = image.os
  disks      = disk_layout.os
  host       = host.plain
  drivers    = [driver.rdma]
  validation = validation.data
  handover   = handover.prod
}

# The rack, and what stands in it.
rack "r01" {
  number     = 1 # addresses follow from it: never change it
  row        = "A"
  units      = 42
  max_power  = "12kW"
  cooling    = "12kW"
  max_weight = "800kg"

  pdu "a" {
    feed    = "A"
    phases  = 1
    voltage = "230V"
    current = "32A"
    derate  = 0.8 # of the breaker's rating, for a load that stays
    outlets = 24
  }
  pdu "b" {
    feed    = "B"
    phases  = 1
    voltage = "230V"
    current = "32A"
    derate  = 0.8
    outlets = 24
  }

  switch "leaf" {
    name   = "leaf-1"
    unit   = 42
    ports  = 32
    power  = "500W"
    weight = "10kg"
    feeds  = ["a", "b"]
    fabric = fabric.data
  }

  # One node for each row of the list with this rack.
  node "n" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a", "b"] # a supply on each: one feed may go
  }
}
