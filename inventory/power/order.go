// SPDX-License-Identifier: Apache-2.0

package power

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// demand is what one thing asks of a circuit, as a share of what it draws.
type demand struct {
	circuit int // 3 x PDU + circuit; after those of the PDUs, the shelves of each rack
	share   float64
}

// starter is one thing that waits to be switched on.
type starter struct {
	load    *load // nil: a switch without a place, which is on no PDU that is known
	name    string
	level   int // 0: a switch; then by the order of roles
	demands []demand
}

// sequence is the state of an order that is being made.
type sequence struct {
	most    []unit.Watts // that each circuit's breaker carries, not derated
	running []unit.Watts // of what has been switched on
	inrush  []unit.Watts // of the batch that is being filled
	touched []int        // circuits of inrush that are not zero
}

// order fills batch after batch, greedily: switches first, since nodes boot from
// the network; then nodes, those of a role after the roles that it names in
// `after`.
func (s *site) order() []Batch {
	waiting := s.starters()
	q := s.sequence()
	var out []Batch
	for len(waiting) > 0 {
		level := waiting[0].level
		n := slices.IndexFunc(waiting, func(x starter) bool { return x.level != level })
		if n < 0 {
			n = len(waiting)
		}
		now := waiting[:n:n]
		waiting = waiting[n:]
		for len(now) > 0 {
			var b Batch
			b, now = q.fill(now)
			out = append(out, b)
		}
	}
	return out
}

// fill takes what fits beside what runs, and returns the rest in its order.
func (q *sequence) fill(waiting []starter) (b Batch, rest []starter) {
	rest = waiting[:0]
	var taken []starter
	for _, x := range waiting {
		if !q.fits(x) {
			rest = append(rest, x)
			continue
		}
		b.Names = append(b.Names, x.name)
		if x.load == nil {
			continue
		}
		b.Watts += x.load.inrush
		taken = append(taken, x)
		for _, d := range x.demands {
			if q.inrush[d.circuit] == 0 {
				q.touched = append(q.touched, d.circuit)
			}
			q.inrush[d.circuit] += x.load.inrush * unit.Watts(d.share)
		}
	}
	for _, x := range taken {
		for _, d := range x.demands {
			q.running[d.circuit] += x.load.draw.Max * unit.Watts(d.share)
		}
	}
	for _, c := range q.touched {
		q.inrush[c] = 0
	}
	q.touched = q.touched[:0]
	return b, rest
}

// fits reports whether a thing may join the batch. Alone on a circuit it always
// may: nothing would become better by waiting.
func (q *sequence) fits(x starter) bool {
	for _, d := range x.demands {
		if in := q.inrush[d.circuit]; in > 0 && isOver(q.running[d.circuit]+in+x.load.inrush*unit.Watts(d.share), q.most[d.circuit]) {
			return false
		}
	}
	return true
}

func (s *site) sequence() *sequence {
	n := 3*len(s.pdus) + len(s.racks)
	q := &sequence{most: make([]unit.Watts, n), running: make([]unit.Watts, n), inrush: make([]unit.Watts, n)}
	for i := range s.pdus {
		for c := range s.pdus[i].circuits {
			q.most[3*i+c] = unit.Watts(s.pdus[i].most)
		}
	}
	for i, r := range s.inv.Racks {
		for _, sh := range r.Shelves {
			q.most[3*len(s.pdus)+i] += sh.Capacity * unit.Watts(sh.Count)
		}
	}
	return q
}

// starters lists everything by level, and by name within it.
func (s *site) starters() []starter {
	levels := roleLevels(s.inv.Roles)
	out := make([]starter, 0, len(s.loads)+len(s.inv.Switches))
	demands := make([]demand, 0, len(s.plugs))
	for i := range s.loads {
		l := &s.loads[i]
		if l.isShelves() {
			continue
		}
		at := len(demands)
		demands = s.demandsOf(l, demands)
		x := starter{load: l, name: l.name, demands: demands[at:len(demands):len(demands)]}
		if l.node != nil {
			x.level = 1
			if l.node.Role != nil {
				x.level += levels[l.node.Role]
			}
		}
		out = append(out, x)
	}
	for _, sw := range s.inv.Switches {
		if sw.Rack == nil {
			out = append(out, starter{name: sw.Name})
		}
	}
	slices.SortFunc(out, func(a, b starter) int {
		if a.level != b.level {
			return a.level - b.level
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// demandsOf appends what a load asks of each circuit, those of the PDUs behind
// its shelves among them.
func (s *site) demandsOf(l *load, to []demand) []demand {
	from := len(to)
	plugs := s.plugs[l.first:l.last]
	if l.pooled {
		to = append(to, demand{3*len(s.pdus) + l.rack, 1})
		shelves := &s.loads[s.racks[l.rack].shelves]
		plugs = s.plugs[shelves.first:shelves.last]
	}
	for _, x := range plugs {
		if x.pdu < 0 {
			continue
		}
		c := 3*x.pdu + x.circuit
		if i := slices.IndexFunc(to[from:], func(d demand) bool { return d.circuit == c }); i >= 0 {
			to[from+i].share += x.share
			continue
		}
		to = append(to, demand{c, x.share})
	}
	return to
}

// roleLevels counts for each role how many come before it. The loader has seen
// that `after` has no circle; a longer chain than there are roles would be one.
func roleLevels(roles []*inventory.Role) map[*inventory.Role]int {
	levels := make(map[*inventory.Role]int, len(roles))
	for range roles {
		changed := false
		for _, r := range roles {
			for _, before := range r.After {
				if levels[r] <= levels[before] {
					levels[r], changed = levels[before]+1, true
				}
			}
		}
		if !changed {
			break
		}
	}
	return levels
}
