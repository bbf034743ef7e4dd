# Sixteen MI300X nodes with RoCE: eight rails of 400G, an IP network of its own on
# every cable (/31), leaves with SONiC, and Kubernetes at the end.
#
# Sources: AMD Instinct MI300X data sheet (192 GB, 750 W); Supermicro
# AS-8125GS-TNMR2 product page (8 U, 6 supplies of 3,000 W, 2 x EPYC 9004); /31 a
# link with eBGP, as in Juniper's validated design for AI fabrics; 64 ports of 400G
# in 2 U are those of a Tomahawk 4 switch.

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list; these serials and MACs are made up
  rails   = ["0000:06:00.0", "0000:23:00.0", "0000:43:00.0", "0000:66:00.0", "0000:86:00.0", "0000:a3:00.0", "0000:c3:00.0", "0000:e6:00.0"]
}

site "mi300x" {
  domain       = "mi300x.example"
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

login "sonic" { # one account on all switches of the fabric
  username = "admin"
  password = secret("env:SONIC_PASSWORD")
}

hardware "mi300x" {
  vendor     = "Supermicro"
  product    = "AS -8125GS-TNMR2"
  rack_units = 8
  weight     = "105kg" # a budget, with rails and cables
  boot       = "uefi"
  power {
    typical  = "7.5kW" # a budget: measure your own load
    max      = "8.9kW" # capped below three supplies
    supplies = 6       # of 3 kW
    required = 3
  }
  cpu {
    model   = "EPYC 9654"
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
    count        = 8
    memory       = "192GB"
    interconnect = "xgmi"
  }
  disk "os" {
    type = "nvme"
    size = ">= 900GB"
  }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
  hca "rail" {
    fabric    = fabric.compute
    model     = "BCM57608"
    speed     = "400Gbps"
    link_type = "ethernet"
    ports     = [for i, a in local.rails : { rail = i, pci = a, panel = "QSFP ${i + 1}" }]
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
  on = "os"
  root {
    size       = "200GB"
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone = "UTC"
  # numa_balancing: ROCm, single-node network configuration
  kernel_args = ["iommu=pt", "pci=realloc=off", "numa_balancing=disable"]
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
}

driver "rocm" "rocm7" {
  version = "7.0.2"
  amdgpu  = "30.10.2"
  repository { # AMD's packages, mirrored inside the site
    url        = "http://mirror.example/rocm/apt/7.0.2"
    suite      = "jammy"
    components = ["main"]
  }
}

driver "tools" "tools" { # what the tests of nodes run: Open MPI, perftest, and the tests of RCCL, which the controller compiles once
  # github.com/ROCm/rccl-tests has no releases: take an archive of a commit, and put it
  # here before `ironrail image build`. ironrail.lock keeps what it was.
  rccl_tests {
    source = "sources/rccl-tests.tar.gz"
  }
  rocm_checksum {} # compares what GPUs compute
}

fabric "roce" "compute" {
  rails      = 8
  link       = "400Gbps"
  topology   = "rail-optimized"
  unit_size  = 32 # half filled: the leaves are those of the whole unit
  addressing = "point-to-point"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
  login      = login.sonic
  switch {
    model = "AS9736-64D"
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

validation "mi300x" {
  burn_in     = "30min"
  quorum      = "90%"
  provisional = true # who is left is tested all the same, and with the others again
  all_reduce {
    engine = "rccl"
    scope  = ["node", "pair", "all"]
    sizes  = ["8GiB", "16GiB"]
    floor  = "87%" # 350 of 400 GB/s at 16 GiB, as AMD's cluster tests ask
  }
}

handover "kubernetes" "prod" {
  endpoint = "https://10.20.0.5:6443"
  token    = secret("env:KUBE_TOKEN")                                                  # of an account that may do what docs/handover.md lists
  ca       = "sha256:27edd77f68923bde7236d4b09a09f55b814db93cafc48fa5b7a1451d9228d982" # made up: that of your cluster's CA
  labels   = { "ironrail.dev/site" = "mi300x" }
  taints   = ["amd.com/gpu=present:NoSchedule"]
}

role "worker" {
  hardware   = hardware.mi300x
  bmc        = bmc.redfish
  image      = image.hpc
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.rocm7, driver.tools]
  validation = validation.mi300x
  handover   = handover.prod
}

rack "r" {
  for_each   = { r01 = 1, r02 = 2, r03 = 3, r04 = 4 }
  name       = each.key
  number     = each.value
  row        = "A"
  position   = each.value <= 2 ? each.value : each.value + 1
  units      = 48
  max_power  = "44kW"
  cooling    = "44kW"
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
      address   = cidrhost(network.oob.cidr, 2 * rack.number + 6)
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
      address   = cidrhost(network.oob.cidr, 2 * rack.number + 7)
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
    feeds    = ["a", "b"]
  }
}

rack "net" {
  number     = 5
  row        = "A"
  position   = 3
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

  switch "leaf" {
    count         = 8
    name          = "leaf-${count.index + 1}"
    model         = "AS9736-64D"
    unit          = 40 - 2 * count.index
    height        = 2
    ports         = 64
    os            = "sonic"
    address       = cidrhost(network.oob.cidr, 3841 + count.index) # 10.10.15.1 and so on
    power         = "1.5kW"                                        # a budget, with optics
    weight        = "25kg"
    feeds         = ["a", "b"]
    fabric        = fabric.compute
    tier          = "leaf"
    scalable_unit = 1
    rail          = count.index
  }
  switch "spine" {
    count   = 4
    name    = "spine-${count.index + 1}"
    model   = "AS9736-64D"
    unit    = 20 - 2 * count.index
    height  = 2
    ports   = 64
    os      = "sonic"
    address = cidrhost(network.oob.cidr, 3857 + count.index)
    power   = "1.5kW"
    weight  = "25kg"
    feeds   = ["a", "b"]
    fabric  = fabric.compute
    tier    = "spine"
  }
}
