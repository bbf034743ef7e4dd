// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// racks are groups with leaves in the rack itself: its own switches of the
// fabric, or as many computed ones as its rails need. The rails go over a rack's
// leaves in turn.
func (d *design) racks() {
	var order []*inventory.Rack
	by := map[*inventory.Rack][]member{}
	for _, m := range d.members {
		if by[m.node.Rack] == nil {
			order = append(order, m.node.Rack)
		}
		by[m.node.Rack] = append(by[m.node.Rack], m)
	}
	room, most := d.half()*d.perPort, 0
	if len(order) == 1 {
		room = d.leaf.ports * d.perPort
	}
	var all []member
	for _, r := range order {
		most, all = max(most, len(by[r]), d.f.UnitSize), append(all, by[r]...)
	}
	rank := tierHeights(all, most)
	for _, r := range order {
		g := group{rack: r, members: by[r], first: len(d.leaves)}
		own := d.rackLeaves(r)
		if g.leaves = min((len(own)+d.planes-1)/d.planes, d.rails); g.leaves == 0 {
			g.leaves = d.leavesFor(max(len(by[r]), d.f.UnitSize), room)
		}
		if !d.allows(&g) {
			return
		}
		for i := range g.leaves {
			first := min(i*d.planes, len(own))
			d.leaves = append(d.leaves, leaf{rack: r, own: own[first:min(first+d.planes, len(own))], rail: -1, number: i + 1})
			if g.leaves == d.rails {
				d.leaves[len(d.leaves)-1].rail = i
			}
		}
		for i := range g.members {
			m := &g.members[i]
			if m.slot = i; rank != nil {
				m.slot, _ = slices.BinarySearch(rank, m.node.Unit)
			}
			d.slots = max(d.slots, (m.slot+1)*d.perLeaf(g))
		}
		d.slots = max(d.slots, d.f.UnitSize*d.perLeaf(g))
		d.groups = append(d.groups, g)
	}
}

// perLeaf is the number of rails of a rack that one of its leaves has.
func (d *design) perLeaf(g group) int { return (d.rails + g.leaves - 1) / g.leaves }

// tierHeights lists the units of racks that nodes stand in, when a slot for each fits
// and no two nodes of a rack share one: then slots follow the places.
func tierHeights(all []member, most int) []int {
	type spot struct {
		rack *inventory.Rack
		unit int
	}
	seen := map[spot]bool{}
	var list []int
	for _, m := range all {
		s := spot{m.node.Rack, m.node.Unit}
		if seen[s] {
			return nil
		}
		seen[s] = true
		list = append(list, m.node.Unit)
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > most {
		return nil
	}
	return list
}

// rackLeaves are the switches of a rack that are leaves of the fabric.
func (d *design) rackLeaves(r *inventory.Rack) (list []*inventory.Switch) {
	if r == nil {
		return nil
	}
	for _, s := range r.Switches {
		if s.Fabric == d.f && tierOf(s) != inventory.Spine && tierOf(s) != inventory.Core {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *inventory.Switch) int { return cmp.Or(a.Plane-b.Plane, a.Unit-b.Unit) })
	return list
}

// leavesFor is the fewest leaves on which the rails of so many nodes fit.
func (d *design) leavesFor(nodes, room int) int {
	for k := 1; k < d.rails; k++ {
		if (d.rails+k-1)/k*nodes <= room {
			return k
		}
	}
	return d.rails
}

// tierOf is the tier of a switch, as given or as its label says.
func tierOf(s *inventory.Switch) inventory.Tier {
	if s.Tier != inventory.NoTier {
		return s.Tier
	}
	for _, t := range []inventory.Tier{inventory.Leaf, inventory.Spine, inventory.Core} {
		if strings.HasPrefix(strings.ToLower(s.Label), string(t)) {
			return t
		}
	}
	return inventory.NoTier
}

func (d *design) half() int { return halfPorts(d.leaf.ports, d.down, d.up, d.f.Oversubscription) }
