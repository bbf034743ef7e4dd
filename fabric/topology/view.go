// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// view is a fabric as its cables make it.
type view struct {
	f        *inventory.Fabric
	cables   []edge
	switches []*vertex // in the order of the inventory
}

// edge is one cable of the fabric, seen from below.
type edge struct {
	cable *inventory.Cable
	node  *inventory.Node // nil: between switches, or of what manages the fabric
	nic   *inventory.NIC
	port  int // of the node
	low   *vertex
	high  *vertex // nil where a node is below
	end   *inventory.CableEnd
}

// vertex is a switch.
type vertex struct {
	*inventory.Switch
	tier     inventory.Tier // as given or computed, else by what hangs on it
	down, up float64        // speed of the cables, or their number where a speed is not known
	spines   []*vertex      // of each uplink of a leaf
}

// viewOf collects the cables that end in a port of the fabric: of its NICs, or of a
// switch that is said to be its own. Switches that only these cables name count
// as well.
func viewOf(inv *inventory.Inventory, f *inventory.Fabric) *view {
	v := &view{f: f}
	by := map[*inventory.Switch]*vertex{}
	at := func(s *inventory.Switch) *vertex {
		if s != nil && by[s] == nil {
			by[s] = &vertex{Switch: s, tier: s.Tier}
			v.switches = append(v.switches, by[s])
		}
		return by[s]
	}
	for _, s := range inv.Switches {
		if s.Fabric == f {
			at(s)
		}
	}
	v.tiers(v.collect(inv.Cables, at), at)
	v.sum()
	return v
}

// collect takes up the cables between nodes and switches, and returns those between
// switches, whose lower end is not known yet.
func (v *view) collect(cables []*inventory.Cable, at func(*inventory.Switch) *vertex) (between []*inventory.Cable) {
	own := 0
	for _, c := range cables {
		if !v.excludes(c) {
			own++
		}
	}
	v.cables = make([]edge, 0, own)
	between = make([]*inventory.Cable, 0, own/2)
	for _, c := range cables {
		low, high := &c.From, &c.To
		if low.Switch != nil && high.Switch == nil {
			low, high = high, low
		}
		if high.Switch == nil || v.excludes(c) {
			continue
		}
		switch {
		case low.Node != nil && low.NIC != nil && low.NIC.Fabric == v.f:
			v.cables = append(v.cables, edge{cable: c, node: low.Node, nic: low.NIC, port: low.Port, low: at(high.Switch), end: high})
		case low.Switch != nil && (low.Switch.Fabric == v.f || high.Switch.Fabric == v.f):
			between = append(between, c)
		case c.Computed():
			v.cables = append(v.cables, edge{cable: c, low: at(high.Switch), end: high})
		}
	}
	return between
}

// excludes reports whether a cable was computed for another fabric.
func (v *view) excludes(c *inventory.Cable) bool { return c.Computed() && c.Fabric != v.f }

// tiers works out what switches are whose tier nobody says: one with nodes is a
// leaf, one linked to leaves a spine, one above these a core.
func (v *view) tiers(between []*inventory.Cable, at func(*inventory.Switch) *vertex) {
	for i := range v.cables {
		if s := v.cables[i].low; s.tier == inventory.NoTier {
			s.tier = inventory.Leaf
		}
	}
	for _, step := range [][2]inventory.Tier{{inventory.Leaf, inventory.Spine}, {inventory.Spine, inventory.Core}} {
		if !slices.ContainsFunc(v.switches, func(s *vertex) bool { return s.tier == inventory.NoTier }) {
			break // of a computed fabric
		}
		for _, c := range between {
			a, b := at(c.From.Switch), at(c.To.Switch)
			if a.tier == step[0] && b.tier == inventory.NoTier {
				b.tier = step[1]
			} else if b.tier == step[0] && a.tier == inventory.NoTier {
				a.tier = step[1]
			}
		}
	}
	for _, c := range between {
		e := edge{cable: c, low: at(c.From.Switch), high: at(c.To.Switch), end: &c.To}
		if e.low.tier.Height() > e.high.tier.Height() {
			e.low, e.high, e.end = e.high, e.low, &c.From
		}
		v.cables = append(v.cables, e)
	}
}

// sum adds up what goes down from and up from each leaf.
func (v *view) sum() {
	speeds := true
	for i := range v.cables {
		speeds = speeds && v.speed(&v.cables[i]) > 0
	}
	for i := range v.cables {
		e := &v.cables[i]
		weight := 1.0
		switch {
		case speeds:
			weight = float64(v.speed(e))
		case e.cable.From.Lane == 0 && e.cable.To.Lane == 0: // a port of many lanes
			weight = float64(max(v.f.Switch.Split, 1))
		}
		if e.high == nil {
			e.low.down += weight
			continue
		}
		if e.low.tier == inventory.Leaf && e.high.tier == inventory.Spine {
			e.low.up += weight
			e.low.spines = append(e.low.spines, e.high)
		}
	}
}

// speed is that of a cable; 0: not known.
func (v *view) speed(e *edge) unit.BitRate {
	var nic unit.BitRate
	if e.nic != nil {
		nic = e.nic.Speed
	}
	link := v.f.Link
	if e.high != nil && v.f.Switch.Speed > 0 {
		link = v.f.Switch.Speed
	}
	return cmp.Or(e.cable.Speed, nic, link)
}
