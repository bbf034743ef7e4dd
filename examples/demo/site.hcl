# Two racks of 8-GPU nodes, as they are before the first pallet arrives. Nothing
# of it has to exist: `rehearse --faults faults/three.hcl` plants three faults.

variable "bmc_password" {
  default   = secret("env:BMC_PASSWORD")
  sensitive = true
}

variable "pdu_community" {
  default   = secret("env:PDU_COMMUNITY")
  sensitive = true
}

locals {
  shipped = csvdecode(file("manifest.csv")) # the vendor's list: rack,unit,serial,bmc_mac,boot_mac
  rails   = ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
}

site "demo" {
  domain    = "demo.example"
  max_erase = 16
}

controller "head1" {
  address   = "10.20.0.2"
  interface = "eno1"
}

state "file" {}

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

bmc "smc" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = var.bmc_password
  tls      = "pin-first-seen"
}

hardware "hgx-h100" {
  vendor     = "Supermicro"
  product    = "SYS-821GE-TNHR"
  rack_units = 8
  boot       = "uefi"
  power {
    typical  = "7.2kW"
    max      = "8.4kW"
    supplies = 6
    required = 3
  }
  cpu {
    model   = "Xeon 8480C"
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
}

driver "inbox" "rdma" {
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

fabric "roce" "compute" {
  rails      = 8
  link       = "400Gbps"
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.200.0.0/16"
  mtu        = 9000
}

validation "h100" {
  quorum = "75%"
  pair {
    engine = "perftest"
    size   = "1MiB"
  }
  all_reduce {
    engine = "mpi"
    scope  = ["all"]
    sizes  = ["1MiB", "64MiB"]
  }
  limit "rdma.write_bw" {
    at_least = "48GB/s"
  }
}

handover "slurm" "prod" {
  controller = "head1"
  partition  = "gpu"
  topology   = "tree"
}

role "worker" {
  hardware   = hardware.hgx-h100
  bmc        = bmc.smc
  image      = image.os
  disks      = disk_layout.os
  host       = host.gpu
  drivers    = [driver.rdma]
  validation = validation.h100
  handover   = handover.prod
}

rack "r" {
  for_each  = { "r01" = 1, "r02" = 2 }
  name      = each.key
  number    = each.value
  row       = "A"
  units     = 48
  max_power = "44kW"
  cooling   = "45kW"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 8 + 2 * rack.number)
      model     = "apc-rpdu2"
      community = var.pdu_community
    }
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8
    outlets = 36
    control {
      protocol  = "snmp"
      address   = cidrhost(network.oob.cidr, 9 + 2 * rack.number)
      model     = "apc-rpdu2"
      community = var.pdu_community
    }
  }

  node "gpu" {
    for_each = { for r in local.shipped : r.unit => r if r.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a", "b"]
  }
}

# The leaves stand in a rack of their own, one for each rail.
rack "net" {
  number = 3
  row    = "A"
  units  = 48

  switch "leaf" {
    for_each = { for rail in range(8) : "${rail + 1}" => 40 - 2 * rail }
    name     = "leaf-${each.key}"
    model    = "SN5600"
    unit     = each.value
    height   = 2
    ports    = 64
    os       = "sonic"
    fabric   = fabric.compute
  }
}

cable {
  for_each = { for c in flatten([for i, r in local.shipped : [for rail in range(8) : {
    node = "${r.rack}-u${format("%02d", tonumber(r.unit))}", rail = rail, index = i,
  }]]) : "${c.node}/${c.rail}" => c }
  from   = "${each.value.node}/rail/${each.value.rail}"
  to     = "net/leaf-${each.value.rail + 1}/${each.value.index + 1}"
  type   = "AOC"
  length = "10m"
}
