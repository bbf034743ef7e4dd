// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/inventory"
)

// alike is how many nodes with the same leaves make a rule of it.
const alike = 3

// railLeaf reports rails that do not end on their leaf. A leaf that has a rail or
// a unit takes no other. Where leaves say nothing, a node is compared with those
// that have the same leaves as three at least: one that differs from them in less
// than half of its rails, or has their leaves in another order, is crossed.
func (k *checker) railLeaf() {
	if k.f.Topology == "fat-tree" {
		return
	}
	var faults []fault
	reported := map[*inventory.Node]bool{}
	for _, h := range k.nodes {
		for r, e := range h.edges {
			if e == nil {
				continue
			}
			switch {
			case e.low.Rail >= 0 && e.low.Rail != r:
				faults = append(faults, k.crossed(h, r, fmt.Sprintf("%s, a leaf of rail %d", e.low.Name, e.low.Rail)))
			case e.low.ScalableUnit > 0 && h.node.ScalableUnit > 0 && e.low.ScalableUnit != h.node.ScalableUnit:
				faults = append(faults, k.crossed(h, r, fmt.Sprintf("%s, a leaf of scalable unit %d, and the node is in unit %d", e.low.Name, e.low.ScalableUnit, h.node.ScalableUnit)))
			default:
				continue
			}
			reported[h.node] = true
		}
	}
	faults = append(faults, k.odd(reported)...)
	k.report("fabric.rail-leaf", "Rail not on its leaf", "Rail r of all nodes of a unit belongs on one leaf: plug the cable there, or correct its block.", faults)
}

func (k *checker) crossed(h home, rail int, where string) fault {
	e := h.edges[rail]
	return fault{fmt.Sprintf("rail %d of %s ends on %s", rail, h.node.Name, where), e.cable.Place(e.end), []string{h.node.Name}}
}

// pattern is the leaves of a node's rails, by index among the switches; -1: none.
type pattern struct {
	leaves []int32
	count  int
	first  *inventory.Node
}

// odd finds the nodes whose leaves are nearly those of others.
func (k *checker) odd(reported map[*inventory.Node]bool) (faults []fault) {
	of := k.patterns()
	rules := map[int32][]*pattern{} // those that make a rule, by leaf
	for i := range k.nodes {
		if p := of[i]; p.count >= alike && p.first == k.nodes[i].node {
			for _, l := range slices.Compact(slices.Sorted(slices.Values(p.leaves))) {
				rules[l] = append(rules[l], p)
			}
		}
	}
	for i, h := range k.nodes {
		if of[i].count >= alike || reported[h.node] {
			continue
		}
		rule := nearestPattern(of[i], rules)
		if rule == nil {
			continue
		}
		for r, l := range of[i].leaves {
			if l >= 0 && rule.leaves[r] >= 0 && l != rule.leaves[r] {
				faults = append(faults, k.crossed(h, r, fmt.Sprintf("%s, and that of %s and %d other nodes on %s", k.switches[l].Name, rule.first.Name, rule.count-1, k.switches[rule.leaves[r]].Name)))
			}
		}
	}
	return faults
}

// patterns returns the pattern of each node; nodes with the same leaves share one.
func (k *checker) patterns() []*pattern {
	index := map[*vertex]int32{}
	for i, s := range k.switches {
		index[s] = int32(i)
	}
	byKey := map[string]*pattern{}
	of := make([]*pattern, len(k.nodes))
	var key []byte
	for i, h := range k.nodes {
		key = key[:0]
		leaves := make([]int32, len(h.edges))
		for r, e := range h.edges {
			if leaves[r] = -1; e != nil {
				leaves[r] = index[e.low]
			}
			key = binary.LittleEndian.AppendUint32(key, uint32(leaves[r]))
		}
		p := byKey[string(key)]
		if p == nil {
			p = &pattern{leaves: leaves, first: h.node}
			byKey[string(key)] = p
		}
		p.count++
		of[i] = p
	}
	return of
}

// nearestPattern returns the rule that a pattern breaks; nil: none.
func nearestPattern(p *pattern, rules map[int32][]*pattern) (best *pattern) {
	least := len(p.leaves) + 1
	for _, l := range p.leaves {
		if l < 0 {
			continue
		}
		for _, rule := range rules[l] {
			n := 0
			for r := range p.leaves {
				if p.leaves[r] >= 0 && rule.leaves[r] >= 0 && p.leaves[r] != rule.leaves[r] {
					n++
				}
			}
			if n > 0 && n < least && (2*n < len(p.leaves) || isReordered(p.leaves, rule.leaves)) {
				best, least = rule, n
			}
		}
	}
	return best
}

func isReordered(a, b []int32) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
