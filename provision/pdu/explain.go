// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// together is how far apart losses of one cause are seen: each node's silence is
// noticed by its own poll.
const together = 30 * time.Second

// noAmps is what meters show of nothing, in amperes; noWatts is more than a
// supply's filter draws.
const (
	noAmps  = 0.05
	noWatts = 3
)

// Loss is a node whose power went: its BMC does not answer either.
type Loss struct {
	Node string
	At   time.Time // when it was noticed
}

// Feed is one supply of a node on an outlet.
type Feed struct {
	Supply string
	PDU    string
	Outlet int // 0: not known
}

// Outage is what is known when nodes have lost power.
type Outage struct {
	Losses []Loss
	Feeds  map[string][]Feed  // of every node, of those that are well too
	Now    map[string]Reading // of the PDUs that answer
	Before map[string]Reading // an earlier reading, where there is one; may be nil
	Silent map[string]bool    // PDUs that were asked and do not answer
	Window time.Duration      // losses this close belong together; 0: 30 s
}

// Cause is one root cause of nodes without power.
type Cause struct {
	Parts    []Part   // what has no power: each is needed for the loss
	Nodes    []string // that lost power by it, sorted
	Cause    string
	Evidence []string
	Action   string
	Certain  bool // a PDU's own reading shows it
}

// Part is a PDU, or a part of one.
type Part struct {
	PDU     string
	Breaker int // 0: not a breaker
	Outlet  int // 0: not an outlet
}

// String names the part for a sentence.
func (p Part) String() string {
	switch {
	case p.Outlet > 0:
		return fmt.Sprintf("outlet %d of PDU %s", p.Outlet, p.PDU)
	case p.Breaker > 0:
		return fmt.Sprintf("breaker %d of PDU %s", p.Breaker, p.PDU)
	}
	return "PDU " + p.PDU
}

// ExplainOutage finds what the nodes that lost power have in common: one cause for all
// that hang on one breaker or PDU, not one for each. Nodes for which the PDUs are
// no explanation (they deliver, or a node is alone in its loss and nothing is
// measured) are in no cause. It is pure.
func ExplainOutage(o Outage) []Cause {
	if o.Window <= 0 {
		o.Window = together
	}
	var causes []Cause
	for _, nodes := range clusterLosses(o.Losses, o.Window) {
		groups := map[string]*Cause{}
		for _, node := range nodes {
			parts, certain := o.dead(node)
			if len(parts) == 0 {
				continue
			}
			key := fmt.Sprint(parts, certain)
			if groups[key] == nil {
				groups[key] = &Cause{Parts: parts, Certain: certain}
			}
			groups[key].Nodes = append(groups[key].Nodes, node)
		}
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			if c := groups[key]; c.Certain || len(c.Nodes) > 1 {
				causes = append(causes, o.describe(*c))
			}
		}
	}
	return causes
}

// clusterLosses groups losses that are close in time.
func clusterLosses(losses []Loss, window time.Duration) (groups [][]string) {
	losses = slices.SortedFunc(slices.Values(losses), func(a, b Loss) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Node, b.Node))
	})
	for i, l := range losses {
		if i == 0 || l.At.Sub(losses[i-1].At) > window {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], l.Node)
	}
	for _, g := range groups {
		slices.Sort(g)
	}
	return groups
}

// dead says which parts leave every supply of a node without power. None: some
// supply has power, or nothing points at a PDU. It is certain when readings show
// each of them.
func (o *Outage) dead(node string) (parts []Part, certain bool) {
	certain = true
	for _, f := range o.Feeds[node] {
		part, sure, dead := o.deadFeed(f)
		if !dead {
			return nil, false
		}
		certain = certain && sure
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(strings.Compare(a.PDU, b.PDU), cmp.Compare(a.Breaker, b.Breaker), cmp.Compare(a.Outlet, b.Outlet))
	})
	return parts, certain
}

// deadFeed judges one supply.
func (o *Outage) deadFeed(f Feed) (part Part, certain, dead bool) {
	part = Part{PDU: f.PDU}
	r, ok := o.Now[f.PDU]
	if !ok {
		return part, false, !o.feedsAWellNode(f.PDU)
	}
	if isUnpowered(r) || allOpen(r) {
		return part, true, true
	}
	i := slices.IndexFunc(r.Outlets, func(x Outlet) bool { return x.Number == f.Outlet })
	if i < 0 {
		return o.onlyBreaker(f, r)
	}
	outlet := r.Outlets[i]
	if outlet.State == Off {
		part.Outlet = f.Outlet
		return part, true, true
	}
	if outlet.Metered && outlet.Watts > noWatts {
		return part, false, false
	}
	if outlet.Breaker == 0 {
		return o.onlyBreaker(f, r) // the model does not say which is whose
	}
	part.Breaker = outlet.Breaker
	if b, ok := o.breaker(o.Now, part); !ok || !isOpen(b) {
		return part, false, false
	}
	return part, true, true
}

// onlyBreaker judges a supply whose breaker is not known: when one breaker of its
// PDU is open, and carried something before, that explains why the node is dark.
func (o *Outage) onlyBreaker(f Feed, r Reading) (part Part, certain, dead bool) {
	part = Part{PDU: f.PDU}
	for _, b := range r.Breakers {
		switch {
		case !isOpen(b):
		case part.Breaker != 0:
			return Part{PDU: f.PDU}, false, true // several: the PDU as a whole is to be looked at
		default:
			part.Breaker = b.Number
			before, ok := o.breaker(o.Before, part)
			certain = b.State == BreakerOpen || ok && before.Amps > noAmps
		}
	}
	return part, certain, part.Breaker != 0
}

// breaker finds a breaker in the reading of its PDU.
func (o *Outage) breaker(in map[string]Reading, p Part) (Breaker, bool) {
	for _, b := range in[p.PDU].Breakers {
		if b.Number == p.Breaker {
			return b, true
		}
	}
	return Breaker{State: BreakerUnknown}, false
}

// allOpen reports whether nothing flows behind any of several breakers.
func allOpen(r Reading) bool {
	return len(r.Breakers) > 1 && !slices.ContainsFunc(r.Breakers, func(b Breaker) bool { return !isOpen(b) })
}

// isUnpowered reports whether a PDU whose card still answers measures no voltage on
// any line of its input.
func isUnpowered(r Reading) bool {
	for _, p := range r.Phases {
		if p.Volts < 0 || p.Volts >= 1 {
			return false
		}
	}
	return len(r.Phases) > 0
}

// isOpen reports whether a breaker is open: it says so, or nothing at all flows
// behind it.
func isOpen(b Breaker) bool {
	return b.State == BreakerOpen || b.State == BreakerUnknown && b.Amps < noAmps
}

// feedsAWellNode reports whether a node that is well has no other supply than
// that PDU: then the PDU delivers, and only its card is silent.
func (o *Outage) feedsAWellNode(name string) bool {
	lost := map[string]bool{}
	for _, l := range o.Losses {
		lost[l.Node] = true
	}
	for node, feeds := range o.Feeds {
		if !lost[node] && len(feeds) > 0 && !slices.ContainsFunc(feeds, func(f Feed) bool { return f.PDU != name }) {
			return true
		}
	}
	return false
}
