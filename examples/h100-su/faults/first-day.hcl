# What goes wrong on the first day: `make demo` plants all four.

fault "missing-gpu" { # one of eight fell off the bus
  node = "r02-u09"
}

fault "cable-swap" { # two plugs in each other's port of the leaf of rail 0
  node = "r04-u01"
  with = "r04-u09"
}

fault "high-ber" { # a worn cable: all lanes carry, and bits are wrong
  node = "r01-u09"
  port = "rail/3"
}

fault "pdu-trip" { # feed A of rack 3, while images are written
  pdu = "r03/a"
  at  = "install.write"
}
