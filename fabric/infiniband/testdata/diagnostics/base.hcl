site "t" { domain = "t.example" }
controller "head1" { address = "10.20.0.2" }
network "oob" { cidr = "10.10.0.0/16" }
network "boot" { cidr = "10.20.0.0/16" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
hardware "login" {
  power { max = "1kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
}
hardware "gpu" {
  power { max = "1kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" {
    fabric = fabric.compute
    ports  = [{ rail = 0, pci = "0000:18:00.0" }]
  }
}
