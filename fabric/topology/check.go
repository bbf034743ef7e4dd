package topology

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Check x.
func Check(inv *inventory.Inventory, f *inventory.Fabric) diag.List { return nil }
