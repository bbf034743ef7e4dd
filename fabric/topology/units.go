// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// sort brings the nodes into the order of the room and into groups.
func (d *design) sort() {
	slices.SortStableFunc(d.members, func(a, b member) int { return byPlace(a.node, b.node) })
	switch d.f.Topology {
	case "rail-optimized":
		d.railUnits()
	case "fat-tree":
		d.treeUnits()
	default:
		d.racks()
	}
}

// byPlace orders nodes by rack number, unit and name.
func byPlace(a, b *inventory.Node) int {
	return cmp.Or(cmp.Compare(rackNumber(a.Rack), rackNumber(b.Rack)), cmp.Compare(a.Unit, b.Unit), strings.Compare(a.Name, b.Name))
}

func rackNumber(r *inventory.Rack) int {
	if r == nil {
		return 0
	}
	return r.Number
}

// railUnits are scalable units with a leaf for each rail.
func (d *design) railUnits() {
	one := d.rails == 1 && d.f.Levels <= 1 && d.f.UnitSize == 0 && !d.numbered() && len(d.members) <= d.leaf.ports*d.perPort
	switch {
	case d.f.UnitSize > 0:
		d.slots = d.f.UnitSize
	case one:
		d.slots = d.leaf.ports * d.perPort
	default:
		d.slots = d.half() * d.perPort
	}
	if d.slots == 0 {
		d.refuse("fabric.capacity", d.f.Place("switch"), "Too few switch ports", "A leaf of fabric %q has %d ports; it needs one for nodes and one for spines at least.", d.f.Name, d.leaf.ports)
		return
	}
	d.units(d.slots)
	d.fits()
	for i := range d.groups {
		g := &d.groups[i]
		g.first, g.leaves = len(d.leaves), d.rails
		if !d.allows(g) {
			return
		}
		for r := range d.rails {
			d.leaves = append(d.leaves, leaf{unit: g.unit, rail: r})
		}
		seatMembers(g.members, d.slots)
	}
}

// treeUnits fills leaves with nodes in their order, all ports of a node on one
// leaf where they fit. Scalable units, where there are any, have leaves of their
// own.
func (d *design) treeUnits() {
	if d.f.Levels <= 1 && !d.numbered() && d.f.UnitSize == 0 && len(d.members)*d.rails <= d.leaf.ports*d.perPort {
		d.slots = d.leaf.ports * d.perPort
	} else {
		d.slots = d.half() * d.perPort
	}
	perLeaf := d.slots / d.rails
	if perLeaf == 0 {
		d.refuse("fabric.unit-size", d.f.Place("switch"), "Node has more ports than a leaf", "A node has %d ports on fabric %q, and a leaf has room for %d links down. Take topology \"rail-optimized\", or a switch with more ports.", d.rails, d.f.Name, d.slots)
		return
	}
	if d.f.UnitSize > 0 || d.numbered() {
		d.units(d.f.UnitSize)
		d.fits()
	} else {
		d.groups = []group{{members: d.members}}
	}
	for i := range d.groups {
		g := &d.groups[i]
		room := max(len(g.members), d.f.UnitSize)
		g.first, g.leaves = len(d.leaves), (room+perLeaf-1)/perLeaf
		if !d.allows(g) {
			return
		}
		for range g.leaves {
			d.leaves = append(d.leaves, leaf{unit: g.unit, rail: -1, number: len(d.leaves) + 1})
		}
		seatMembers(g.members, g.leaves*perLeaf)
	}
	d.slots = perLeaf * d.rails
}

// maxLeaves is the most leaves of one plane of a fabric.
const maxLeaves = 100_000

// allows reports whether a group's leaves can be added; it refuses where not.
func (d *design) allows(g *group) bool {
	if g.first+g.leaves > maxLeaves {
		d.refuse("fabric.capacity", d.f.Place("unit_size"), "More leaves than one fabric may have", "The units of fabric %q come to more than %d leaves. Make unit_size smaller, or take switches with more ports.", d.f.Name, maxLeaves)
	}
	return !d.failed
}

// numbered reports whether the site says which scalable unit nodes are in.
func (d *design) numbered() bool {
	return slices.ContainsFunc(d.members, func(m member) bool { return m.node.ScalableUnit > 0 })
}

