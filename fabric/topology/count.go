// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"math"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Counts is a fabric in numbers, from its switches and cables, computed or given.
// A splitter cable counts once.
type Counts struct {
	Nodes                 int
	Leaves, Spines, Cores int
	NodeCables            int // node to leaf, those of what manages the fabric among them
	LeafSpine, SpineCore  int
	Links                 int     // of nodes; the halves of a splitter cable count each
	Ratio                 float64 // the worst leaf's speed down by its speed up; 0: no leaf has uplinks
}

// CountFabric counts a fabric.
func CountFabric(inv *inventory.Inventory, f *inventory.Fabric) Counts {
	v := viewOf(inv, f)
	var c Counts
	for _, s := range v.switches {
		switch s.tier {
		case inventory.Leaf:
			c.Leaves++
			if s.up > 0 {
				c.Ratio = max(c.Ratio, s.down/s.up)
			}
		case inventory.Spine:
			c.Spines++
		case inventory.Core:
			c.Cores++
		}
	}
	nodes := map[*inventory.Node]bool{}
	for _, e := range v.cables {
		if e.node != nil {
			nodes[e.node] = true
			c.Links++
		}
		if e.cable.Splitter != nil {
			continue
		}
		switch {
		case e.high == nil:
			c.NodeCables++
		case e.high.tier == inventory.Spine:
			c.LeafSpine++
		case e.high.tier == inventory.Core:
			c.SpineCore++
		}
	}
	c.Nodes = len(nodes)
	return c
}

// String is the fabric in one line, its over-subscription always among it:
// "32 leaves, 16 spines, 1020 cables to nodes, 1024 between switches, 1:1".
func (c Counts) String() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, strconv.Itoa(n)+" "+many)
		}
	}
	add(c.Leaves, "leaf", "leaves")
	add(c.Spines, "spine", "spines")
	add(c.Cores, "core", "cores")
	add(c.NodeCables, "cable to nodes", "cables to nodes")
	add(c.LeafSpine+c.SpineCore, "between switches", "between switches")
	if c.Ratio > 0 {
		parts = append(parts, strconv.FormatFloat(math.Round(c.Ratio*100)/100, 'f', -1, 64)+":1")
	}
	return strings.Join(parts, ", ")
}
