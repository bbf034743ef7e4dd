// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestUnitsOfNodes: nodes are in the units of their leaves, where the files do not
// say another, and a storage fabric with units of its own does not count.
func TestUnitsOfNodes(t *testing.T) {
	t.Parallel()
	f := quantum2()
	f.UnitSize = 4
	inv := site(10, f)
	build(t, inv, Options{})
	hw := inv.Nodes[0].Hardware
	storage := &inventory.Fabric{Block: inventory.Block{Name: "storage"}}
	hw.NICs = append(hw.NICs, inventory.NIC{Name: "storage", Fabric: storage, Ports: []inventory.NICPort{{}}})
	other := &inventory.Switch{Name: "s9", ScalableUnit: 9, Fabric: storage}
	inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Switch: other}, To: inventory.CableEnd{Node: inv.Nodes[0], NIC: &hw.NICs[1]}})
	main := func(*inventory.Hardware) *inventory.Fabric { return f }

	units := UnitsOf(inv, main)
	for i, n := range inv.Nodes {
		if got, want := units[n], i/4+1; got != want {
			t.Errorf("%s: unit %d, want %d", n.Name, got, want)
		}
	}
	inv.Nodes[1].ScalableUnit = 7
	if got := UnitsOf(inv, main)[inv.Nodes[1]]; got != 7 {
		t.Errorf("unit %d, want that of the files", got)
	}
	everywhere := UnitsOf(inv, func(*inventory.Hardware) *inventory.Fabric { return nil })
	if u, ok := everywhere[inv.Nodes[0]]; ok || everywhere[inv.Nodes[2]] != 1 {
		t.Errorf("leaves of two units: unit %d, want none", u)
	}
}
