// SPDX-License-Identifier: Apache-2.0

// Package isolate finds the bad part from tests between pairs. Its input is
// which measurements were good and which bad; its answer is the smallest set of
// parts that explains every bad one and contradicts no good one, or all such
// sets when there are several. It is pure and knows no tool.
package isolate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Measurement is one transfer over one rail, from one node to another.
type Measurement struct {
	// Fabric tells rails with the same number apart: 0 of the compute fabric and 0 of
	// storage are different cables and switches. Empty is a fabric like any other.
	Fabric   string
	Rail     int
	From, To string
	// FromLeaf and ToLeaf are the switches that the rail ends on at each node; empty:
	// not known.
	FromLeaf, ToLeaf string
	// Via are the cables between switches that it went over; nil: not known.
	Via []Crossing
	Bad bool
}

// Crosses reports whether a transfer leaves a leaf: it goes over more than one.
func (m Measurement) Crosses() bool {
	return m.FromLeaf != "" && m.ToLeaf != "" && m.FromLeaf != m.ToLeaf
}

// Scope is how much of a node a part is.
type Scope uint8

// The scopes, from the widest to the narrowest.
const (
	WholeNode  Scope = iota // every rail: the node's own board, memory or software
	Rail                    // one rail in both directions: its NIC, cable or port
	Send                    // one rail, sending only
	Receive                 // one rail, receiving only
	Shared                  // one rail of every node: what they share, such as the leaf switch
	Leaf                    // what one leaf passes to others and gets from them; not what stays on it
	Trunk                   // one cable between two switches
	Spine                   // a switch above the leaves
	Everything              // all rails of every node on one fabric: its routing, its settings
)

// Part is one suspect. Fabric and Rail have no meaning for WholeNode, Leaf, Trunk and
// Spine, and Rail has none for Everything. Node is empty for it and for Shared, the name of the switch for Leaf and Spine, and the
// lower end of the cable for Trunk.
type Part struct {
	Node   string
	Scope  Scope
	Fabric string
	Rail   int
}

// String names the part for a person.
func (p Part) String() string {
	switch p.Scope {
	case WholeNode:
		return "all rails"
	case Send:
		return RailName(p.Fabric, p.Rail) + ", sending"
	case Receive:
		return RailName(p.Fabric, p.Rail) + ", receiving"
	case Leaf:
		return "uplinks"
	case Trunk:
		return "cable"
	case Spine:
		return "what goes over it"
	case Shared:
		return "what " + RailName(p.Fabric, p.Rail) + " of all nodes shares"
	case Everything:
		return strings.TrimSuffix("all rails of all nodes on "+p.Fabric, " on ")
	}
	return RailName(p.Fabric, p.Rail)
}

// RailName names a rail: "rail 0", or "rail 0 of storage" where the fabric is named.
func RailName(fabric string, rail int) string {
	if fabric == "" {
		return fmt.Sprintf("rail %d", rail)
	}
	return fmt.Sprintf("rail %d of %s", rail, fabric)
}

// Explains reports whether a fault of p would spoil m.
func (p Part) Explains(m Measurement) bool {
	switch p.Scope {
	case Leaf:
		return m.Crosses() && (m.FromLeaf == p.Node || m.ToLeaf == p.Node)
	case Trunk, Spine:
		return slices.ContainsFunc(m.Via, func(c Crossing) bool {
			return c.Trunk == p.Node && p.Scope == Trunk || c.Spine == p.Node && p.Scope == Spine
		})
	case Everything:
		return p.Fabric == m.Fabric && m.From != m.To
	}
	return p.ofNodeExplains(m)
}

// ofNodeExplains is Explains for parts of nodes, and for what one rail of all shares.
func (p Part) ofNodeExplains(m Measurement) bool {
	if p.Scope != WholeNode && (p.Rail != m.Rail || p.Fabric != m.Fabric) {
		return false
	}
	if p.Scope == Shared {
		return m.From != m.To
	}
	return p.Scope != Receive && m.From == p.Node || p.Scope != Send && m.To == p.Node
}

// Verdict is what the measurements say.
type Verdict struct {
	// Suspects are the parts of all smallest explanations, sorted. Empty when
	// nothing is bad.
	Suspects []Part
	// Ambiguous is true when there are several explanations of the same size, so
	// that not every suspect is bad.
	Ambiguous bool
	// Groups are the same suspects by what they explain: bad measurements of which no part
	// explains any of another group's. Each is ambiguous for itself.
	Groups []Group
	// Between are bad measurements that no part explains without contradicting a
	// good one: the path between two nodes that are both good otherwise.
	Between []Measurement
}

// Group is the suspects of bad measurements that have nothing to do with others.
type Group struct {
	Suspects  []Part
	Ambiguous bool
}

// FindSuspects finds the suspects.
func FindSuspects(ms []Measurement) Verdict {
	var bad []Measurement
	for _, m := range ms {
		if m.Bad {
			bad = append(bad, m)
		}
	}
	if len(bad) == 0 {
		return Verdict{}
	}
	return explainAll(bad, listCandidates(ms))
}

