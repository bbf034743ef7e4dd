# What every case has beside its own files.
site "s" {}
network "boot" {
  cidr = "10.1.0.0/24"
}
network "oob" {
  cidr = "10.0.0.0/24"
}
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
hardware "h" {
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
}
