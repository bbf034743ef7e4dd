// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/overrides"
)

var (
	oldMAC = addr.MAC{2, 0, 0, 0, 0, 1}
	newMAC = addr.MAC{2, 0, 0, 0, 0, 2}
)

// Whoever compares nodes with the site compares the chassis that stands there.
func TestObserverKnowsTheNewChassis(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	n := &inventory.Node{Name: "n7", Serial: "OLD1", BootMAC: oldMAC}
	was := overrides.ChassisOf(n)
	r := overrides.Replacement{Node: "n7", Chassis: overrides.Chassis{Serial: "NEW1", UUID: "u-new", BootMAC: newMAC}, Was: was}
	var b state.Batch
	if err = r.Put(&b); err == nil {
		_, err = store.Append(t.Context(), fence, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{n}}
	s := &Site{Inv: inv, loaded: overrides.None(inv, nil), network: network.NewMemory().At(netip.MustParseAddr("192.0.2.1"))}
	ob, err := s.Observer(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := ob.Inv.Node("n7"); overrides.ChassisOf(now) != r.Chassis {
		t.Errorf("%+v", overrides.ChassisOf(now))
	}
	if overrides.ChassisOf(n) != was {
		t.Errorf("the inventory that was loaded is another one: %+v", overrides.ChassisOf(n))
	}
}
