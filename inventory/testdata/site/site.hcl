# A site with what the language has: four fabrics, two schedulers, tray racks.

variable "bmc_password" {
  description = "of the account that ironrail makes on every BMC"
  default     = secret("file:/run/keys/bmc")
  sensitive   = true
}

variable "racks" {
  type    = number
  default = 2
}

locals {
  delivered = csvdecode(file("delivered.csv"))
  hall      = upper("a")
}

site "north" {
  domain       = "north.example"
  time_servers = ["10.1.0.2", "10.1.0.3"]
  max_erase    = 8
  geometry {
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "50cm"
  }
}

controller "one" {
  address   = cidrhost(network.boot.cidr, 2)
  interface = "bond0"
}

controller "two" {
  address = cidrhost(network.boot.cidr, 3)
}

state "etcd" {
  endpoints   = [for c in [controller.one, controller.two] : "https://${c.address}:2379"]
  prefix      = "/ironrail/north"
  authority   = "etcd/ca.pem"
  certificate = "/etc/ironrail/etcd.pem"
  key         = "/etc/ironrail/etcd.key"
}

network "oob" {
  cidr    = "10.0.0.0/16"
  gateway = cidrhost("10.0.0.0/16", 1)
  dhcp {
    pool = "10.0.255.0-10.0.255.254"
  }
}

network "boot" {
  cidr  = "10.1.0.0/16"
  cidr6 = "fd00:1::/64"
  dns   = ["10.1.0.2", "fd00:1::2"]
  dhcp {
    mode   = "proxy"
    relays = ["10.1.0.1"]
  }
}

network "tenant" {
  for_each = { red = 101, blue = 102 }
  cidr     = cidrsubnet("10.2.0.0/16", 8, each.value)
  vlan     = each.value
  mtu      = 9000
}

bmc "modern" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = var.bmc_password
  tls      = "aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99"
  factory {
    username = "root"
  }
}

bmc "old" {
  protocol = "ipmi"
  network  = network.oob
  username = "ironrail"
  password = secret("vault:kv/bmc#password")
  attach   = "shared"
  vlan     = 7
}

allow "network.overlap" {
  reason  = "The tenants of the pilot share a range until they move."
  expires = "2031-01-31"
}

hook "before" "handover" {
  command = ["/usr/local/bin/ticket", "close"]
}
