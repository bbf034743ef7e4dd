// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Places finds where subjects of a site stand: nodes and switches with their units, links where their
// end stands that names them, PDUs and power shelves by their racks. A walk goes by row, and in a row
// by the positions of its racks, or their numbers.
func Places(inv *inventory.Inventory) ending.Places {
	racks := slices.Clone(inv.Racks)
	slices.SortFunc(racks, (*inventory.Rack).CompareWalk)
	order, switches := map[string]int{}, map[string]*inventory.Switch{}
	for i, r := range racks {
		order[r.Name] = i
	}
	for _, s := range inv.Switches {
		switches[s.Name] = s
	}
	in := func(r *inventory.Rack, unit int) (ending.Place, bool) {
		if r == nil {
			return ending.Place{}, false
		}
		return ending.Place{Rack: r.Name, Order: order[r.Name], Unit: unit}, true
	}
	return func(s subject.ID) (ending.Place, bool) {
		first, _, _ := strings.Cut(s.Name, "/")
		switch s.Kind {
		case subject.Node, subject.Link, subject.Switch:
			for name := s.Name; ; {
				if n, ok := inv.Node(name); ok {
					return in(n.Rack, n.Unit)
				}
				if sw := switches[name]; sw != nil {
					return in(sw.Rack, sw.Unit)
				}
				end := strings.LastIndexByte(name, '/')
				if end < 0 {
					return ending.Place{}, false
				}
				name = name[:end] // a port of it
			}
		case subject.Rack, subject.PDU, subject.Shelf:
			if i := slices.IndexFunc(racks, func(r *inventory.Rack) bool { return r.Name == first }); i >= 0 {
				return in(racks[i], 0)
			}
		}
		return ending.Place{}, false
	}
}
