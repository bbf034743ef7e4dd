// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"math"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// pdu judges one PDU: with all feeds; then, if that is right, without one; then
// how its phases compare.
func (c *checker) pdu(p *pdu) {
	c.outlets(p)
	switch {
	case c.overloaded(p, "power.pdu", "power.phase", p.load, -1):
	case c.afterLoss(p):
	default:
		c.imbalance(p)
	}
}

// overloaded reports a PDU that carries too much, as a whole or on one line, after
// the loss of a feed if lost is not negative.
func (c *checker) overloaded(p *pdu, whole, line string, load [3]Load, lost int) bool {
	if carried, limit := sumLoads(load).Max, unit.Watts(p.limit); isOver(carried, limit) {
		after, when := c.when(lost)
		c.add(c.ofPDU(p, finding{check: whole, summary: "PDU over its limit" + after, ratio: float64(carried / max(1, limit)),
			says:   fmt.Sprintf("carries %s of %s (%s)%s", atLeast(carried), atMost(limit), p.rating(), when),
			advice: "Move nodes to other racks, or use larger PDUs."}, nil))
		return true
	}
	lines, at := p.lines(load), 0
	for i := range p.circuits {
		if lines[i] > lines[at] {
			at = i
		}
	}
	if !isOver(unit.Watts(lines[at]), unit.Watts(p.amps)) {
		return false
	}
	after, when := c.when(lost)
	c.add(c.ofPDU(p, finding{check: line, summary: "Phase over its limit" + after, ratio: lines[at] / p.amps,
		says:   fmt.Sprintf("carries %s of %s (%s) on phase %d%s", formatAmperes(lines[at], 0.999_999), formatAmperes(p.amps, 0.000_001), p.rating(), at+1, when),
		advice: p.spread()}, func(circuit int) bool { return circuit == at || p.delta && circuit == (at+2)%3 }))
	return true
}

// when is what a summary and a detail say about a feed that is lost.
func (c *checker) when(lost int) (summary, detail string) {
	if lost < 0 {
		return "", ""
	}
	return " after feed loss", fmt.Sprintf(" when feed %q is lost", c.site.feeds[lost].name)
}

// spread says what to do about a phase.
func (p *pdu) spread() string {
	if p.placed == 0 {
		return "No supply says its outlet, so they are taken to be spread over the phases in order of unit. Say the outlets if it is to be otherwise, or move nodes to other racks."
	}
	return "Move supplies to outlets of the other phases."
}

// rating is what the plate of a PDU says.
func (p *pdu) rating() string {
	phases := ""
	if p.circuits == 3 {
		phases = ", 3 phases"
	}
	return fmt.Sprintf("%s, %s%s, derated to %s", p.Voltage, p.Current, phases, toPercent(p.Derate))
}

// ofPDU completes a finding about a PDU with the nodes on it, or on some of its
// circuits.
func (c *checker) ofPDU(p *pdu, f finding, on func(circuit int) bool) finding {
	f.who, f.name, f.at, f.in = "PDU "+p.Name, p.Name, p.Decl, p.Decl
	hangs := func(l *load) bool {
		for _, x := range c.site.plugs[l.first:l.last] {
			if x.pdu >= 0 && c.site.pdus[x.pdu].PDU == p.PDU && (on == nil || on(x.circuit)) {
				return true
			}
		}
		return false
	}
	shelves := c.site.racks[p.rack].shelves
	through := shelves >= 0 && hangs(&c.site.loads[shelves])
	f.nodes = c.nodes(p.rack, func(l *load) bool { return l.pooled && through || hangs(l) })
	return f
}

// afterLoss reports the loss of a feed that overloads a PDU, the worst one.
func (c *checker) afterLoss(p *pdu) bool {
	var worst *loss
	worstRatio := 0.0
	for i := range p.losses {
		l := &p.losses[i]
		after := addLoads(p.load, l.extra)
		ratio := float64(sumLoads(after).Max) / max(1, p.limit)
		for _, amps := range p.lines(after) {
			ratio = max(ratio, amps/max(1e-3, p.amps))
		}
		if ratio > worstRatio {
			worst, worstRatio = l, ratio
		}
	}
	if worst == nil {
		return false
	}
	return c.overloaded(p, "power.feed-loss", "power.feed-loss", addLoads(p.load, worst.extra), worst.feed)
}

