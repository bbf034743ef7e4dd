// SPDX-License-Identifier: Apache-2.0

// Package cable turns the cables of a site into what is ordered, labelled and
// laid: the route of each through the room, its type and length, the schedule
// and the bill of materials. It is pure: no I/O but the writers it is given, no
// clock. Everything is deterministic, linear in the number of cables but for one
// sort, and safe for concurrent use.
package cable

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Run is one cable as it is laid. A splitter cable is one run.
type Run struct {
	Cables []*inventory.Cable // one, or the halves of a splitter cable
	Label  string             // printed at both ends, unique in the site, at most 22 characters
	Route  unit.Length        // way from end to end with slack, the longest of a splitter; 0: an end has no place yet
	Length unit.Length        // to order, a length that is sold; as given for a cable block; 0: not known
	Type   string             // as of inventory.Cable, given or chosen; "": not known
	Part   string             // what it is, for the bill: "DAC 400Gbps"; "": not known
	Optics int                // ends that need a transceiver beside the cable

	Fabric *inventory.Fabric // that it belongs to; nil: none
	Rail   int               // -1: none
	Speed  unit.BitRate      // of all halves together; 0: not known

	medium string // of fibre
}

// ListRuns lists every cable of the site, computed or given, by fabric, then rail,
// then tier, then its from end.
func ListRuns(inv *inventory.Inventory) []Run {
	b := newBuilder(inv)
	order := b.order()
	runs := make([]Run, len(order))
	slab := make([]*inventory.Cable, 0, len(inv.Cables))
	labels := newLabeller(len(order))
	for i, k := range order {
		start := len(slab)
		slab = append(slab, inv.Cables[k.index])
		if len(b.halves) > 0 {
			slab = append(slab, b.halves[inv.Cables[k.index]]...)
		}
		r := &runs[i]
		r.Cables = slab[start:len(slab):len(slab)]
		b.fill(r)
		r.Label = labels.label(r)
	}
	b.oneMedium(runs)
	return runs
}

// builder knows what is looked up for each cable. It belongs to one goroutine.
type builder struct {
	inv     *inventory.Inventory
	room    *room
	halves  map[*inventory.Cable][]*inventory.Cable // further halves, by the first
	shelves map[shelfKey]shelf
	parts   map[partKey]string
	cages   cages

	last      shelfKey // that of the cable before, mostly the same
	lastShelf shelf
}

type shelfKey struct {
	kind  string
	speed unit.BitRate
}

func newBuilder(inv *inventory.Inventory) *builder {
	b := &builder{inv: inv, room: newRoom(inv), halves: map[*inventory.Cable][]*inventory.Cable{}, shelves: map[shelfKey]shelf{}, parts: map[partKey]string{}, cages: newCages()}
	for _, c := range inv.Cables {
		if c.Splitter != nil {
			b.halves[c.Splitter] = append(b.halves[c.Splitter], c)
		}
	}
	return b
}

// rankOf is the rank of a cable in the schedule.
type rankOf struct {
	group uint64 // fabric, rail or tier
	from  uint64 // node or switch, port, lane
	index int    // in the inventory
}

// order ranks the cables, splitters by their first half.
func (b *builder) order() []rankOf {
	ends := rankEnds(b.inv)
	fabrics := make(map[*inventory.Fabric]uint64, len(b.inv.Fabrics))
	for i, f := range b.inv.Fabrics {
		fabrics[f] = uint64(i + 1)
	}
	out := make([]rankOf, 0, len(b.inv.Cables))
	for i, c := range b.inv.Cables {
		if c.Splitter != nil {
			continue
		}
		out = append(out, rankOf{fabrics[fabricOf(c)]<<8 | uint64(tierRank(c)), ends.of(&c.From), i})
	}
	slices.SortFunc(out, func(x, y rankOf) int {
		if x.group != y.group {
			return cmp.Compare(x.group, y.group)
		}
		if x.from != y.from {
			return cmp.Compare(x.from, y.from)
		}
		return cmp.Or(strings.Compare(nicOf(b.inv.Cables[x.index]), nicOf(b.inv.Cables[y.index])), cmp.Compare(x.index, y.index))
	})
	return out
}

// nicOf is the name of the block that a cable comes from.
func nicOf(c *inventory.Cable) string {
	if c.From.NIC == nil {
		return ""
	}
	return c.From.NIC.Name
}

