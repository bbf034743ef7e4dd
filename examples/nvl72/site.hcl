# Four GB200 NVL72 racks: 72 compute trays, 288 GPUs, one NVLink domain a rack,
# four InfiniBand rails a tray, liquid cooling, Slurm that keeps a job in a rack.
#
# Sources: NVIDIA GB200 NVL72 product page and DGX GB200 User Guide: 18 compute
# trays of 4 GPUs, 9 NVLink switch trays, 8 power shelves of 6 x 5.5 kW, 1.36 t,
# about 120 kW and at most 132 kW a rack, some 85 % of the heat into liquid. What a
# tray draws is that figure divided: a budget.

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list; these serials and MACs are made up
  rails   = ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"]
}

site "nvl72" {
  domain       = "nvl72.example"
  time_servers = ["10.20.0.2"]
  max_erase    = 18
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

hardware "gb200-tray" { # two Grace CPUs, four Blackwell GPUs
  arch       = "arm64"
  page_size  = "4K" # of the image's kernel: NVIDIA recommends 64K for Grace, and Debian has none
  vendor     = "NVIDIA"
  product    = "GB200 NVL"
  rack_units = 1
  weight     = "35kg" # a budget
  boot       = "uefi" # Grace has no BIOS
  power {
    typical  = "5.7kW"
    max      = "6.3kW"
    supplies = 0 # the rack's bus bar
    required = 0
    liquid   = "85%"
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
    count        = 4
    interconnect = "nvlink"
  }
  disk "os" {
    type  = "nvme"
    count = 1
    size  = ">= 1.9TB"
  }
  nic "mgmt" {
    speed   = "200Gbps"
    network = network.boot
    pci     = ["0006:03:00.0"] # a BlueField-3
    boot    = true
  }
  hca "rail" {
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

image "debian" "hpc" {
  arch     = "arm64"
  release  = "trixie"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

disk_layout "os" {
  on = "os"
  root {
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone = "UTC"
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
}

driver "doca" "doca32" {
  version = "3.2.1"
  repository { # NVIDIA's packages, mirrored inside the site
    url = "http://mirror.example/doca/3.2.1/debian13/arm64-sbsa/"
  }
}

# The fabric manager runs on the NVLink switches. R595 is the first branch that NVIDIA's
# repository for Debian 13 on SBSA has.
driver "cuda" "r595" {
  version = "595.71.05"
  cuda    = "13.2"
  repository { # likewise
    url = "http://mirror.example/cuda/debian13/sbsa/"
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
  rails     = 4
  link      = "400Gbps"
  topology  = "rail-optimized"
  unit_size = 18 # a rack is a unit: a leaf takes one rail of its 18 trays
  switch {
    model = "QM9700"
    ports = 64
    os    = "mlnx-os"
  }
  subnet_manager {
    run_on = [controller.head1]
    engine = "opensm"
  }
}

fabric "nvlink" "nvl72" {
  domain_size = 18 # trays
  imex        = true
}

validation "gb200" {
  burn_in     = "30min"
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  all_reduce {
    engine = "nccl"
    scope  = ["node", "domain", "unit", "all"] # "domain" is over NVLink between trays, "unit" and "all" over InfiniBand
    sizes  = ["8GiB"]
  }
}

handover "slurm" "prod" {
  controller = "10.20.0.3"
  partition  = "nvl72"
  topology   = "block" # a block is a rack: 18 trays on one NVLink domain
  block_size = 18
}

role "tray" {
  hardware   = hardware.gb200-tray
  bmc        = bmc.redfish
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r595, driver.tools]
  validation = validation.gb200
  handover   = handover.prod
}

feed "A" {}
feed "B" {}

rack "nvl" {
  for_each       = { r01 = 1, r02 = 2, r03 = 3, r04 = 4 }
  name           = each.key
  number         = each.value
  scalable_unit  = each.value
  row            = "A"
  position       = each.value <= 2 ? each.value : each.value + 1
  units          = 48
  max_power      = "140kW"
  cooling        = "25kW" # of air
  liquid_cooling = "120kW"
  max_weight     = "1500kg"

  pdu "w" { # a whip to each power shelf, four on each feed
    for_each = { for i in range(8) : "${i + 1}" => i }
    name     = "w${each.key}"
    feed     = each.value % 2 == 0 ? "A" : "B"
    phases   = 3
    voltage  = "415V"
    current  = "63A"
    derate   = 0.8
    outlets  = 6
  }

  shelf "ps" { # four below the trays, four above
    for_each   = { ps1 = 3, ps2 = 4, ps3 = 5, ps4 = 6, ps5 = 34, ps6 = 35, ps7 = 36, ps8 = 37 }
    name       = each.key
    unit       = each.value
    count      = 6 # supplies
    capacity   = "5.5kW"
    redundancy = "n+1"
    weight     = "30kg" # a budget
    feeds      = ["w${trimprefix(each.key, "ps")}"]
    control { # its supplies and their input are read once the trays were under load
      protocol = "redfish"
      address  = cidrhost(network.oob.cidr, 1024 + 16 * rack.number + tonumber(trimprefix(each.key, "ps")))
      username = "ironrail"
      password = secret("env:SHELF_PASSWORD")
    }
  }

  node "tray" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.tray
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    domain   = rack.name
  }

  switch "nv" { # two NVLink switch chips each
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

rack "net" {
  number     = 5
  row        = "A"
  position   = 3
  units      = 48
  max_power  = "40kW"
  cooling    = "40kW"
  max_weight = "1000kg"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 16)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 17)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }

  switch "leaf" { # a row of four for each rack
    count         = 16
    name          = "leaf-${count.index + 1}"
    model         = "QM9700"
    unit          = 44 - count.index
    ports         = 64
    os            = "mlnx-os"
    power         = "1720W" # QM97x0 user manual
    weight        = "14.8kg"
    feeds         = ["a", "b"]
    fabric        = fabric.compute
    tier          = "leaf"
    scalable_unit = floor(count.index / 4) + 1
    rail          = count.index % 4
  }
  switch "spine" {
    count  = 5 # of 64 ports: each leaf has four links to each
    name   = "spine-${count.index + 1}"
    model  = "QM9700"
    unit   = 24 - count.index
    ports  = 64
    os     = "mlnx-os"
    power  = "1720W"
    weight = "14.8kg"
    feeds  = ["a", "b"]
    fabric = fabric.compute
    tier   = "spine"
  }
}
