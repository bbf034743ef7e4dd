# A mixed site: H100 nodes that train over InfiniBand, L40S nodes that serve over
# Ethernet, storage that no plan may erase, and two head nodes. Redfish and IPMI,
# two kinds of images, an order of roles, an override, a hook and an allowance.
#
# Sources: Supermicro SYS-821GE-TNHR (8 U, 6 x 3,000 W), SYS-421GE-TNRT (4 U, 4 x
# 2,700 W), NVIDIA L40S data sheet (350 W, 48 GB, PCIe). Power is a budget where no
# source gives it.

locals {
  shipped = csvdecode(file("manifest.csv")) # serials and MACs are made up
  rails   = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
  roles   = { head = role.head.name, storage = role.storage.name, train = role.train.name, infer = role.infer.name }
}

site "mixed" {
  domain       = "mixed.example"
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

bmc "ipmi" { # older boards
  protocol     = "ipmi"
  cipher_suite = 17
  network      = network.oob
  username     = "ironrail"
  password     = secret("env:BMC_PASSWORD")
}

hardware "hgx-h100" {
  vendor     = "Supermicro"
  product    = "SYS-821GE-TNHR"
  rack_units = 8
  weight     = "105kg" # a budget, with rails and cables
  boot       = "uefi"
  power {
    typical  = "7.2kW" # a budget: measure your own load
    max      = "8.9kW" # capped below three supplies
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
    type = "nvme"
    size = ">= 1.9TB"
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
  console {
    port = "ttyS1"
    baud = 115200
  }
}

hardware "l40s" { # PCIe cards, no NVLink
  vendor     = "Supermicro"
  product    = "SYS-421GE-TNRT"
  rack_units = 4
  weight     = "45kg"
  boot       = "uefi"
  power {
    typical  = "2.6kW"
    max      = "3.6kW" # 8 cards of 350 W and two CPUs
    supplies = 4       # of 2.7 kW
    required = 2
  }
  cpu {
    sockets = 2
    cores   = 64
  }
  memory {
    size  = "1TiB"
    dimms = 16
  }
  gpu {
    vendor = "nvidia"
    model  = "L40S"
    count  = 8
    memory = "48GB"
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
  hca "data" {
    fabric    = fabric.data
    model     = "ConnectX-6 Dx"
    speed     = "100Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:5e:00.0", panel = "QSFP 1" }]
  }
  console {
    port = "ttyS1"
    baud = 115200
  }
}

hardware "head" {
  vendor     = "Supermicro"
  product    = "SYS-121H-TNR"
  rack_units = 1
  weight     = "20kg"
  boot       = "uefi"
  power {
    typical  = "350W"
    max      = "800W"
    supplies = 2
    required = 1
  }
  cpu {
    sockets = 2
    cores   = 32
  }
  memory {
    size = "256GiB"
  }
  disk "os" {
    type = "nvme"
  }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  console {
    port = "ttyS1"
  }
}

hardware "storage" {
  vendor     = "Supermicro"
  product    = "SSG-221E-NE324R"
  rack_units = 2
  weight     = "40kg"
  boot       = "bios" # as delivered
  power {
    typical  = "900W"
    max      = "1.4kW"
    supplies = 2
    required = 1
  }
  cpu {
    sockets = 2
    cores   = 48
  }
  memory {
    size = "512GiB"
  }
  disk "os" {
    type = "sata"
  }
  disk "data" {
    type  = "nvme"
    count = 24
  }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "data" {
    fabric    = fabric.data
    model     = "ConnectX-6 Dx"
    speed     = "100Gbps"
    link_type = "ethernet"
    ports     = [{ rail = 0, pci = "0000:5e:00.0", panel = "QSFP 1" }]
  }
  console {
    port = "ttyS1"
  }
}

image "debian" "gpu" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony", "nvme-cli"]
}

image "debian" "plain" {
  release  = "bookworm"
  kernel   = "linux-image-amd64"
  packages = ["openssh-server", "chrony"]
}

disk_layout "os" {
  on = "os"
  root {
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone    = "UTC"
  kernel_args = ["iommu=pt"]
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
}

host "plain" {
  timezone = "UTC"
}

driver "doca" "doca32" {
  version = "3.2.1"
  repository { # NVIDIA's packages, mirrored inside the site
    url = "http://mirror.example/doca/3.2.1/debian12/x86_64/"
  }
}

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  fabric_manager = true # there is an NVSwitch
  repository { # likewise
    url = "http://mirror.example/cuda/debian12/x86_64/"
  }
}