// units puts nodes into the units that they name, and the others, in order, into
// units of so many that nobody names.
func (d *design) units(size int) {
	by := map[int][]member{}
	var order []int
	add := func(u int, m member) {
		if by[u] == nil {
			order = append(order, u)
		}
		by[u] = append(by[u], m)
	}
	named := map[int]bool{}
	for _, m := range d.members {
		if u := m.node.ScalableUnit; u > 0 {
			named[u] = true
			add(u, m)
		}
	}
	u := 0
	for _, m := range d.members {
		if m.node.ScalableUnit > 0 {
			continue
		}
		if u == 0 || size > 0 && len(by[u]) >= size {
			for u++; named[u]; u++ {
			}
		}
		add(u, m)
	}
	slices.Sort(order)
	for _, u := range order {
		d.groups = append(d.groups, group{unit: u, members: by[u]})
	}
}

// fits reports units with more nodes than they may have.
func (d *design) fits() {
	for _, g := range d.groups {
		room, why := d.slots, fmt.Sprintf("unit_size is %d", d.f.UnitSize)
		if d.f.UnitSize > 0 {
			room = d.f.UnitSize
		} else if d.f.Topology == "rail-optimized" {
			why = fmt.Sprintf("a leaf has %d ports, of which %d go to nodes (links of %d nodes)", d.leaf.ports, (d.slots+d.perPort-1)/d.perPort, d.slots)
		} else {
			continue
		}
		if len(g.members) > room {
			extra := g.members[room].node
			d.refuse("fabric.unit-size", d.f.Place("unit_size"), "Too many nodes in a scalable unit", "Scalable unit %d of fabric %q has %d nodes, and %s; %s is the first too many. Put nodes into another unit, raise unit_size, or allow a higher oversubscription.", g.unit, d.f.Name, len(g.members), why, extra.Name).
				Also("the first node too many", extra.Decl).Of(extra.Name)
		}
	}
}

// seatMembers gives each node of a group its slot. Where the racks are alike a slot
// belongs to a place: rack by rack, each unit that any of them uses, so that a
// node in a free place later moves nobody. Where that does not fit they follow
// each other.
func seatMembers(members []member, room int) {
	var racks, heights []int
	for _, m := range members {
		racks, heights = append(racks, rackNumber(m.node.Rack)), append(heights, m.node.Unit)
	}
	slices.Sort(racks)
	slices.Sort(heights)
	racks, heights = slices.Compact(racks), slices.Compact(heights)
	grid := len(racks)*len(heights) <= room
	used := map[int]bool{}
	for i := range members {
		r, _ := slices.BinarySearch(racks, rackNumber(members[i].node.Rack))
		h, _ := slices.BinarySearch(heights, members[i].node.Unit)
		members[i].slot = r*len(heights) + h
		grid = grid && !used[members[i].slot]
		used[members[i].slot] = true
	}
	if grid {
		return
	}
	for i := range members {
		members[i].slot = i
	}
}

// checkRails reports nodes of one unit with different rails, and rails that no
// node has.
func (d *design) checkRails() {
	has := make([]bool, d.rails)
	for _, m := range d.members {
		for _, o := range m.outlets {
			if o.rail < d.rails {
				has[o.rail] = true
			}
		}
	}
	if r := slices.Index(has, false); r >= 0 {
		d.found.Add("fabric.rails", d.f.Place("rails"), "Rail without a port", fmt.Sprintf("Fabric %q has %d rails, and no node has a port on rail %d. Correct rails, or the ports of the hardware.", d.f.Name, d.rails, r)).In(d.f.Decl)
	}
	if d.f.Topology != "rail-optimized" {
		return
	}
	for _, g := range d.groups {
		var odd []string
		first := g.members[0]
		for _, m := range g.members[1:] {
			if m.node.Hardware != first.node.Hardware && !sameRails(m.outlets, first.outlets) {
				odd = append(odd, m.node.Name)
			}
		}
		if len(odd) == 0 {
			continue
		}
		n, _ := d.inv.Node(odd[0])
		d.found.Add("fabric.rails", n.Decl, "Nodes of one unit with different rails", fmt.Sprintf("In scalable unit %d of fabric %q, %s has the rails %s, and not so %s. Give each kind of node a unit of its own with scalable_unit.",
			g.unit, d.f.Name, first.node.Name, railList(first.outlets), diag.Few(odd, len(odd)))).Also("the unit's first node", first.node.Decl).Of(odd...)
	}
}

func sameRails(a, b []outlet) bool {
	return slices.EqualFunc(a, b, func(x, y outlet) bool { return x.rail == y.rail })
}

func railList(list []outlet) string {
	var out []string
	for _, o := range list {
		out = append(out, fmt.Sprint(o.rail))
	}
	return strings.Join(out, ", ")
}
