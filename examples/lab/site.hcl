# The lab: two QEMU machines with real firmware and a real BMC each. `make lab`
# builds them from this very file and machines.csv, then brings them up.

variable "bmc_password" {
  default   = secret("env:LAB_BMC_PASSWORD")
  sensitive = true
}

locals {
  machines = csvdecode(file("machines.csv"))
}

site "lab" {
  domain    = "lab.example"
  max_erase = 2
}

controller "head" {
  address   = "10.77.0.2"
  interface = "lab-boot"
}

state "file" {}

network "oob" {
  cidr = "10.77.1.0/24"
}

network "boot" {
  cidr = "10.77.0.0/24"
  dns  = ["10.77.0.2"]
  dhcp {
    mode                 = "authoritative"
    router_advertisement = "empty" # lifetime 0, no prefix: spares iPXE 13 s of waiting
  }
}

bmc "sim" {
  protocol     = "ipmi"
  cipher_suite = 3 # ipmi_sim knows no other
  network      = network.oob
  username     = "admin"
  password     = var.bmc_password
}

hardware "lab-bios" {
  vendor       = "ironrail"
  product      = "lab-bios"
  rack_units   = 1
  boot         = "bios"
  loader       = "undionly.kpxe" # the ROM is iPXE already; a forced chain shows the way of other ROMs
  boot_timeout = "3min"          # a machine here is heard of within seconds
  power {
    typical  = "100W"
    max      = "150W"
    supplies = 1
    required = 1
  }
  cpu {
    sockets = 1
    cores   = 1
  }
  memory {
    size = "1GiB"
  }
  disk "os" {
    type  = "virtio"
    count = 1
    size  = ">= 4GB"
  }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe" # RDMA in the kernel, over an ordinary NIC
    ports         = [{ rail = 0, pci = "0000:00:04.0", panel = "rail 0" }]
  }
  console {
    port = "ttyS0"
    baud = 115200
  }
}

hardware "lab-uefi" {
  vendor       = "ironrail"
  product      = "lab-uefi"
  rack_units   = 1
  boot         = "uefi"
  boot_timeout = "3min"
  power {
    typical  = "100W"
    max      = "150W"
    supplies = 1
    required = 1
  }
  cpu {
    sockets = 1
    cores   = 1
  }
  memory {
    size = "1GiB"
  }
  disk "os" {
    type  = "virtio"
    count = 1
    size  = ">= 4GB"
  }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe"
    ports         = [{ rail = 0, pci = "0000:00:04.0", panel = "rail 0" }]
  }
  console {
    port = "ttyS0"
    baud = 115200
  }
}

hardware "lab-uefi-http" {
  vendor       = "ironrail"
  product      = "lab-uefi-http"
  rack_units   = 1
  boot         = "uefi-http"
  boot_timeout = "3min"
  power {
    typical  = "100W"
    max      = "150W"
    supplies = 1
    required = 1
  }
  cpu {
    sockets = 1
    cores   = 1
  }
  memory {
    size = "1GiB"
  }
  disk "os" {
    type  = "virtio"
    count = 1
    size  = ">= 4GB"
  }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe"
    ports         = [{ rail = 0, pci = "0000:00:04.0", panel = "rail 0" }]
  }
  console {
    port = "ttyS0"
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
    size       = "3GiB"
    filesystem = "ext4"
  }
}

host "lab" {
  # Emulated, on a busy machine: a timer that is late is no broken one.
  kernel_args = ["no_timer_check"]
  timezone    = "UTC"
}

driver "inbox" "rdma" { # the distribution's own RDMA stack, from a repository that the controller serves
  packages = ["rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]
}

fabric "roce" "rail" {
  rails      = 1
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "10.77.16.0/24"
  mtu        = 1500
}

validation "lab" {
  quorum = "50%" # one of the two alone is accepted too, with these tests not judged
  pair {
    engine = "perftest"
    size   = "64KiB"
  }
  all_reduce {
    engine = "mpi"
    scope  = ["all"]
    sizes  = ["4KiB", "1MiB"]
  }
  limit "rdma.write_bw" { # a quarter of what emulation gave: it is noisy
    at_least = "2MB/s"
  }
  limit "all_reduce.busbw" { # less than a quarter: it falls most when the controller is busy
    at_least = "5MB/s"
  }
}

handover "slurm" "lab" {
  controller = "head"
  partition  = "lab"
  topology   = "tree"
}

role "worker" {
  bmc        = bmc.sim
  image      = image.os
  disks      = disk_layout.os
  host       = host.lab
  drivers    = [driver.rdma]
  validation = validation.lab
  handover   = handover.lab
}

rack "lab" {
  units     = 12
  max_power = "1kW"

  node "n" {
    for_each = { for m in local.machines : m.name => m }
    name     = each.key
    role     = role.worker
    hardware = hardware[each.value.hardware]
    unit     = tonumber(each.value.unit)
    serial   = each.value.serial
    uuid     = each.value.uuid
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    address  = cidrhost(network.boot.cidr, 10 + tonumber(trimprefix(each.key, "n")))
    bmc {
      address = each.value.bmc_address
    }
  }
}
