// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	far, near, apart := &inventory.Rack{Name: "a", Row: "B", Number: 1}, &inventory.Rack{Name: "b", Row: "A", Number: 2, Position: 1}, &inventory.Rack{Name: "c", Number: 3}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{far, near, apart},
		Nodes:    []*inventory.Node{{Name: "n1", Rack: far, Unit: 7}, {Name: "n2"}},
		Switches: []*inventory.Switch{{Name: "b/leaf-1", Rack: near, Unit: 40}, {Name: "compute/spine-1"}}}
	find := Places(inv)
	for s, want := range map[subject.ID]ending.Place{
		subject.OfNode("n1"):                            {Rack: "a", Order: 1, Unit: 7},
		{Kind: subject.Link, Name: "n1/rail/0"}:         {Rack: "a", Order: 1, Unit: 7},
		{Kind: subject.Switch, Name: "b/leaf-1"}:        {Rack: "b", Order: 0, Unit: 40},
		{Kind: subject.Link, Name: "b/leaf-1/17"}:       {Rack: "b", Order: 0, Unit: 40},
		{Kind: subject.PDU, Name: "c/a"}:                {Rack: "c", Order: 2},
		{Kind: subject.Rack, Name: "c"}:                 {Rack: "c", Order: 2},
		subject.OfNode("n2"):                            {}, // it stands in no rack
		subject.OfNode("n9"):                            {},
		{Kind: subject.Switch, Name: "compute/spine-1"}: {},
		{Kind: subject.PDU, Name: "z/a"}:                {},
		{Kind: subject.Fabric, Name: "n1"}:              {},
		{Kind: subject.Site, Name: "image.os"}:          {},
	} {
		if got, known := find(s); got != want || known != (want.Rack != "") {
			t.Errorf("%s: %+v, %v, want %+v", s, got, known, want)
		}
	}
}
