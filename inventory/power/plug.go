// SPDX-License-Identifier: Apache-2.0

package power

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// feeds are those of a node or switch.
func (l *load) feeds() []inventory.Feed {
	switch {
	case l.node != nil:
		return l.node.Feeds
	case l.sw != nil:
		return l.sw.Feeds
	}
	return nil
}

// required is how many of its supplies it needs at its maximum.
func (l *load) required() int {
	if l.node != nil && l.node.Hardware != nil {
		return max(1, l.node.Hardware.Power.Required)
	}
	return 1
}

// plugIn connects the supplies of a node or switch. Each carries what it must
// when only as many are left as are required: a chassis is built so.
func (s *site) plugIn(at *rack, l *load) {
	feeds := l.feeds()
	l.first = len(s.plugs)
	for _, f := range feeds {
		s.plug(at, f, l.draw.Max/unit.Watts(l.required()), 1/float64(len(feeds)))
	}
	l.last = len(s.plugs)
}

// plugShelves connects the supplies of all shelves of a rack, which feed one bus
// bar and share its load by what each may carry.
func (s *site) plugShelves(at *rack, r *inventory.Rack, l *load) {
	var installed unit.Watts
	for _, sh := range r.Shelves {
		installed += sh.Capacity * unit.Watts(sh.Count)
	}
	l.first = len(s.plugs)
	for _, sh := range r.Shelves {
		share := 0.0
		if installed > 0 {
			share = float64(sh.Capacity / installed)
		}
		for i := range sh.Count {
			if i < len(sh.Feeds) {
				s.plug(at, sh.Feeds[i], sh.Capacity, share)
			} else {
				s.plugs = append(s.plugs, plug{pdu: -1, feed: -1, rating: sh.Capacity, share: share})
			}
		}
		s.countCords(at, sh)
	}
	l.last = len(s.plugs)
}

// countCords corrects the outlets that a shelf needs: its supplies are behind one
// cord for each PDU, but for those whose outlet is given.
func (s *site) countCords(at *rack, sh *inventory.Shelf) {
	for j := range at.pdus {
		p := &s.pdus[at.firstPDU+j]
		loose := 0
		for _, f := range sh.Feeds[:min(len(sh.Feeds), sh.Count)] {
			if f.PDU == p.PDU && f.Outlet == 0 {
				loose++
			}
		}
		p.plugs -= max(0, loose-1)
	}
}

func (s *site) plug(at *rack, f inventory.Feed, rating unit.Watts, share float64) {
	x := plug{pdu: -1, feed: -1, outlet: f.Outlet, rating: rating, share: share}
	for j := range at.pdus {
		if p := &s.pdus[at.firstPDU+j]; p.PDU == f.PDU {
			x.pdu, x.feed, x.circuit = at.firstPDU+j, p.feed, p.circuitOf(p.PDU, f.Outlet)
			p.plugs++
			if f.Outlet > 0 {
				p.placed++
			}
		}
	}
	s.plugs = append(s.plugs, x)
}

// assign adds the loads of a rack to the circuits. Those with an outlet are where
// they are; then, in order of unit, each supply without one goes to the circuit
// with the least load, which gives equal supplies the phases in turn: as
// a technician plugs them in.
func (s *site) assign(at *rack) {
	for _, known := range []bool{true, false} {
		for i := at.firstLoad; i < at.firstLoad+at.loads; i++ {
			l := &s.loads[i]
			for j := l.first; j < l.last; j++ {
				x := &s.plugs[j]
				if x.pdu < 0 || (x.circuit >= 0) != known {
					continue
				}
				p := &s.pdus[x.pdu]
				if !known {
					x.circuit = p.lightest()
				}
				p.load[x.circuit] = p.load[x.circuit].plus(l.draw.times(x.share))
			}
		}
	}
}

// lightest is the circuit with the least load, the first of equals. A millionth
// of a watt is no difference: sums of the same loads in another order are equal.
func (p *pdu) lightest() int {
	best := 0
	for c := 1; c < p.circuits; c++ {
		if p.load[c].Max < p.load[best].Max-1e-6 {
			best = c
		}
	}
	return best
}