driver "cuda" "r580-pcie" {
  version = "580.126.16"
  cuda    = "13.0"
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

driver "inbox" "rdma" {
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

fabric "infiniband" "compute" { # one switch has room for both: four nodes are 32 ports of 64
  rails    = 8
  link     = "400Gbps"
  topology = "fat-tree"
  levels   = 1
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

fabric "roce" "data" { # storage and serving
  link       = "100Gbps"
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
}

validation "train" {
  burn_in = "30min"
  quorum  = "75%"
  all_reduce {
    engine = "nccl"
    scope  = ["node", "pair", "all"]
    sizes  = ["8GiB"]
    floor  = "92%"
  }
}

validation "data" { # RDMA writes between storage nodes
  quorum = "75%"
  pair {
    engine = "perftest"
    size   = "1MiB"
  }
  limit "rdma.write_bw" {
    at_least = "12GB/s" # of 12.5
  }
}

handover "slurm" "batch" {
  controller = "10.20.0.3"
  partition  = "train"
  topology   = "flat"
}

handover "kubernetes" "serving" {
  endpoint = "https://10.20.0.5:6443"
  token    = secret("env:KUBE_TOKEN")
  ca       = "sha256:3f8fee624f43b2a9d685353269a0ab3eac785863ab6227636db1060fba1855e0" # made up: that of your cluster's CA
  labels   = { "ironrail.dev/gpu" = "l40s" }
}

role "storage" {
  hardware   = hardware.storage
  bmc        = bmc.ipmi
  image      = image.plain
  disks      = disk_layout.os
  host       = host.plain
  drivers    = [driver.rdma]
  validation = validation.data
  protect    = true # what it holds is worth more than a plan
}

role "head" {
  hardware = hardware.head
  bmc      = bmc.ipmi
  image    = image.plain
  disks    = disk_layout.os
  host     = host.plain
}

role "train" {
  hardware   = hardware.hgx-h100
  bmc        = bmc.redfish
  image      = image.gpu
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.doca32, driver.r580, driver.tools]
  validation = validation.train
  handover   = handover.batch
  rollout {
    canary     = 1
    batch      = "50%"
    stop_after = 1
  }
}

role "infer" {
  hardware = hardware.l40s
  bmc      = bmc.redfish
  image    = image.gpu
  disks    = disk_layout.os
  host     = host.gpu
  drivers  = [driver.doca32, driver.r580-pcie]
  handover = handover.serving
}

rack "r01" { # heads, storage, serving
  number     = 1
  row        = "A"
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

  node "n" {
    for_each = { for s in local.shipped : s.name => s if s.rack == rack.name }
    name     = each.key
    role     = role[local.roles[each.value.role]]
    unit     = tonumber(each.value.unit)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a", "b"]
  }

  switch "data" {
    name   = "data-1"
    model  = "SN3700"
    unit   = 46
    ports  = 32
    os     = "cumulus"
    power  = "500W"
    weight = "12kg"
    feeds  = ["a", "b"]
    fabric = fabric.data
  }
}

rack "r02" { # training
  number     = 2
  row        = "A"
  units      = 48
  max_power  = "44kW"
  cooling    = "36kW" # the load may be 37.3 kW: see allow below
  max_weight = "1000kg"

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

  node "n" {
    for_each = { for s in local.shipped : s.name => s if s.rack == rack.name }
    name     = each.key
    role     = role[local.roles[each.value.role]]
    unit     = tonumber(each.value.unit)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = tonumber(each.value.unit) <= 9 ? ["a1", "b1"] : ["a2", "b2"]
  }

  switch "leaf" {
    name   = "leaf-1"
    model  = "QM9700"
    unit   = 40
    ports  = 64
    os     = "mlnx-os"
    power  = "1720W" # QM97x0 user manual
    weight = "14.8kg"
    feeds  = ["a1", "b1"]
    fabric = fabric.compute
  }
}

cable { # storage and serving nodes in the order of the list
  for_each = { for i, s in [for s in local.shipped : s if s.role == "storage" || s.role == "infer"] : s.name => i }
  from     = "${each.key}/data/0"
  to       = "r01/data-1/${each.value + 1}"
  type     = "DAC"
  length   = "4m"
}

override "train-3" {
  reason  = "one DIMM is out for exchange"
  expires = "2029-12-31"
  serial  = "MADE90009" # its board was exchanged as well
}

override "head-2" {
  reason  = "its second supply is out for exchange"
  expires = "2029-12-31"
  feeds   = ["a"]
  allow   = ["power.one-feed"] # of this node only
}

allow "cooling.rack" { # of the whole site: the finding stays, as a warning
  reason  = "the row's second cooling unit is on order"
  expires = "2029-12-31"
}

hook "after" "validate" {
  command = ["/usr/local/bin/asset-db", "accepted"]
  timeout = "30s"
}
