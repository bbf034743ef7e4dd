# What goes wrong on the first Monday: rehearse --faults faults/three.hcl

fault "missing-dimm" { # one slot of 32 is empty
  node = "r01-u17"
}

fault "degraded-link" { # one lane of four, with bit errors
  node = "r02-u09"
  port = "rail/3"
}

fault "pdu-trip" { # feed A of rack 2, while images are written
  pdu = "r02/a"
  at  = "install.write"
}
