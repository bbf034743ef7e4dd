# One scalable unit: 32 DGX H100 in eight racks, eight leaves and four spines in a
# network rack in the middle of the row.
#
# Sources: NVIDIA DGX SuperPOD Reference Architecture, DGX H100 (RA-11333): 32
# nodes a unit, rail r of each on leaf r, 8 leaves and 4 spines of QM9700. NVIDIA
# DGX SuperPOD Data Center Design, DGX H100: four systems a rack, three PDUs, of
# which two carry the rack: a system has six supplies and needs four.

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list; these serials and MACs are made up

  # The PCI address of each rail: `lspci` of the first node says them.
  rails = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
}

site "h100-su" {
  domain       = "h100-su.example"
  time_servers = ["10.20.0.2"]
  max_erase    = 4
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
    fabric     = fabric.compute
    model      = "ConnectX-7"
    speed      = "400Gbps"
    link_type  = "infiniband"
    option_rom = false # the firmware would try to boot from each of them when the boot NIC is silent
    ports      = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${floor(i / 2) + 1}/${i % 2 + 1}" }]
  }
  hca "storage" {
    fabric    = fabric.storage
    model     = "ConnectX-7"
    speed     = "200Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:29:00.0", panel = "slot 1/1" }, { rail = 1, pci = "0000:82:00.0", panel = "slot 2/1" }]
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
  topology  = "rail-optimized" # says where all 256 cables of nodes and 256 between switches go
  unit_size = 32
  switch {
    model = "QM9700"
    ports = 64
    os    = "mlnx-os"
  }
  subnet_manager {
    run_on  = [controller.head1]
    engine  = "opensm"
    routing = ["ftree", "updn"]
  }
  partition "tenant-a" {
    pkey  = "0x0001"
    ipoib = true
  }
}

fabric "roce" "storage" { # two switches, no spine: each cable is given below
  rails      = 2
  link       = "200Gbps"
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
}

validation "h100" {
  burn_in     = "30min"
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  pair {             # RDMA writes over every port, those for storage too
    engine = "perftest"
  }
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
  partitions = ["compute/tenant-a"]
  validation = validation.h100
  handover   = handover.prod
}

feed "A" {}
feed "B" {}
feed "C" {}

rack "r" {
  for_each      = { for i in range(8) : "${format("r%02d", i + 1)}" => i + 1 }
  name          = each.key
  number        = each.value # addresses are derived from it
  row           = "A"
  scalable_unit = 1
  position      = each.value <= 4 ? each.value : each.value + 1 # the network rack is fifth
  units         = 48
  max_power     = "44kW"
  cooling       = "44kW" # of air
  max_weight    = "1000kg"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 4 * rack.number)
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
      address   = cidrhost(network.oob.cidr, 4 * rack.number + 1)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }
  pdu "c" {
    feed    = "C"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 4 * rack.number + 2)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }

  node "gpu" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a", "b", "c"] # six supplies, two on each: any one PDU may go
  }
}

rack "net" {
  number     = 9
  row        = "A"
  position   = 5
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
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 36)
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
      address   = cidrhost(network.oob.cidr, 37)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }

  switch "leaf" {
    count         = 8
    name          = "leaf-${count.index + 1}"
    model         = "QM9700"
    unit          = 40 - count.index
    ports         = 64
    os            = "mlnx-os"
    power         = "1720W" # QM97x0 user manual: with active cables in all ports
    weight        = "14.8kg"
    feeds         = ["a", "b"]
    fabric        = fabric.compute
    tier          = "leaf"
    scalable_unit = 1
    rail          = count.index
  }
  switch "spine" {
    count  = 4
    name   = "spine-${count.index + 1}"
    model  = "QM9700"
    unit   = 30 - count.index
    ports  = 64
    os     = "mlnx-os"
    power  = "1720W"
    weight = "14.8kg"
    feeds  = ["a", "b"]
    fabric = fabric.compute
    tier   = "spine"
  }
  switch "stor" {
    count  = 2
    name   = "stor-${count.index + 1}"
    model  = "SN5400"
    unit   = 20 - 2 * count.index
    height = 2
    ports  = 64
    os     = "cumulus"
    power  = "1.5kW" # a budget
    weight = "25kg"
    feeds  = ["a", "b"]
    fabric = fabric.storage
  }
}

cable {
  for_each = { for c in setproduct(range(length(local.shipped)), range(2)) : "${c[0]}/${c[1]}" => c }
  from     = "${local.shipped[each.value[0]].rack}-u${format("%02d", tonumber(local.shipped[each.value[0]].unit))}/storage/${each.value[1]}"
  to       = "net/stor-${each.value[1] + 1}/${each.value[0] + 1}"
}
