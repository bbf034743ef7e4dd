// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Claim is what a node draws of one circuit beyond its maximum while it is
// switched on, until it has settled.
type Claim struct {
	Circuit string // r01/a/L2, a breaker of a PDU; or r01/shelves
	Watts   int    // rounded up, at least one
}

// Inrush says how many nodes may be switched on at one time: each claims its part
// of every circuit that feeds it, and the claims on a circuit stay within its
// room. Both are about the worst case: everything on the circuit draws its
// maximum, and any one feed of the building is lost. Claims and rooms are watts.
// It is never changed after NewInrush.
type Inrush struct {
	Room   map[string]int     // by circuit: what its breaker carries, not derated, beyond the maximum of all that hangs on it
	claims map[string][]Claim // by node
}

// NewInrush computes the claims of the nodes of a site whose power and feeds are
// known. A circuit has room for any one of its nodes: alone it may always be
// switched on, as nothing would become better by waiting.
func NewInrush(inv *inventory.Inventory) *Inrush {
	s := surveyRacks(inv)
	s.loseFeeds()
	in := &Inrush{Room: map[string]int{}, claims: make(map[string][]Claim, len(inv.Nodes))}
	q := s.sequence()
	var demands []demand
	for i := range s.loads {
		l := &s.loads[i]
		if l.node == nil || l.draw.Max <= 0 {
			continue
		}
		demands = s.worstDemands(l, demands[:0])
		claims := make([]Claim, 0, len(demands))
		extra := float64(max(0, l.inrush-l.draw.Max))
		for _, d := range demands {
			c := Claim{Circuit: s.circuitName(d.circuit), Watts: max(1, int(math.Ceil(extra*d.share-tolerance)))}
			room, known := in.Room[c.Circuit]
			if !known {
				room = int(max(0, q.most[d.circuit]-s.steady(d.circuit)) + tolerance)
			}
			in.Room[c.Circuit] = max(room, c.Watts)
			claims = append(claims, c)
		}
		slices.SortFunc(claims, func(a, b Claim) int { return strings.Compare(a.Circuit, b.Circuit) })
		in.claims[l.name] = claims
	}
	return in
}

// Of returns the claims of a node, by circuit; none where its
// power or its feeds are not known.
func (in *Inrush) Of(node string) []Claim { return in.claims[node] }

// worstDemands are demandsOf with the share that each plug has after the loss of
// that other feed which is worst for it.
func (s *site) worstDemands(l *load, to []demand) []demand {
	plugs := s.plugs[l.first:l.last]
	if l.pooled {
		to = append(to, demand{3*len(s.pdus) + l.rack, 1})
		shelves := &s.loads[s.racks[l.rack].shelves]
		plugs = s.plugs[shelves.first:shelves.last]
	}
	from := len(to)
	for _, x := range plugs {
		if x.pdu < 0 {
			continue
		}
		c, share := 3*x.pdu+x.circuit, worstShare(plugs, x)
		if i := slices.IndexFunc(to[from:], func(d demand) bool { return d.circuit == c }); i >= 0 {
			to[from+i].share += share
			continue
		}
		to = append(to, demand{c, share})
	}
	return to
}

// worstShare is the most that a plug carries of its load when any one other feed
// is lost.
func worstShare(plugs []plug, x plug) float64 {
	worst := x.share
	if worst <= 0 {
		return 0
	}
	for _, lost := range plugs {
		if lost.feed < 0 || lost.feed == x.feed {
			continue
		}
		left := 0.0
		for _, y := range plugs {
			if y.feed != lost.feed {
				left += y.share
			}
		}
		worst = max(worst, x.share/left)
	}
	return worst
}

// steady is the maximum of all that hangs on a circuit, after the loss of the
// feed that is worst for it.
func (s *site) steady(circuit int) unit.Watts {
	if at := circuit - 3*len(s.pdus); at >= 0 {
		return s.racks[at].pooled.Max
	}
	p, c := &s.pdus[circuit/3], circuit%3
	var extra unit.Watts
	for _, l := range p.losses {
		extra = max(extra, l.extra[c].Max)
	}
	return p.load[c].Max + extra
}

// circuitName names a circuit as its breaker is labelled: r01/a/L2; r01/a/L1-L2
// for a pair of phases, r01/a/L for the only one; r01/shelves.
func (s *site) circuitName(circuit int) string {
	if at := circuit - 3*len(s.pdus); at >= 0 {
		return s.inv.Racks[at].Name + "/shelves"
	}
	p, c := &s.pdus[circuit/3], circuit%3
	switch {
	case p.circuits == 1:
		return p.Name + "/L"
	case p.delta:
		return fmt.Sprintf("%s/L%d-L%d", p.Name, c+1, (c+1)%3+1)
	}
	return fmt.Sprintf("%s/L%d", p.Name, c+1)
}