// endRanks are the ranks of nodes and switches in their sorted lists.
type endRanks struct {
	nodes    map[*inventory.Node]uint64
	switches map[*inventory.Switch]uint64
}

func rankEnds(inv *inventory.Inventory) endRanks {
	r := endRanks{make(map[*inventory.Node]uint64, len(inv.Nodes)), make(map[*inventory.Switch]uint64, len(inv.Switches))}
	for i, n := range inv.Nodes {
		r.nodes[n] = uint64(i)
	}
	for i, s := range inv.Switches {
		r.switches[s] = uint64(len(inv.Nodes) + i)
	}
	return r
}

func (r endRanks) of(e *inventory.CableEnd) uint64 {
	rank := uint64(1)<<40 - 1 // neither: last
	switch {
	case e.Node != nil:
		rank = r.nodes[e.Node]
	case e.Switch != nil:
		rank = r.switches[e.Switch]
	}
	return rank<<24 | uint64(e.Port)&0xffff<<8 | uint64(e.Lane)&0xff
}

// The tiers of cables after the rails, which are 0 to 63.
const (
	toNode = 64 + iota
	leafSpine
	spineCore
	elsewhere
)

// tierRank is the rail of a cable, or what it connects.
func tierRank(c *inventory.Cable) int {
	if r := railOf(c); r >= 0 {
		return r
	}
	tier := func(t inventory.Tier) bool {
		return c.From.Switch != nil && c.From.Switch.Tier == t || c.To.Switch != nil && c.To.Switch.Tier == t
	}
	switch {
	case c.From.Node != nil || c.To.Node != nil:
		return toNode
	case tier(inventory.Leaf):
		return leafSpine
	case tier(inventory.Core):
		return spineCore
	}
	return elsewhere
}

// railOf is the rail of a cable; -1: none.
func railOf(c *inventory.Cable) int {
	if c.Computed() {
		return c.Rail
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if n := e.NIC; n != nil && n.Fabric != nil && e.Port < len(n.Ports) {
			return n.Ports[e.Port].Rail
		}
	}
	return -1
}

// fabricOf is the fabric that a cable belongs to; nil: none.
func fabricOf(c *inventory.Cable) *inventory.Fabric {
	if c.Fabric != nil {
		return c.Fabric
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC != nil && e.NIC.Fabric != nil {
			return e.NIC.Fabric
		}
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC == nil && e.Switch != nil && e.Switch.Fabric != nil {
			return e.Switch.Fabric
		}
	}
	return nil
}

// fill finds the route, the speed and the product of a run.
func (b *builder) fill(r *Run) {
	c := r.Cables[0]
	r.Fabric, r.Rail = fabricOf(c), railOf(c)
	for _, h := range r.Cables {
		w := b.room.route(h)
		if w == 0 {
			r.Route = 0
			break
		}
		r.Route = max(r.Route, w)
	}
	r.Speed = speedOf(r)
	r.Type, r.Length = c.Type, c.Length
	if r.Route == 0 && r.Length == 0 {
		return
	}
	w := b.cableOf(r)
	p, l := b.shelf(r).choose(w)
	if p == nil {
		return
	}
	r.Type, r.medium = p.typ, p.medium
	if r.Length == 0 {
		r.Length = l
	}
	r.Part = b.part(p, r, w.splitter)
	if p.typ == "fibre" {
		r.Optics = 1 + len(r.Cables)
		if !w.splitter {
			r.Optics = 2
		}
	}
}

// cableOf is what the cable of a run has to be.
func (b *builder) cableOf(r *Run) want {
	w := want{typ: r.Cables[0].Type, need: max(r.Route, r.Cables[0].Length), splitter: len(r.Cables) > 1 && !b.cages.straight(r)}
	a, z := b.cages.sharing(r, &r.Cables[0].From), b.cages.sharing(r, &r.Cables[0].To)
	w.shared = a || z
	if w.typ != "" && a != z { // copper from a twin-port cage parts into its two ports
		w.splitter = true
	}
	return w
}

// shelf is what is sold for a run.
func (b *builder) shelf(r *Run) shelf {
	k := shelfKey{kindOf(r), r.Speed}
	if k == b.last {
		return b.lastShelf
	}
	s, ok := b.shelves[k]
	if !ok {
		s = shelfOf(k.kind, k.speed)
		b.shelves[k] = s
	}
	b.last, b.lastShelf = k, s
	return s
}
