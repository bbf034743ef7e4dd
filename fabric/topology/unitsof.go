// SPDX-License-Identifier: Apache-2.0

package topology

import "github.com/ironrail/ironrail/inventory"

// UnitsOf says which scalable unit nodes are in, from 1: what the files give, else
// the unit of the leaves that the node's ports end on. on is the fabric whose units
// count for a chassis; nil: every one. A node whose leaves are of several units, or
// of none, is not in it. It reads the cables of the inventory once, and is pure.
func UnitsOf(inv *inventory.Inventory, on func(*inventory.Hardware) *inventory.Fabric) map[*inventory.Node]int {
	units := make(map[*inventory.Node]int, len(inv.Nodes))
	for _, n := range inv.Nodes {
		if n.ScalableUnit > 0 {
			units[n] = n.ScalableUnit
		}
	}
	counts := map[*inventory.Hardware]*inventory.Fabric{}
	torn := map[*inventory.Node]bool{}
	for _, c := range inv.Cables {
		at, unit := intoUnit(c)
		n := at.Node
		if unit == 0 || n.ScalableUnit > 0 {
			continue
		}
		f, known := counts[n.Hardware]
		if !known {
			f = on(n.Hardware)
			counts[n.Hardware] = f
		}
		if f != nil && f != at.NIC.Fabric {
			continue
		}
		if u, ok := units[n]; ok && u != unit {
			torn[n] = true
		}
		units[n] = unit
	}
	for n := range torn {
		delete(units, n)
	}
	return units
}

// intoUnit returns the end of a cable at a node's NIC, and the scalable unit of the
// switch at the other end; 0: the cable does not lead from a NIC to a switch of a
// unit.
func intoUnit(c *inventory.Cable) (at *inventory.CableEnd, unit int) {
	at, far := c.NodeEnd()
	if at.Node == nil || at.Node.Hardware == nil || at.NIC == nil || far.Switch == nil {
		return at, 0
	}
	return at, far.Switch.ScalableUnit
}
