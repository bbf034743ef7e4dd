  # One node for each row of the list with this rack.
  node "gpu" {
    for_each = { for s in local.shipped : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = tonumber(each.key) <= 9 ? ["a1", "b1"] : ["a2", "b2"] # three supplies on each: one feed may go
  }