// outlets reports more plugs than outlets.
func (c *checker) outlets(p *pdu) {
	if p.Outlets == 0 || p.plugs <= p.Outlets {
		return
	}
	f := c.ofPDU(p, finding{check: "power.outlets", summary: "More plugs than outlets", ratio: float64(p.plugs) / float64(p.Outlets),
		says:   fmt.Sprintf("has %s, and %d plugs go into it", diag.Count(p.Outlets, "outlet", "outlets"), p.plugs),
		advice: "Connect some of the supplies to another PDU of the same feed, or use one with more outlets."}, nil)
	f.at = limitAt(p.OutletsRange, p.Decl)
	c.add(f)
}

// unequal is how far phases may differ, as a share of the largest: 10 %, a usual
// rule of data centre operators for three-phase supplies.
const unequal = 0.10

// imbalance warns of phases that differ, where another outlet for one supply
// would help. Supplies without an outlet are spread by us, so they are nobody's
// mistake, and what has too few plugs to be equal cannot be fixed.
func (c *checker) imbalance(p *pdu) {
	if p.circuits < 3 || p.placed == 0 {
		return
	}
	high, low := 0, 0
	for i := range p.circuits {
		if p.load[i].Max > p.load[high].Max {
			high = i
		}
		if p.load[i].Max < p.load[low].Max {
			low = i
		}
	}
	apart := p.load[high].Max - p.load[low].Max
	if !isOver(apart, p.load[high].Max*unequal) {
		return
	}
	mover, share := c.mover(p, high, apart)
	if mover == nil {
		return
	}
	what := "phase"
	if p.delta {
		what = "pair of phases"
	}
	c.add(c.ofPDU(p, finding{check: "power.imbalance", summary: "Phases that differ", warn: true, ratio: float64(apart / p.load[high].Max),
		says: fmt.Sprintf("carries %s on %s %d and %s on %s %d, which is more than %g%% apart", atLeast(p.load[high].Max), what, high+1, atLeast(p.load[low].Max), what, low+1, unequal*100),
		advice: fmt.Sprintf("A supply of %s (%s) could go to an outlet of %s %d instead.",
			mover.name, atLeast(share), what, low+1)}, func(circuit int) bool { return circuit == high }))
}

// mover is what has a supply on a circuit that would do better on one that
// carries so much less, the largest of them.
func (c *checker) mover(p *pdu, circuit int, apart unit.Watts) (best *load, most unit.Watts) {
	at := &c.site.racks[p.rack]
	for i := at.firstLoad; i < at.firstLoad+at.loads; i++ {
		l := &c.site.loads[i]
		for _, x := range c.site.plugs[l.first:l.last] {
			w := l.draw.Max * unit.Watts(x.share)
			if x.pdu >= 0 && c.site.pdus[x.pdu].PDU == p.PDU && x.outlet > 0 && x.circuit == circuit && w > most && w < apart*(1-tolerance) {
				best, most = l, w
			}
		}
	}
	return best, most
}

// feed judges one feed of the building.
func (c *checker) feed(f *feed) {
	if f.block == nil || f.block.Capacity == 0 {
		return
	}
	limit := f.block.Capacity * unit.Watts(f.block.Derate)
	rating := ""
	if f.block.Derate != 1 {
		rating = fmt.Sprintf(" (%s, derated to %s)", f.block.Capacity, toPercent(f.block.Derate))
	}
	out := finding{who: "Feed " + f.name, name: f.name, at: f.block.Decl, in: f.block.Decl, advice: "Move racks to other feeds, or ask for a larger one."}
	carried := f.load.Max
	if isOver(carried, limit) {
		out.check, out.summary, out.says = "power.feed", "Feed over its capacity", fmt.Sprintf("carries %s of %s%s", atLeast(carried), atMost(limit), rating)
		c.add(out)
		return
	}
	l := f.worst()
	if l == nil || !isOver(carried+l.extra.Max, limit) {
		return
	}
	out.check, out.summary = "power.feed-loss", "Feed over its capacity after feed loss"
	out.says = fmt.Sprintf("carries %s of %s%s when feed %q is lost", atLeast(carried+l.extra.Max), atMost(limit), rating, c.site.feeds[l.feed].name)
	c.add(out)
}

// toPercent writes a share, to a tenth of a per cent.
func toPercent(share float64) unit.Percent { return unit.Percent(math.Round(share*1000) / 10) }
