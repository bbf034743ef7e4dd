# 12,500 nodes of eight GPUs from one list: 1,563 racks of eight nodes, each with
# its leaf, RoCE on 100,000 ports of 400G, three levels of switches. What is in the
# list is the only thing that differs from one size to another: nodes.csv has 24,
# `generate` writes any number.
#
# Sources: Supermicro SYS-421GE-TNHR2-LCC product page (4 U, liquid-cooled, 8 H100,
# 4 x 5,250 W); NVIDIA SN5600 manual (64 ports of 800G, each as two of 400G).

variable "cuda_key" {
  default     = null
  description = "the armored OpenPGP key that the mirror of NVIDIA's packages is signed with; null: one of the image's keys"
}

variable "list" {
  default     = "nodes.csv"
  description = "the list of nodes, in this folder"
}

locals {
  nodes   = csvdecode(file(var.list)) # name,rack,number,row,unit,serial,bmc_mac,boot_mac
  by_rack = { for n in local.nodes : n.rack => n... }
  rails   = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]

  # A leaf has 32 ports of 800G up, and the spines divide them. Up to 64 leaves
  # links take whole ports, up to 128 half a port each; beyond, there are pods of 32
  # leaves and 32 spines, and cores above them. `check` says which switches a
  # topology needs; these counts give each a place.
  leaves = length(local.by_rack)
  pods   = local.leaves > 128 ? ceil(local.leaves / 32) : 0
  spines = local.pods > 0 ? 32 * local.pods : pow(2, ceil(log(max(local.leaves, 2) / 2, 2) - 0.001))
  cores  = local.pods > 0 ? 32 * pow(2, ceil(log(local.pods / 2, 2) - 0.001)) : 0
  above  = concat([for i in range(local.spines) : "spine-${i + 1}"], [for i in range(local.cores) : "core-${i + 1}"])
  per    = 14 # of them in a rack
}

site "csv" {
  domain       = "csv.example"
  time_servers = ["10.32.0.2"]
  max_erase    = 16
  geometry { # for the routes of cables
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "0.5m"
  }
}

controller "head1" {
  address   = "10.32.0.2"
  interface = "eno1"
}

network "oob" {
  cidr = "10.64.0.0/15"
}

network "boot" {
  cidr    = "10.32.0.0/15"
  gateway = "10.32.0.1"
  dns     = ["10.32.0.2"]
  dhcp {
    mode   = "authoritative"
    relays = ["10.32.0.1"]
  }
}

bmc "redfish" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD") # read when apply logs in, never before
  tls      = "pin-first-seen"
}

hardware "hgx-lcc" {
  vendor     = "Supermicro"
  product    = "SYS-421GE-TNHR2-LCC"
  rack_units = 4
  weight     = "80kg" # a budget
  boot       = "uefi"
  power {
    typical  = "7.5kW" # a budget
    max      = "9.5kW" # a budget: two supplies carry it
    supplies = 4       # of 5,250 W
    required = 2
    liquid   = "80%"
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
    ports  = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${floor(i / 2) + 1}/${i % 2 + 1}" }]
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

disk_layout "os" {
  on = "os"
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

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  fabric_manager = true
  repository { # NVIDIA's packages for Debian 12, mirrored inside the site
    url = "http://mirror.example/cuda/debian12/x86_64/"
    key = var.cuda_key
  }
}

driver "inbox" "rdma" {
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

fabric "roce" "compute" {
  rails      = 8
  link       = "400Gbps"
  topology   = "top-of-rack" # the switch of a rack takes all rails of its nodes
  addressing = "subnet"
  cidr       = "10.128.0.0/10"
  mtu        = 9000
  switch {
    model = "SN5600"
    ports = 64
    speed = "800Gbps"
    split = 2
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

validation "rails" {
  quorum = "90%"
  pair {
    engine = "perftest"
    size   = "1MiB"
  }
  limit "rdma.write_bw" {
    at_least = "48GB/s" # of 50
  }
}

handover "slurm" "prod" {
  controller = "10.32.0.3"
  partition  = "gpu"
  topology   = "tree"
}

role "worker" {
  hardware   = hardware.hgx-lcc
  bmc        = bmc.redfish
  image      = image.os
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.rdma, driver.r580]
  validation = validation.rails
  handover   = handover.prod
}

feed "A" {}
feed "B" {}

rack "r" {
  for_each       = local.by_rack
  name           = each.key
  number         = tonumber(each.value[0].number)
  row            = each.value[0].row
  units          = 48
  max_power      = "90kW"
  cooling        = "25kW"
  liquid_cooling = "70kW"
  max_weight     = "1200kg"

  pdu "a1" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "100A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 24
  }
  pdu "a2" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "100A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 24
  }
  pdu "b1" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "100A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 24
  }
  pdu "b2" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "100A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 24
  }

  node "n" {
    for_each = { for n in rack.each.value : n.name => n }
    name     = each.key
    role     = role.worker
    unit     = tonumber(each.value.unit)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a1", "a2", "b1", "b2"] # a supply on each
  }

  switch "leaf" {
    name   = "leaf-1"
    model  = "SN5600"
    unit   = 40
    height = 2
    ports  = 64
    os     = "sonic"
    power  = "1.8kW" # a budget, with optics
    weight = "30kg"
    feeds  = ["a1", "b1"]
    fabric = fabric.compute
    tier   = "leaf"
  }
}

rack "net" { # spines and cores, in rows of their own behind the others
  for_each   = { for i, names in chunklist(local.above, local.per) : "${i + 1}" => names }
  name       = "net-${format("%03d", tonumber(each.key))}"
  number     = local.leaves + tonumber(each.key)
  row        = format("%03d", ceil(local.leaves / 40) + ceil(tonumber(each.key) / 40))
  units      = 48
  max_power  = "30kW"
  cooling    = "30kW"
  max_weight = "1000kg"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }

  switch "up" {
    for_each = { for i, name in rack.each.value : name => i }
    name     = each.key
    model    = "SN5600"
    unit     = 1 + 3 * each.value
    height   = 2
    ports    = 64
    os       = "sonic"
    power    = "1.8kW"
    weight   = "30kg"
    feeds    = ["a", "b"]
    fabric   = fabric.compute
    tier     = split("-", each.key)[0]
  }
}
