# One scalable unit in a row of nine racks: eight of four nodes, the fifth of the
# row with eight leaves, one for each rail, and four spines.

variable "unit" {
  type        = number
  description = "The unit's number, from 1."
}

variable "row" {
  type        = string
  description = "The row that it stands in; its network rack is called after it."
}

variable "first_rack" {
  type        = number
  description = "The number of its first rack; the next seven follow."
}

variable "network" {
  type        = number
  description = "The number of its network rack."
}

variable "systems" {
  description = "The vendor's list: rack, unit, serial and MACs of each node. Those of other racks are passed over."
}

variable "role" {
  description = "What its nodes are for."
}

variable "fabric" {
  description = "The fabric that its switches belong to."
}

rack "r" {
  count         = 8
  name          = format("r%02d", var.first_rack + count.index)
  number        = var.first_rack + count.index
  scalable_unit = var.unit
  row           = var.row
  position      = count.index < 4 ? count.index + 1 : count.index + 2 # the network rack is fifth
  units         = 48
  max_power     = "44kW"
  cooling       = "44kW"
  max_weight    = "1000kg"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "c" {
    feed    = "C"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }

  node "gpu" {
    for_each = { for s in var.systems : s.unit => s if s.rack == rack.name }
    name     = "${rack.name}-u${format("%02d", tonumber(each.key))}"
    role     = var.role
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a", "b", "c"]
  }
}

rack "net" {
  name          = "net-${lower(var.row)}"
  number        = var.network
  scalable_unit = var.unit
  row           = var.row
  position      = 5
  units         = 48
  max_power     = "30kW"
  cooling       = "30kW"
  max_weight    = "1000kg"

  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }

  switch "leaf" {
    count         = 8
    name          = "leaf-${count.index + 1}"
    model         = "QM9700"
    unit          = 40 - count.index
    ports         = 64
    os            = "mlnx-os"
    power         = "1720W"
    weight        = "14.8kg"
    feeds         = ["a", "b"]
    fabric        = var.fabric
    tier          = "leaf"
    scalable_unit = rack.scalable_unit
    rail          = count.index
  }
  switch "spine" { # its share: a quarter of the 16
    count  = 4
    name   = "spine-${count.index + 1}"
    model  = "QM9700"
    unit   = 30 - count.index
    ports  = 64
    os     = "mlnx-os"
    power  = "1720W"
    weight = "14.8kg"
    feeds  = ["a", "b"]
    fabric = var.fabric
    tier   = "spine"
  }
}
