package draw

import (
	"github.com/ironrail/ironrail/inventory"
)

// Fabric is one fabric in numbers.
type Fabric struct {
	Name string `json:"name"`
}

func newFabrics(inv *inventory.Inventory) []*Fabric { return nil }

func tierName(t inventory.Tier, n int) string { return string(t) }
