// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Design computes the topology of a fabric.
func Design(inv *inventory.Inventory, f *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
	return topology.Build(inv, f, topology.Options{Kind: "ethernet"})
}

// Check looks at the cables of a fabric, given or computed.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	f := topology.Of(inv, b)
	if f == nil {
		return nil
	}
	return topology.Check(inv, f)
}