// explainAll returns the parts of all smallest sets that explain the bad measurements.
func explainAll(bad []Measurement, parts []Part) (v Verdict) {
	groups, without := splitGroups(bad, parts)
	v.Between = without
	for _, g := range groups {
		list, ambiguous := newSearch(g).run()
		v.Groups = append(v.Groups, Group{list, ambiguous})
		v.Suspects, v.Ambiguous = append(v.Suspects, list...), v.Ambiguous || ambiguous
	}
	slices.SortFunc(v.Suspects, compareParts)
	slices.SortFunc(v.Groups, func(a, b Group) int { return compareParts(a.Suspects[0], b.Suspects[0]) })
	return v
}

// tally is how many measurements a part would spoil.
type tally struct{ bad, good int }

// listCandidates lists the parts with a bad measurement and no good one. Of parts of
// one node that spoil the same measurements only one stays: a rail rather than
// the node when there is one rail, and a rail rather than its one direction.
func listCandidates(ms []Measurement) []Part {
	count := countParts(ms)
	var parts []Part
	of := map[string][]Part{} // the candidates of each node
	many := leavesOfSeveral(ms)
	for p, t := range count {
		if t.bad > 0 && t.good == 0 && (p.Scope != Leaf || many[p.Node]) {
			parts = append(parts, p)
			of[p.Node] = append(of[p.Node], p)
		}
	}
	slices.SortFunc(parts, compareParts)
	return slices.DeleteFunc(parts, func(p Part) bool {
		return p.Scope != Leaf && slices.ContainsFunc(of[p.Node], func(q Part) bool {
			// One of the two holds the other, so that equal numbers are the same ones.
			return isPreferred(q, p) && isNested(p, q) && count[p] == count[q]
		})
	})
}

// leavesOfSeveral returns the leaves that may be suspected: more than one node has crossed each,
// since of one alone the node is to be looked at first, and what stays on it is good
// somewhere, if anything does.
func leavesOfSeveral(ms []Measurement) map[string]bool {
	first, many := map[string]string{}, map[string]bool{}
	good, bad := map[string]bool{}, map[string]bool{} // what stays on a leaf
	for _, m := range ms {
		if !m.Crosses() {
			good[m.FromLeaf], bad[m.FromLeaf] = good[m.FromLeaf] || !m.Bad, bad[m.FromLeaf] || m.Bad
			continue
		}
		for _, e := range [][2]string{{m.FromLeaf, m.From}, {m.ToLeaf, m.To}} {
			if n, known := first[e[0]]; known && n != e[1] {
				many[e[0]] = true
			}
			first[e[0]] = e[1]
		}
	}
	for leaf := range many {
		many[leaf] = many[leaf] && (good[leaf] || !bad[leaf])
	}
	return many
}

// countParts goes through the measurements once and counts for each part that could
// spoil one.
func countParts(ms []Measurement) map[Part]tally {
	all := map[Part]tally{}
	for _, m := range ms {
		add := func(p Part) {
			t := all[p]
			if m.Bad {
				t.bad++
			} else {
				t.good++
			}
			all[p] = t
		}
		add(Part{m.From, WholeNode, "", 0})
		add(Part{m.From, Rail, m.Fabric, m.Rail})
		add(Part{m.From, Send, m.Fabric, m.Rail})
		add(Part{m.To, Receive, m.Fabric, m.Rail})
		if m.From != m.To {
			add(Part{"", Shared, m.Fabric, m.Rail})
			add(Part{"", Everything, m.Fabric, 0})
			add(Part{m.To, WholeNode, "", 0})
			add(Part{m.To, Rail, m.Fabric, m.Rail})
			if m.Crosses() {
				add(Part{m.FromLeaf, Leaf, "", 0})
				add(Part{m.ToLeaf, Leaf, "", 0})
			}
		}
	}
	return all
}

// isPreferred orders names for the same evidence: rail, node, then a direction.
func isPreferred(q, p Part) bool {
	rank := [...]int{WholeNode: 1, Rail: 0, Send: 2, Receive: 2, Shared: 0, Leaf: 0, Everything: 1}
	return rank[q.Scope] < rank[p.Scope]
}

// isNested reports whether one of two parts of a node, of which one is preferred,
// holds the other.
func isNested(p, q Part) bool {
	if p.Scope == Everything {
		return p.Fabric == q.Fabric
	}
	return p.Scope == WholeNode || q.Scope == WholeNode || p.Rail == q.Rail && p.Fabric == q.Fabric
}

func compareParts(a, b Part) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Fabric, b.Fabric), cmp.Compare(a.Rail, b.Rail))
}

// OnlyLeaves reports whether no part is of a node.
func OnlyLeaves(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { return p.Scope != Leaf })
}

// NameParts names parts for a sentence.
func NameParts(parts []Part) string {
	var out []string
	for _, p := range parts {
		out = append(out, strings.TrimSpace(p.Node+" "+p.String()))
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
	return strings.Join(out, "")
}
