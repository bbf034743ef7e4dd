// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
)

// Colours of what stands in racks. All are light enough for text in svg.Ink and
// svg.Soft at 4.5:1 (WCAG 2.1, 1.4.3), or dark enough for white. None is the only
// sign of anything: roles, kinds and loads are written as well.
var roleFills = [...]string{"#d6e8fa", "#d9f0dc", "#fbe1d6", "#e9dff5", "#d3f0ee", "#efe6d8", "#e4e8c9", "#dfe3ea"}

const (
	switchFill = "#2f3d4f"
	nvlinkFill = "#4d3a63"
	shelfFill  = "#f5cf86"
	frameFill  = "#f6f8fa"
	overFill   = "#fde4e6"
)

// switchFillOf is the colour of a switch.
func switchFillOf(s *inventory.Switch) string {
	if s.Kind == "nvlink" {
		return nvlinkFill
	}
	return switchFill
}

// roleFill is the colour of a role.
func (d *Drawing) roleFill(role string) string { return roleFills[d.roles[role]%len(roleFills)] }

// loadColour returns the colour of a load: a share of its limit.
func loadColour(share float64) string {
	switch {
	case share > 1:
		return overFill
	case share > 0.9:
		return "#f9d58a"
	case share > 0.7:
		return "#bfe0a8"
	case share > 0.4:
		return "#dcefd0"
	default:
		return "#eff7ea"
	}
}

// legend writes what the colours in these racks mean, from x to the right.
func (d *Drawing) legend(c *svg.Canvas, x, y, w float64, racks []*Rack) {
	end := x + w
	roles, switches, nvlink, shelves := contentsOf(racks)
	item := func(fill, name string) {
		need := 22 + svg.TextWidth(name, svg.Font{}) + 14
		if x+need > end {
			return
		}
		c.Rect(x, y-10, 16, 12, svg.Paint{Fill: fill, Stroke: svg.Soft})
		c.Text(x+21, y, svg.Font{}, name)
		x += need
	}
	if d.opt.Nodes != nil {
		x = standingLegend(c, x, y, end)
		clear(roles)
	}
	for _, r := range d.inv.Roles {
		if roles[r.Name] {
			item(d.roleFill(r.Name), r.Name)
		}
	}
	if switches {
		item(switchFill, "switch")
	}
	if nvlink {
		item(nvlinkFill, "NVLink switch")
	}
	if shelves {
		item(shelfFill, "power shelf")
	}
	if mark := "typical power"; x+30+svg.TextWidth(mark, svg.Font{}) <= end {
		c.Line(x+4, y-11, x+4, y+3, svg.Paint{Stroke: svg.Ink, Width: 1.5})
		c.Text(x+11, y, svg.Font{}, mark)
	}
}

// contentsOf returns what stands in racks, by what it is drawn in.
func contentsOf(racks []*Rack) (roles map[string]bool, switches, nvlink, shelves bool) {
	roles = map[string]bool{}
	for _, r := range racks {
		for _, s := range r.rack.Switches {
			nvlink = nvlink || s.Kind == "nvlink"
			switches = switches || s.Kind != "nvlink"
		}
		shelves = shelves || r.Shelves > 0
		for _, n := range r.rack.Nodes {
			if n.Role != nil {
				roles[n.Role.Name] = true
			}
		}
	}
	return roles, switches, nvlink, shelves
}
