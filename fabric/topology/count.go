package topology

import (
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

// Count counts a fabric.
func Count(inv *inventory.Inventory, f *inventory.Fabric) Counts {
	v := look(inv, f)
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
