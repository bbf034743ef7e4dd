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
		at, far := &c.From, &c.To
		if at.Node == nil {
			at, far = far, at
		}
		n := at.Node
		if n == nil || n.ScalableUnit > 0 || n.Hardware == nil || at.NIC == nil || far.Switch == nil || far.Switch.ScalableUnit == 0 {
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
		if u, ok := units[n]; ok && u != far.Switch.ScalableUnit {
			torn[n] = true
		}
		units[n] = far.Switch.ScalableUnit
	}
	for n := range torn {
		delete(units, n)
	}
	return units
}
