# A site with what a rehearsal simulates beside hardware: images, packages, some of them
# locked, a hook, and nodes that are protected.

site "whole" {
  domain    = "whole.example"
  max_erase = 8
}

controller "head" {
  address   = "10.21.0.2"
  interface = "eno1"
}

network "oob" { cidr = "10.11.0.0/22" }

network "boot" {
  cidr    = "10.21.0.0/22"
  gateway = "10.21.0.1"
  dhcp {
    mode   = "authoritative"
    relays = ["10.21.0.1"]
  }
}

bmc "redfish" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}

hardware "gpu" {
  rack_units = 8
  boot       = "uefi-http"
  power {
    typical  = "7kW"
    max      = "8kW"
    supplies = 6
    required = 3
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
    fabric = fabric.compute
    speed  = "400Gbps"
    ports  = [{ rail = 0, pci = "0000:18:00.0" }, { rail = 1, pci = "0000:40:00.0" }]
  }
}

hardware "cpu" {
  rack_units = 1
  boot       = "uefi"
  power {
    max      = "800W"
    supplies = 2
    required = 1
  }
  disk "os" { type = "nvme" }
  nic "mgmt" {
    speed   = "25Gbps"
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "data" {
    fabric = fabric.data
    speed  = "100Gbps"
    ports  = [{ rail = 0, pci = "0000:5e:00.0" }]
  }
}

image "debian" "hpc" {
  release  = "trixie"
  packages = ["openssh-server", "openmpi-bin"]
  digest   = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
}

image "debian" "plain" { release = "12" }

disk_layout "one" {
  on = "os"
  root { filesystem = "ext4" }
}

driver "cuda" "r580" {
  version        = "580.126.16"
  cuda           = "13.0"
  fabric_manager = true
  repository { url = "http://mirror.example/cuda/debian13/x86_64/" }
}

driver "tools" "tools" {
  nccl_tests { source = "sources/nccl-tests.tar.gz" }
}

driver "inbox" "rdma" { packages = ["rdma-core", "perftest", "openmpi-bin", "python3-mpi4py"] }

fabric "infiniband" "compute" {
  rails    = 2
  link     = "400Gbps"
  topology = "explicit"
  subnet_manager { run_on = [controller.head] }
}

fabric "roce" "data" {
  link       = "100Gbps"
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.210.0.0/16"
  mtu        = 9000
}

validation "gpu" {
  burn_in = "30min"
  all_reduce {
    engine = "nccl"
    scope  = ["node", "all"]
    sizes  = ["8GiB"]
  }
  limit "gpu.hbm_copy" { at_least = "2850GB/s" }
}

validation "cpu" {
  pair { size = "1MiB" }
  limit "rdma.write_bw" { at_least = "12GB/s" }
}

handover "kubernetes" "k8s" {
  endpoint = "https://10.21.0.3:6443"
  token    = secret("env:KUBE_TOKEN")
  ca       = "sha256:5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099"
}

handover "slurm" "batch" { controller = "head" }

role "trainer" {
  hardware   = hardware.gpu
  bmc        = bmc.redfish
  image      = image.hpc
  disks      = disk_layout.one
  drivers    = [driver.rdma, driver.r580, driver.tools]
  validation = validation.gpu
  handover   = handover.k8s
}

role "worker" {
  hardware   = hardware.cpu
  bmc        = bmc.redfish
  image      = image.plain
  disks      = disk_layout.one
  drivers    = [driver.rdma]
  validation = validation.cpu
  handover   = handover.batch
  protect    = true
}

hook "after" "validate" { command = ["/usr/local/bin/asset-db", "accepted"] }

rack "r" {
  name   = "r01"
  number = 1
  units  = 48

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
  }

  node "gpu" {
    count    = 2
    name     = "gpu-${count.index + 1}"
    role     = role.trainer
    unit     = 1 + 8 * count.index
    serial   = "GPU000${count.index + 1}"
    boot_mac = "02:00:00:00:01:0${count.index + 1}"
    bmc_mac  = "02:00:00:00:02:0${count.index + 1}"
    feeds    = ["a", "b"]
  }

  node "cpu" {
    count    = 2
    name     = "cpu-${count.index + 1}"
    role     = role.worker
    unit     = 40 + count.index
    serial   = "CPU000${count.index + 1}"
    boot_mac = "02:00:00:00:01:1${count.index + 1}"
    bmc_mac  = "02:00:00:00:02:1${count.index + 1}"
    feeds    = ["a", "b"]
  }
}

cable {
  for_each = { for c in setproduct([1, 2], [0, 1]) : "${c[0]}/${c[1]}" => c }
  from     = "gpu-${each.value[0]}/rail/${each.value[1]}"
  to       = "leaf/leaf-${each.value[1] + 1}/${each.value[0]}"
}

rack "leaf" {
  number = 2
  units  = 48
  switch "leaf" {
    count  = 2
    name   = "leaf-${count.index + 1}"
    unit   = 40 + count.index
    ports  = 64
    fabric = fabric.compute
  }
}
