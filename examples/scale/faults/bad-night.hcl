# Eight dead BMCs, two pairs of exchanged cables and a GPU that fell off the bus, on 128
# nodes or more: the end of the run names all of them within 40 lines.
#
#   ironrail -C examples/scale --var nodes=512 --var topology=rail-optimized rehearse --faults examples/scale/faults/bad-night.hcl

fault "bmc-dead" {
  node = "r0001-n3"
}

fault "bmc-dead" {
  node = "r0003-n1"
}

fault "bmc-dead" {
  node = "r0003-n2"
}

fault "bmc-dead" {
  node = "r0005-n8"
}

fault "bmc-dead" {
  node = "r0008-n5"
}

fault "bmc-dead" {
  node = "r0011-n4"
}

fault "bmc-dead" {
  node = "r0013-n6"
}

fault "bmc-dead" {
  node = "r0016-n7"
}

fault "cable-swap" {
  node = "r0012-n1"
  with = "r0012-n2"
}

fault "cable-swap" {
  node = "r0009-n1"
  with = "r0009-n4"
}

fault "missing-gpu" {
  node = "r0010-n2"
}
