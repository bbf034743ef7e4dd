# How BMCs are reached. The password is never in these files: here it is in the
# environment of whoever runs `apply`.
bmc "board" {
  protocol = "redfish" # or "ipmi"
  network  = network.oob
  username = "ADMIN"
  password = secret("env:BMC_PASSWORD")
  tls      = "pin-first-seen"
}
