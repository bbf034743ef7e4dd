# The rack, and what stands in it.
rack "r01" {
  number     = 1 # addresses follow from it: never change it
  row        = "A"
  units      = 48
  max_power  = "44kW"
  cooling    = "44kW" # of air
  max_weight = "1000kg"

  # Two PDUs on each feed: with one feed lost the other two carry all.
  pdu "a1" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "a2" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b1" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
  pdu "b2" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "63A"
    derate  = 0.8 # of a breaker's rating, for a load that stays
    outlets = 36
  }
