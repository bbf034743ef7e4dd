// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"cmp"
	"slices"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/inventory"
)

// reportRacks are the racks of the site, each with what stands in it from the lowest unit
// up. Racks in which nothing stands are left out.
func reportRacks(inv *inventory.Inventory) (out []report.Rack) {
	for _, r := range inv.Racks {
		x := report.Rack{Name: r.Name, Units: r.Units}
		for _, n := range r.Nodes {
			x.Places = append(x.Places, report.Place{Name: n.Name, Kind: report.NodePlace, Unit: n.Unit, Height: n.Height()})
		}
		for _, s := range r.Switches {
			x.Places = append(x.Places, report.Place{Name: s.Name, Kind: report.SwitchPlace, Unit: s.Unit, Height: s.Height})
		}
		for _, s := range r.Shelves {
			x.Places = append(x.Places, report.Place{Name: s.Name, Kind: report.ShelfPlace, Unit: s.Unit, Height: s.Height})
		}
		if len(x.Places) == 0 {
			continue
		}
		slices.SortStableFunc(x.Places, func(a, b report.Place) int { return cmp.Or(a.Unit-b.Unit, cmp.Compare(a.Name, b.Name)) })
		out = append(out, x)
	}
	return out
}
