site "@SITE@" {
  domain    = "@SITE@.example" # the nodes are r01-u01.@SITE@.example and so on
  max_erase = 2                # one run erases no more nodes than this without your word
}

# Where ironrail runs. It answers DHCP, and serves images, on this interface.
controller "head1" {
  address   = "10.20.0.2"
  interface = "eno1"
}

# Networks. Addresses follow from the place: network + 64 x number of the rack +
# unit, so that a new node renumbers nobody. Unit 9 of rack 1 is 10.20.0.73.
network "boot" {
  cidr    = "10.20.0.0/22"
  gateway = "10.20.0.1"
  dhcp {
    mode   = "authoritative"
    relays = ["10.20.0.1"] # leave it out when the controller is on this network itself
  }
}

network "oob" { # of BMCs and PDUs
  cidr = "10.10.0.0/22"
}
