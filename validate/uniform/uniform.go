// SPDX-License-Identifier: Apache-2.0

// Package uniform finds the nodes of a role that differ from most of it: in what was bought
// (models of CPUs, GPUs, NICs and disks, memory modules, PCIe links), and in what a user
// never chose (firmware versions, settings of BIOS and GPUs, the kernel). One node with
// another NIC firmware or another clock slows every collective that it is part of,
// and passes every test of its own.
//
// Nodes are compared with those that are meant to be the same: of the same role,
// hardware block, image and drivers (their Cohort). What most of at least three
// have is taken for right. It goes through all values once.
package uniform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fewest is how many nodes make a majority worth naming.
const Fewest = 3

// Share of the nodes that must have a value for the others to be odd: two of three.
const (
	shareOf = 3
	share   = 2
)

// Trait is one thing that nodes of a role have in common. Values are text from
// outside, kept as they were read.
type Trait struct {
	Key   string   `json:"key"`          // one of Keys
	Of    string   `json:"of,omitempty"` // what it is a version of, where parts of several models have one: a PSID
	Value string   `json:"value"`
	Parts []string `json:"parts,omitempty"` // that have it, where others of the node do not, or it is the only one
	Count int      `json:"count,omitempty"` // parts that have it; 0: recorded by a version that did not count
}

// About is what values are compared of: the key of a trait, and what it is a version of.
type About struct{ Key, Of string }

// Compare orders by the place of the keys among Keys.
func (a About) Compare(b About) int {
	return cmp.Or(cmp.Compare(rankKey(a.Key), rankKey(b.Key)), strings.Compare(a.Key, b.Key), strings.Compare(a.Of, b.Of))
}

// Record is what was read off a node.
type Record struct {
	Cohort string  `json:"cohort"` // the same for nodes that are meant to be the same
	Traits []Trait `json:"traits"`
	// Unlike are the parts that are not what the hardware block of the node says.
	Unlike []Unlike `json:"unlike,omitempty"`
}

// Node is a node with what was read off it.
type Node struct {
	Name string
	Record
}

// Row is one thing that was compared.
type Row struct {
	Key    string  `json:"key"`
	Of     string  `json:"of,omitempty"`    // as in Trait
	Value  string  `json:"value,omitempty"` // of most nodes; empty: there is no majority
	With   int     `json:"with"`            // nodes that have it, in all their parts
	Nodes  int     `json:"nodes"`           // that tell
	Odd    []Odd   `json:"odd,omitempty"`
	Groups []Group `json:"groups,omitempty"` // where there is no majority, the largest first
}

// Name is what the row is about, in words.
func (r Row) Name() string {
	if r.Of == "" {
		return r.Key
	}
	return r.Key + " of " + r.Of
}

// Kind returns what is known of the row's key.
func (r Row) Kind() Kind {
	if i := rankKey(r.Key); i >= 0 {
		return Keys[i]
	}
	return Kind{Key: r.Key}
}

// fewShare of the nodes are a few: of a kind of part that is delivered mixed, more outliers
// than that are a second delivery.
const fewShare = 10

// secondKind reports whether more than one node, and more than a few, have something else.
func (r Row) secondKind() bool {
	others := map[string]bool{}
	for _, o := range r.Odd {
		others[o.Node] = true
	}
	return len(others) > 1 && fewShare*len(others) > r.Nodes
}

// Odd is a node that differs.
type Odd struct {
	Node  string   `json:"node"`
	Value string   `json:"value"`
	Parts []string `json:"parts,omitempty"`
}

// Group is the nodes with one value.
type Group struct {
	Value string   `json:"value"`
	Nodes []string `json:"nodes"`
}

// CompareNodes compares the nodes of one cohort. Nodes that say nothing of a trait are
// left out of it.
func CompareNodes(nodes []Node) []Row {
	all := map[About]*votes{}
	for _, n := range nodes {
		for a, t := range GroupTraits(n.Traits) {
			if all[a] == nil {
				all[a] = &votes{by: map[string][]vote{}}
			}
			all[a].add(n.Name, t)
		}
	}
	order := slices.SortedFunc(maps.Keys(all), About.Compare)
	rows := make([]Row, 0, len(order))
	for _, a := range order {
		rows = append(rows, all[a].row(a))
	}
	return rows
}

// GroupTraits returns the traits of a node by what they are about. One whose parts differ
// has several.
func GroupTraits(list []Trait) map[About][]Trait {
	m := make(map[About][]Trait, len(list))
	for _, t := range list {
		m[About{t.Key, t.Of}] = append(m[About{t.Key, t.Of}], t)
	}
	return m
}

// votes are the values of one thing.
type votes struct {
	by    map[string][]vote // nodes with one value in all parts, by that value
	mixed []mixed
	total int
}

// vote is a node with one value.
type vote struct {
	node  string
	parts []string
}

// mixed is a node whose parts differ among themselves.
type mixed struct {
	node   string
	traits []Trait
}

func (v *votes) add(node string, t []Trait) {
	v.total++
	if len(t) > 1 {
		v.mixed = append(v.mixed, mixed{node, t})
		return
	}
	v.by[t[0].Value] = append(v.by[t[0].Value], vote{node, t[0].Parts})
}

// row decides what most nodes have. A node whose parts differ is odd in those
// that have something else.
func (v *votes) row(a About) Row {
	r := Row{Key: a.Key, Of: a.Of, Nodes: v.total}
	values := slices.SortedFunc(maps.Keys(v.by), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(v.by[b]), len(v.by[a])), strings.Compare(a, b))
	})
	if m, with := v.commonMixture(); with > 0 && r.Kind().Mixture {
		r.Value, r.With = m.counts(), with
		r.Odd = v.oddMixtures(values, m, r.Kind().Elsewhere)
		return r
	}
	switch {
	case len(values) == 1 && len(v.mixed) == 0:
		r.Value, r.With = values[0], v.total
	case len(values) == 0 || v.total < Fewest || shareOf*len(v.by[values[0]]) < share*v.total:
		r.Groups = v.groups(values)
	default:
		r.Value, r.With = values[0], len(v.by[values[0]])
		r.Odd = v.odd(values[1:], r.Value)
	}
	return r
}

// odd lists who has something else than most, by node.
func (v *votes) odd(values []string, most string) (odd []Odd) {
	for _, value := range values {
		for _, n := range v.by[value] {
			odd = append(odd, Odd{Node: n.node, Value: value, Parts: n.parts})
		}
	}
	for _, m := range v.mixed {
		for _, t := range m.traits {
			if t.Value != most {
				odd = append(odd, Odd{Node: m.node, Value: t.Value, Parts: t.Parts})
			}
		}
	}
	slices.SortStableFunc(odd, func(a, b Odd) int { return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Value, b.Value)) })
	return odd
}

// groups lists who has what, where nobody is right.
func (v *votes) groups(values []string) (list []Group) {
	for _, value := range values {
		g := Group{Value: value}
		for _, n := range v.by[value] {
			g.Nodes = append(g.Nodes, n.node)
		}
		list = append(list, g)
	}
	for _, m := range v.mixed {
		list = append(list, Group{Value: m.text(), Nodes: []string{m.node}})
	}
	return list
}

// Parts names a few parts, and counts many.
func Parts(list []string) string {
	if len(list) <= 2 {
		return strings.Join(list, " and ")
	}
	return fmt.Sprintf("%s and %d more", list[0], len(list)-1)
}
