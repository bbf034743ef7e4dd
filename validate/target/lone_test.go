// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestUnmeasuredRails: the rails of each fabric, and the nearest accepted node of the same validation, of the same rack
// where there is one.
func TestUnmeasuredRails(t *testing.T) {
	t.Parallel()
	compute, storage := &inventory.Fabric{Block: inventory.Block{Name: "compute"}}, &inventory.Fabric{Block: inventory.Block{Name: "storage"}}
	hw := &inventory.Hardware{NICs: []inventory.NIC{
		{Name: "rail", Fabric: compute, Ports: []inventory.NICPort{{Rail: 2}, {Rail: 0}, {Rail: 1}}},
		{Name: "store", Fabric: storage, Ports: []inventory.NICPort{{Rail: 3}}},
		{Name: "mgmt", Ports: []inventory.NICPort{{}}}}}
	racks := []*inventory.Rack{{Name: "r1"}, {Name: "r2"}}
	tested, other := &inventory.Validation{}, &inventory.Validation{}
	inv := &inventory.Inventory{}
	for i, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		n := &inventory.Node{Name: name, Hardware: hw, Validation: tested, Rack: racks[i/3]}
		inv.Nodes = append(inv.Nodes, n)
	}
	inv.Nodes[1].Validation = other
	for _, c := range []struct {
		name, of string
		accepted []string
		want     string
	}{
		{"of the same rack", "n3", []string{"n1", "n2", "n4"}, "rails 0 to 2 of fabric compute and rail 3 of fabric storage of n3 are not measured: no other node is tested with it, and nodes in service are left in peace. `ironrail test n3 n1` drains both and measures them; a third node tells whose a bad rail is"},
		{"of another rack", "n3", []string{"n2", "n5"}, "rails 0 to 2 of fabric compute and rail 3 of fabric storage of n3 are not measured: no other node is tested with it, and nodes in service are left in peace. `ironrail test n3 n5` drains both and measures them; a third node tells whose a bad rail is"},
		{"nobody", "n3", []string{"n2"}, "rails 0 to 2 of fabric compute and rail 3 of fabric storage of n3 are not measured: no other node is tested with it, and nodes in service are left in peace. They can be measured once another node of its role is in service"},
	} {
		n, _ := inv.Node(c.of)
		if got := UnmeasuredRails(inv, n, func(m *inventory.Node) bool { return slices.Contains(c.accepted, m.Name) }); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := UnmeasuredRails(inv, &inventory.Node{Name: "n6", Hardware: &inventory.Hardware{}}, nil); got != "" {
		t.Errorf("without rails: %q", got)
	}
	two := &inventory.Hardware{NICs: []inventory.NIC{{Fabric: compute, Ports: []inventory.NICPort{{Rail: 0}, {Rail: 2}}}}}
	if got := railsOn(&inventory.Node{Hardware: two}, compute); got != "rails 0, 2" {
		t.Errorf("%q", got)
	}
}
