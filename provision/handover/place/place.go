// SPDX-License-Identifier: Apache-2.0

// Package place says which nodes of a hand-over are near each other: the leaves of
// the fabric that they share, the spines above these, racks, and NVLink domains.
// Schedulers are told of it. It reads the inventory's cables, which the stage
// cabling has compared with what nodes see, and is pure.
package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/inventory"
)

// Switch is a switch as a scheduler sees it: the leaves that the same nodes share
// are one, whatever their number, since with one leaf for each rail all of them
// are equally far.
type Switch struct {
	Name  string            // of letters, digits, and - _ . ; unique in its tree
	Nodes []*inventory.Node // directly below, in the order that they were given
	Below []*Switch
}

// Tree is the switches above nodes. A tree over no nodes has no Root.
type Tree struct {
	Root   *Switch
	Fabric *inventory.Fabric // whose cables it is of; nil: none is cabled, and racks stand for leaves
	leaf   map[*inventory.Node]*Switch
	above  map[*Switch]*Switch // nil: its root
}

// Of makes the tree of nodes of an inventory, from the fabric that most of their
// cables are of. It takes time in proportion to the cables.
func Of(inv *inventory.Inventory, nodes []*inventory.Node) *Tree {
	t := &Tree{leaf: map[*inventory.Node]*Switch{}, above: map[*Switch]*Switch{}}
	b := &builder{tree: t, nodes: nodes, names: map[string]bool{}}
	if inv != nil {
		b.cables(inv)
	}
	leaves := b.leaves()
	for _, s := range leaves {
		for _, n := range s.Nodes {
			t.leaf[n] = s
		}
	}
	switch tops := b.pods(leaves); len(tops) {
	case 0:
	case 1:
		t.Root = tops[0]
	default:
		t.Root = &Switch{Name: b.name(b.rootName()), Below: tops}
	}
	if t.Root != nil {
		t.climb(t.Root)
	}
	return t
}

// climb fills in what is above each switch.
func (t *Tree) climb(s *Switch) {
	for _, b := range s.Below {
		t.above[b] = s
		t.climb(b)
	}
}

// Leaf is the name of the switch that a node is directly below; "" for none.
func (t *Tree) Leaf(n *inventory.Node) string {
	if s := t.leaf[n]; s != nil {
		return s.Name
	}
	return ""
}

// Above is the name of the switch above a node's leaf, where the tree has three
// levels; else "", since all nodes would have the same.
func (t *Tree) Above(n *inventory.Node) string {
	if s := t.above[t.leaf[n]]; s != nil && s != t.Root {
		return s.Name
	}
	return ""
}

// Walk calls do for every switch, a switch before those below it.
func (t *Tree) Walk(do func(*Switch)) {
	if t.Root != nil {
		walkSwitches(t.Root, do)
	}
}

func walkSwitches(s *Switch, do func(*Switch)) {
	do(s)
	for _, b := range s.Below {
		walkSwitches(b, do)
	}
}

// builder is the work on one tree.
type builder struct {
	tree   *Tree
	nodes  []*inventory.Node
	names  map[string]bool // that are taken
	ends   map[*inventory.Node][]*inventory.Switch
	uplink map[*inventory.Switch][]*inventory.Switch
	of     map[*Switch][]*inventory.Switch // the leaves that a Switch stands for
}

// cables finds the leaves of each node, and what is above these, on the fabric
// that has most cables to the nodes.
func (b *builder) cables(inv *inventory.Inventory) {
	mine := make(map[*inventory.Node]bool, len(b.nodes))
	for _, n := range b.nodes {
		mine[n] = true
	}
	count := map[*inventory.Fabric]int{}
	for _, c := range inv.Cables {
		if n, _, f := nodeEnd(c); mine[n] && f != nil {
			count[f]++
		}
	}
	for _, f := range inv.Fabrics {
		if count[f] > count[b.tree.Fabric] {
			b.tree.Fabric = f
		}
	}
	if b.tree.Fabric == nil {
		return
	}
	b.ends, b.uplink = map[*inventory.Node][]*inventory.Switch{}, map[*inventory.Switch][]*inventory.Switch{}
	for _, c := range inv.Cables {
		if n, s, f := nodeEnd(c); mine[n] && f == b.tree.Fabric && !slices.Contains(b.ends[n], s) {
			b.ends[n] = append(b.ends[n], s)
		}
		if x, y := c.From.Switch, c.To.Switch; x != nil && y != nil {
			b.uplink[x] = append(b.uplink[x], y)
			b.uplink[y] = append(b.uplink[y], x)
		}
	}
}

