disk_layout "os" {
  on = "os" # the disk of the hardware block, never a device name
  root {
    filesystem = "ext4"
  }
}

host "gpu" {
  timezone    = "UTC"
  kernel_args = ["iommu=pt"]
  # The GPU module is built for one kernel: hold it on the nodes (apt-mark hold).
  # accounts {
  #   authorized_keys = [file("keys/me.pub")]
  # }
}
