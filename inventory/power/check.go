// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Check judges the power, cooling and weight of a site; each check has its page
// in docs/checks. What follows from another finding is not said: a PDU that is
// over its limit with all feeds is not judged without one.
func Check(inv *inventory.Inventory) diag.List {
	c := &checker{Plan: newPlan(inv)}
	c.feedNames()
	for i := range c.site.pdus {
		c.pdu(&c.site.pdus[i])
	}
	for i := range c.site.feeds {
		c.feed(&c.site.feeds[i])
	}
	for i := range c.site.loads {
		c.load(&c.site.loads[i])
	}
	for i := range c.Racks {
		c.rack(i)
	}
	return c.list()
}

// checker is one run of the checks.
type checker struct {
	*Plan
	report
	scratch []int
}

// feedNames compares the feeds that PDUs name with the feed blocks, where there
// are any.
func (c *checker) feedNames() {
	if len(c.site.inv.Feeds) == 0 {
		return
	}
	known := make([]string, len(c.site.inv.Feeds))
	for i, f := range c.site.inv.Feeds {
		known[i] = f.Name
	}
	for i := range c.site.pdus {
		p := &c.site.pdus[i]
		if c.site.feeds[p.feed].block == nil {
			c.add(finding{check: "power.feed-name", at: p.FeedRange, in: p.Decl, summary: "Feed without a block", who: "PDU " + p.Name, name: p.Name,
				says:   fmt.Sprintf("hangs on feed %q, which no feed block has", p.Feed),
				advice: "Name one of the feed blocks, or add one for it." + diag.DidYouMean(p.Feed, known)})
		}
	}
}

// load judges how one thing is connected.
func (c *checker) load(l *load) {
	if l.last == l.first {
		c.unplugged(l)
		return
	}
	if need := l.required(); l.node != nil && l.last-l.first < need {
		c.add(c.of(l, finding{check: "power.supplies", summary: "Fewer supplies connected than needed",
			says:   fmt.Sprintf("has %s connected and needs %d for its %s", diag.Count(l.last-l.first, "supply", "supplies"), need, atLeast(l.draw.Max)),
			advice: "Name more of its supplies in feeds."}))
		return
	}
	c.scratch = c.site.feedsOf(l, c.scratch[:0])
	switch len(c.scratch) {
	case 0: // shelves that do not say where they are connected
	case 1:
		c.oneFeed(l, c.scratch[0])
	default:
		c.shortWithout(l, c.scratch)
	}
}

// of completes a finding about what a load is.
func (c *checker) of(l *load, f finding) finding {
	switch {
	case l.node != nil:
		f.who, f.name, f.at, f.in, f.nodes = "Node "+l.name, l.name, l.node.Ranges.Feeds, l.node.Decl, []*inventory.Node{l.node}
	case l.sw != nil:
		f.who, f.name, f.at, f.in = "Switch "+l.name, l.name, l.sw.Decl, l.sw.Decl
	default:
		r := c.site.inv.Racks[l.rack]
		f.who, f.name, f.at, f.in = "The power shelves of rack "+l.name, l.name, r.Shelves[0].Decl, r.Shelves[0].Decl
		f.nodes = c.nodes(l.rack, func(x *load) bool { return x.pooled })
	}
	return f
}

// nodes are those of a rack whose load is wanted.
func (c *checker) nodes(rack int, wanted func(*load) bool) (list []*inventory.Node) {
	at := &c.site.racks[rack]
	for i := at.firstLoad; i < at.firstLoad+at.loads; i++ {
		if l := &c.site.loads[i]; l.node != nil && wanted(l) {
			list = append(list, l.node)
		}
	}
	return list
}

// unplugged warns of what is on no PDU in a rack that has some.
func (c *checker) unplugged(l *load) {
	if l.pooled || l.isShelves() || c.site.racks[l.rack].pdus == 0 {
		return
	}
	c.add(c.of(l, finding{check: "power.no-feed", summary: "On no PDU of its rack", warn: true,
		says:   "does not say which PDUs of its rack it hangs on, so its load is counted on none",
		advice: "Add feeds."}))
}

// oneFeed reports what dies with one feed of the building. A switch with one
// supply is common where nothing depends on it: a warning.
func (c *checker) oneFeed(l *load, feed int) {
	says := fmt.Sprintf("has %s, on feed %q", diag.Count(l.last-l.first, "supply", "supplies"), c.site.feeds[feed].name)
	if l.last-l.first > 1 {
		says = fmt.Sprintf("has %s, all on feed %q", diag.Count(l.last-l.first, "supply", "supplies"), c.site.feeds[feed].name)
	}
	if l.isShelves() {
		says = fmt.Sprintf("are all on feed %q", c.site.feeds[feed].name)
	}
	advice := "Connect some of the supplies to a PDU of another feed."
	if l.last-l.first == 1 {
		advice = "Without that feed it is off. Give it a second supply on another feed, or a transfer switch and allow \"power.one-feed\"."
	}
	c.add(c.of(l, finding{check: "power.one-feed", summary: "All supplies on one feed", says: says, advice: advice, warn: l.sw != nil}))
}

// shortWithout reports what keeps too few supplies when one of its feeds is lost.
func (c *checker) shortWithout(l *load, feeds []int) {
	worst, worstLeft, worstN := -1, unit.Watts(0), 0
	for _, f := range feeds {
		left, n := c.site.remains(l, f)
		short := n < l.required()
		if l.isShelves() {
			short = isOver(l.draw.Max, left)
		}
		if short && (worst < 0 || n < worstN) {
			worst, worstLeft, worstN = f, left, n
		}
	}
	if worst < 0 {
		return
	}
	f := finding{check: "power.feed-loss", summary: "Too few supplies after feed loss", ratio: float64(l.draw.Max / max(1, worstLeft))}
	name := c.site.feeds[worst].name
	if l.isShelves() {
		f.says = fmt.Sprintf("keep %s of %d when feed %q is lost: %s for %s", diag.Count(worstN, "supply", "supplies"), l.last-l.first, name, atMost(worstLeft), atLeast(l.draw.Max))
		f.advice = "Spread the supplies over the feeds, or add shelves."
		c.add(c.of(l, f))
		return
	}
	f.says = fmt.Sprintf("has %s and needs %d for %s; %d %s left when feed %q is lost", diag.Count(l.last-l.first, "supply", "supplies"), l.required(), atLeast(l.draw.Max), worstN, areIs(worstN), name)
	f.advice = "Spread the supplies over more feeds, say in required if fewer carry it, or allow it for nodes that may stop with a feed."
	f = c.of(l, f)
	if l.node != nil && l.node.Hardware != nil {
		f.about, f.aboutAt = "the hardware", l.node.Hardware.Power.Decl
	}
	c.add(f)
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// limitAt is the place of a limit: its attribute, or the header of its block.
func limitAt(at, header hcl.Range) hcl.Range {
	if at.Filename == "" {
		return header
	}
	return at
}