// nodeEnd takes a cable between a node and a switch apart; nil, nil, nil for
// others.
func nodeEnd(c *inventory.Cable) (*inventory.Node, *inventory.Switch, *inventory.Fabric) {
	at, far := c.NodeEnd()
	if at.Node == nil || far.Switch == nil || at.NIC == nil {
		return nil, nil, nil
	}
	return at.Node, far.Switch, at.NIC.Fabric
}

// leaves groups the nodes by the leaves that they share, else by rack.
func (b *builder) leaves() []*Switch {
	sets := newSets()
	for _, n := range b.nodes {
		for _, s := range b.ends[n] {
			sets.join(s, b.ends[n][0])
		}
	}
	var list []*Switch
	at := map[any]*Switch{}
	b.of = map[*Switch][]*inventory.Switch{}
	for _, n := range b.nodes {
		var key any = n.Rack
		if ends := b.ends[n]; len(ends) > 0 {
			key = sets.root(ends[0])
		}
		s := at[key]
		if s == nil {
			s = &Switch{}
			at[key] = s
			list = append(list, s)
		}
		s.Nodes = append(s.Nodes, n)
		for _, leaf := range b.ends[n] {
			if !slices.Contains(b.of[s], leaf) {
				b.of[s] = append(b.of[s], leaf)
			}
		}
	}
	for _, s := range list {
		s.Name = b.name(leafName(b.of[s], s.Nodes[0]))
	}
	slices.SortStableFunc(list, func(x, y *Switch) int { return natural.Compare(x.Name, y.Name) })
	return list
}

// leafName names leaves after the only one of them, their scalable unit, or the
// first; without any it is the rack's name.
func leafName(leaves []*inventory.Switch, first *inventory.Node) string {
	if len(leaves) == 0 {
		if first.Rack == nil {
			return "rack"
		}
		return first.Rack.Name
	}
	unit := leaves[0].ScalableUnit
	for _, s := range leaves {
		if s.ScalableUnit != unit {
			unit = 0
		}
	}
	if len(leaves) > 1 && unit > 0 {
		return fmt.Sprintf("su%d", unit)
	}
	name := slices.MinFunc(leaves, func(x, y *inventory.Switch) int { return natural.Compare(x.Name, y.Name) }).Name
	if len(leaves) > 1 {
		name += "-and-more"
	}
	return name
}

// pods groups leaves that share spines, where there are several such groups: with
// three levels. Else the leaves themselves are at the top.
func (b *builder) pods(leaves []*Switch) []*Switch {
	sets := newSets()
	for _, l := range leaves {
		for _, s := range b.of[l] {
			sets.join(l, s)
			for _, up := range b.uplink[s] {
				sets.join(s, up)
			}
		}
	}
	groups := map[any]*Switch{}
	var list []*Switch
	for _, l := range leaves {
		key := sets.root(l)
		if len(b.of[l]) == 0 || len(b.uplink) == 0 { // of racks, or of leaves that have nothing above
			return leaves
		}
		if groups[key] == nil {
			groups[key] = &Switch{}
			list = append(list, groups[key])
		}
		groups[key].Below = append(groups[key].Below, l)
	}
	if len(list) < 2 {
		return leaves
	}
	for i, g := range list {
		name := fmt.Sprintf("pod%d", i+1)
		if p := b.of[g.Below[0]][0].Pod; p > 0 {
			name = fmt.Sprintf("pod%d", p)
		}
		g.Name = b.name(name)
	}
	return list
}

// rootName is that of the switch above all: the fabric's.
func (b *builder) rootName() string {
	if b.tree.Fabric == nil {
		return "site"
	}
	return b.tree.Fabric.Name
}

// name makes a name that means itself in every scheduler's files and is not
// taken.
func (b *builder) name(text string) string {
	text = PlainName(text)
	for b.names[text] {
		text += "-x"
	}
	b.names[text] = true
	return text
}

// PlainName replaces what is none of the letters, digits, and - _ . by a hyphen.
func PlainName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, text)
}
