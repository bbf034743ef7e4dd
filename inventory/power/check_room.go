// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// rack judges what a rack draws, gives off and weighs.
func (c *checker) rack(i int) {
	r := &c.Racks[i]
	c.unknown(i)
	limit := func(check, summary string, found, limit unit.Watts, what, attribute, advice string, at hcl.Range) {
		if limit == 0 || !isOver(found, limit) {
			return
		}
		c.add(c.ofRack(i, finding{check: check, summary: summary, at: at, ratio: float64(found / limit),
			says: fmt.Sprintf("%s, and %s is %s", fmt.Sprintf(what, atLeast(found)), attribute, atMost(limit)), advice: advice}))
	}
	at := r.Rack.Ranges
	limit("power.rack", "Rack over its power", r.Load.Max, r.Rack.MaxPower, "draws up to %s", "max_power", "Move nodes to other racks.", at.MaxPower)
	limit("cooling.rack", "More heat than the air removes", r.Air, r.Rack.Cooling, "gives up to %s of heat to the air", "cooling", "Move nodes to other racks. If part of the heat goes into liquid, say liquid of the hardware's power.", at.Cooling)
	limit("cooling.rack", "More heat than the liquid removes", r.Liquid, r.Rack.LiquidCooling, "gives up to %s of heat to liquid", "liquid_cooling", "Move nodes to other racks.", at.LiquidCooling)
	c.dryRack(i, r)
	c.weight(i, r)
	c.shelves(i, r)
}

// ofRack completes a finding about a rack with all its nodes.
func (c *checker) ofRack(i int, f finding) finding {
	r := c.site.inv.Racks[i]
	f.who, f.name, f.in, f.nodes = "Rack "+r.Name, r.Name, r.Decl, r.Nodes[:len(r.Nodes):len(r.Nodes)]
	f.at = limitAt(f.at, r.Decl)
	return f
}

// dryRack warns of heat for liquid in a rack that knows its air only.
func (c *checker) dryRack(i int, r *Rack) {
	if r.Liquid == 0 || r.Rack.LiquidCooling > 0 || r.Rack.Cooling == 0 {
		return
	}
	c.add(c.ofRack(i, finding{check: "cooling.rack", summary: "Heat for liquid, but no liquid", warn: true, ratio: float64(r.Liquid), at: r.Rack.Ranges.Cooling,
		says: fmt.Sprintf("gives up to %s of heat to liquid, and says cooling by air only", atLeast(r.Liquid)), advice: "Add liquid_cooling."}))
}

// weight judges the load on the rack's frame.
func (c *checker) weight(i int, r *Rack) {
	if m := r.Rack.MaxWeight; m > 0 && float64(r.Weight) > float64(m)*(1+tolerance) {
		c.add(c.ofRack(i, finding{check: "weight.rack", summary: "Rack over its weight", at: r.Rack.Ranges.MaxWeight, ratio: float64(r.Weight / m),
			says: fmt.Sprintf("holds %s, and max_weight is %s", formatKilograms(r.Weight), m), advice: "Move nodes to other racks, or use a stronger one."}))
	}
}

func formatKilograms(m unit.Mass) string {
	return strconv.FormatFloat(float64(int64(float64(m)*10+0.999_999))/10, 'f', -1, 64) + "kg"
}

// shelves judges the power shelves of a rack together: with the supplies that
// their redundancy leaves, and without the largest shelf.
func (c *checker) shelves(i int, r *Rack) {
	if len(r.Shelves) == 0 {
		return
	}
	var limit, installed, largest unit.Watts
	redundant := false
	for _, sh := range r.Shelves {
		limit += sh.Limit
		installed += sh.Installed
		largest = max(largest, sh.Installed)
		redundant = redundant || sh.Shelf.Redundancy != "" && sh.Shelf.Redundancy != "n"
	}
	f := finding{check: "power.shelf", advice: "Add shelves or supplies, or move trays to another rack."}
	pooled := c.site.racks[i].pooled.Max
	switch {
	case isOver(pooled, limit):
		f.summary, f.ratio = "Power shelves over what they carry", float64(pooled/max(1, limit))
		f.says = fmt.Sprintf("carry %s of %s, what they have without their redundant supplies", atLeast(pooled), atMost(limit))
		if limit == installed {
			f.says = fmt.Sprintf("carry %s of %s", atLeast(pooled), atMost(limit))
		}
	case redundant && len(r.Shelves) > 1 && isOver(pooled, installed-largest):
		f.summary, f.ratio = "Power shelves over after loss of one", float64(pooled/max(1, installed-largest))
		f.says = fmt.Sprintf("carry %s of %s when one shelf fails", atLeast(pooled), atMost(installed-largest))
	default:
		return
	}
	c.add(c.of(&c.site.loads[c.site.racks[i].shelves], f))
}

// unknown warns of what does not say its power or weight in a rack that has
// limits: the sums are less than what will be there. Each hardware block, switch
// and shelf is named once.
func (c *checker) unknown(i int) {
	r := &c.Racks[i]
	at := &c.site.racks[i]
	if r.Unknown == 0 && (r.UnknownWeight == 0 || r.Rack.MaxWeight == 0) {
		return
	}
	for j := at.firstLoad; j < at.firstLoad+at.loads; j++ {
		if j != at.shelves {
			c.unknownLoad(&c.site.loads[j], r.Rack)
		}
	}
	for _, sh := range r.Rack.Shelves {
		if sh.Weight == 0 && r.Rack.MaxWeight > 0 {
			c.add(finding{check: "weight.unknown", summary: "Weight not given", warn: true, who: "Shelf " + sh.Name, name: sh.Name, at: sh.Decl, in: sh.Decl,
				says: "does not say what it weighs, and its rack has a max_weight", advice: "Add weight to the shelf."})
		}
	}
}

// unknownLoad warns when one load of a rack does not say its power or weight and
// something is to be held against them.
func (c *checker) unknownLoad(l *load, r *inventory.Rack) {
	limited := r.MaxPower > 0 || r.Cooling > 0 || r.LiquidCooling > 0
	if l.draw.Max == 0 && (limited || l.last > l.first || l.pooled) {
		c.add(c.ofKind(l, finding{check: "power.unknown", summary: "Power not given", warn: true,
			says: "does not say what it draws, so every sum that it belongs to is too low", advice: l.adviseAttribute("power")}))
	}
	if l.weight() == 0 && r.MaxWeight > 0 {
		c.add(c.ofKind(l, finding{check: "weight.unknown", summary: "Weight not given", warn: true,
			says: "does not say what it weighs, and its rack has a max_weight", advice: l.adviseAttribute("weight")}))
	}
}

func (l *load) adviseAttribute(attribute string) string {
	switch {
	case l.sw != nil:
		return "Add " + attribute + " to the switch."
	case attribute == "power":
		return "Add a power block with max to the hardware."
	}
	return "Add " + attribute + " to the hardware."
}

// ofKind completes a finding whose place is the hardware of a node.
func (c *checker) ofKind(l *load, f finding) finding {
	f = c.of(l, f)
	if l.node != nil && l.node.Hardware != nil {
		f.at, f.in = l.node.Hardware.Decl, l.node.Hardware.Decl
	}
	return f
}
