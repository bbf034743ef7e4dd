image "rhel" "hpc" {
  release = "9.6"
  digest  = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}

image "oci" "tray" {
  source = "registry.north.example/os/tray:1.4"
}

disk_layout "mirror" {
  on   = "os"
  raid = 1
  swap = "16GiB"
  root {
    size       = "200GB"
    filesystem = "xfs"
  }
  data "scratch" {
    mount = "/scratch"
  }
  preserve = ["label:scratch"]
}

disk_layout "plain" {
  on = "os"
  root {}
}

host "gpu" {
  timezone    = "Europe/Vienna"
  kernel_args = ["iommu=pt"]
  sysctl      = { "vm.max_map_count" = 1048576 }
  bond "bond0" {
    members = ["mgmt/0", "mgmt/1"]
  }
  accounts {
    authorized_keys = [file("keys/ops.pub")]
  }
  user_data = templatefile("user-data.tmpl", { domain = site.north.domain, ntp = site.north.time_servers })
}

driver "rocm" "rocm" {
  version = "7.0"
}

driver "cuda" "r580" {
  version        = "580.126.16"
  module         = "open"
  fabric_manager = true
}

fabric "roce" "scale-out" {
  rails      = 8
  link       = "400Gbps"
  topology   = "rail-optimized"
  unit_size  = 32
  addressing = "point-to-point"
  cidr       = "10.128.0.0/12"
  mtu        = 9000
  lossless {
    priority = 3
    pfc      = true
  }
}

fabric "infiniband" "compute" {
  rails    = 2
  topology = "explicit"
  subnet_manager {
    run_on = [controller.one, controller.two]
  }
  partition "red" {
    pkey = "0x0010"
  }
  partition "blue" {
    pkey  = "0x7ffe"
    ipoib = true
  }
}

fabric "nvlink" "domain" {
  domain_size = 72
  imex        = true
}

validation "all" {
  burn_in = "1h"
  quorum  = "90%"
  all_reduce {
    engine = "rccl"
    scope  = ["node", "all"]
    sizes  = ["16GiB", "8GiB"]
  }
  limit "gpu.temperature" {
    at_most = "90"
  }
  limit "pair.latency" {
    at_least = "500ns"
    at_most  = "3us"
  }
  allow "iommu" {
    reason = "virtual machines of tenants"
  }
}

handover "kubernetes" "k8s" {
  endpoint = "https://10.1.0.9:6443"
  token    = secret("exec:kube-token")
  labels   = { "hall" = local.hall }
}

handover "exec" "cmdb" {
  command = ["/usr/local/bin/cmdb", "add"]
}

role "amd" {
  hardware   = hardware.mi300x
  bmc        = bmc.modern
  image      = image.hpc
  disks      = disk_layout.mirror
  host       = host.gpu
  drivers    = [driver.rocm]
  validation = validation.all
  handover   = handover.k8s
  after      = [role.nvl]
}

role "nvl" {
  bmc        = bmc.old
  image      = image.tray
  disks      = disk_layout.plain
  drivers    = [driver.r580]
  partitions = ["compute/red", "compute/blue"]
  handover   = handover.cmdb
  protect    = true
}
