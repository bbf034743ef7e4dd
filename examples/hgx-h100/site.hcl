# One rack: four HGX H100 nodes of 8 U on two feeds, with its InfiniBand leaf,
# two storage switches and the handover to Slurm. The smallest site that
# has everything.
#
# Sources: Supermicro SYS-821GE-TNHR product page (8 U, 6 supplies of 3,000 W, 2 x
# Xeon, 32 DIMMs); NVIDIA QM97x0 user manual (64 ports of 400 Gb/s, 1,720 W).

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list; these serials and MACs are made up
  rails   = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
}

site "hgx-h100" {
  domain       = "hgx-h100.example"
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

hardware "hgx-h100" {
  vendor     = "Supermicro"
  product    = "SYS-821GE-TNHR"
  rack_units = 8
  weight     = "105kg" # a budget, with rails and cables
  boot       = "uefi"
  power {
    typical  = "7.2kW" # a budget: measure your own load
    max      = "8.9kW" # capped below three supplies; 10.2 kW without a cap, and then four are needed
    supplies = 6       # of 3 kW
    required = 3
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
    pci     = ["0000:2a:00.0"]
    boot    = true
  }
  hca "rail" { # four OSFP cages of two ports
    fabric    = fabric.compute
    model     = "ConnectX-7"
    speed     = "400Gbps"
    link_type = "infiniband"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "OSFP ${floor(i / 2) + 1}/${i % 2 + 1}" }]
  }
  hca "storage" {
    fabric    = fabric.storage
    model     = "ConnectX-7"
    speed     = "200Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:29:00.0", panel = "slot 1/1" }, { rail = 1, pci = "0000:82:00.0", panel = "slot 2/1" }]
  }
  console {
    port = "ttyS1"
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

fabric "infiniband" "compute" { # 32 rails on one leaf of 64 ports: there is room for four more nodes
  rails    = 8
  link     = "400Gbps"
  topology = "top-of-rack" # says where all cables of rails go
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

fabric "roce" "storage" {
  rails      = 2
  link       = "200Gbps"
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
}

validation "h100" {
  burn_in     = "30min"
  quorum      = "75%"
  provisional = true # who is left is tested all the same, and with the others again
  pair {             # RDMA writes over every port, those for storage too
    engine = "perftest"
  }
  all_reduce {
    engine = "nccl"
    scope  = ["node", "pair", "all"]
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
  hardware   = hardware.hgx-h100
  bmc        = bmc.redfish
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r580, driver.tools]
  validation = validation.h100
  handover   = handover.prod
}

rack "r" {
  name        = "r01"
  number      = 1
  row         = "A"
  units       = 48
  max_power   = "48kW"
  cooling     = "48kW"
  max_weight  = "1000kg"
  orientation = "front"

  # Two PDUs on each feed: with one feed lost the other carries the rack.
  pdu "a1" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 8)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }
  pdu "a2" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 9)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }
  pdu "b1" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 10)
      model     = "apc-rpdu2"
      community = secret("env:PDU_COMMUNITY")
    }
  }
  pdu "b2" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 11)
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
    feeds    = each.value.unit <= 9 ? ["a1", "b1"] : ["a2", "b2"] # supplies in turn: three on each
  }

  switch "leaf" {
    name   = "leaf-1"
    model  = "QM9700"
    unit   = 40
    ports  = 64
    os     = "mlnx-os"
    power  = "1720W"
    weight = "14.8kg"
    feeds  = ["a1", "b1"]
    fabric = fabric.compute
  }
  switch "stor" {
    count  = 2
    name   = "stor-${count.index + 1}"
    model  = "SN4700"
    unit   = 36 - count.index
    ports  = 32
    os     = "cumulus"
    power  = "1kW" # a budget
    weight = "12kg"
    feeds  = ["a2", "b2"]
    fabric = fabric.storage
  }
}

cable {
  for_each = { for c in setproduct(range(4), range(2)) : "${c[0]}/${c[1]}" => c }
  from     = "r01-u${format("%02d", 8 * each.value[0] + 1)}/storage/${each.value[1]}"
  to       = "r01/stor-${each.value[1] + 1}/${each.value[0] + 1}"
}
