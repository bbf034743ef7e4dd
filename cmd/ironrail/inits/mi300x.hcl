# A site: everything that stands in the room, and what it is to become. This one is
# a rack with @NODES@ of eight GPUs and their leaf. It checks and rehearses as it
# is; nothing of it has to exist for that:
#
#   ironrail check       find mistakes, before anything is bought
#   ironrail rehearse    the bring-up on simulated hardware, as far as it is planned
#   ironrail draw        the rack, its power and its cables
#
# Change it block by block and run `check` after each. Words without quotes, such as
# network.boot, refer to other blocks; every *.hcl file of the folder is read, and
# their order means nothing. docs/language.md has every block and attribute.

locals {
  # The vendor's list, as it comes with the pallet. Serials and MACs are made up:
  # 02:... is no vendor's. ironrail compares the real ones before it erases anything.
  shipped = csvdecode(file("manifest.csv")) # rack,unit,serial,bmc_mac,boot_mac

  # The PCI address of each rail, in order: `lspci` of the first node says them.
  rails = [
    "0000:06:00.0", "0000:23:00.0", "0000:43:00.0", "0000:66:00.0",
    "0000:86:00.0", "0000:a3:00.0", "0000:c3:00.0", "0000:e6:00.0",
  ]
}

site "@SITE@" {
  domain    = "@SITE@.example" # the nodes are r01-u01.@SITE@.example and so on
  max_erase = 2                # one run erases no more nodes than this without your word
}

# Where ironrail runs. It answers DHCP, and serves images, on this interface.
controller "head1" {
  address   = "10.20.0.2"
  interface = "eno1"
}

# Networks. Addresses follow from the place: network + 64 x number of the rack +
# unit, so that a new node renumbers nobody. Unit 9 of rack 1 is 10.20.0.73.
network "boot" {
  cidr    = "10.20.0.0/22"
  gateway = "10.20.0.1"
  dhcp {
    mode   = "authoritative"
    relays = ["10.20.0.1"] # leave it out when the controller is on this network itself
  }
}

network "oob" { # of BMCs and PDUs
  cidr = "10.10.0.0/22"
}

# How BMCs are reached. The password is never in these files: here it is in the
# environment of whoever runs `apply`.
bmc "board" {
  protocol = "redfish" # or "ipmi"
  network  = network.oob
  username = "ADMIN"
  password = secret("env:BMC_PASSWORD")
  tls      = "pin-first-seen"
}

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
image "ubuntu" "hpc" {
  release  = "22.04"
  kernel   = "linux-image-generic"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

disk_layout "os" {
  on = "os" # the disk of the hardware block, never a device name
  root {
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone    = "UTC"
  kernel_args = ["iommu=pt"]
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
  # accounts {
  #   authorized_keys = [file("keys/me.pub")]
  # }
}

driver "rocm" "rocm7" {
  version = "7.0.2"
  amdgpu  = "30.10.2"
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
  quorum = "90%"
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
  drivers    = [driver.rocm7]
  validation = validation.gpu
  handover   = handover.prod
}

# The rack, and what stands in it.
rack "r01" {
  number     = 1 # addresses follow from it: never change it
  row        = "A"
  units      = 48
  max_power  = "44kW"
  cooling    = "44kW" # of air
  max_weight = "1000kg"

  # Two PDUs on each feed: with one feed lost the other two carry all.
  pdu "a1" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "a2" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b1" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b2" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }

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

  # One node for each row of the list with this rack.
  node "gpu" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = tonumber(each.key) <= 9 ? ["a1", "b1"] : ["a2", "b2"] # three supplies on each: one feed may go
  }
}
