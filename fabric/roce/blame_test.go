// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestSuspectNamesItsFabric: rail 1 of a node with two fabrics is two NICs.
func TestSuspectNamesItsFabric(t *testing.T) {
	t.Parallel()
	compute, storage := &inventory.Fabric{}, &inventory.Fabric{}
	compute.Name, storage.Name = "compute", "storage"
	n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{NICs: []inventory.NIC{
		{Name: "a", Fabric: compute, Ports: []inventory.NICPort{{Rail: 0}, {Rail: 1}}}, {Name: "b", Fabric: storage, Ports: []inventory.NICPort{{Rail: 1}}}}}}
	got := suspectRails(compute, n, []int{0, 1})
	if len(got) != 2 || got[0].Part != "rail 0" || got[1].Part != "rail 1 of compute" {
		t.Errorf("suspects %+v", got)
	}
}
