// SPDX-License-Identifier: Apache-2.0

package inventory

// Copy returns an inventory whose nodes, racks and cables are its own, so that they may
// be changed; the blocks that these refer to (hardware, images, roles, switches and so
// on) are shared, and the lists of both are of their own.
func (inv *Inventory) Copy() *Inventory {
	out := *inv
	nodes := make([]Node, len(inv.Nodes))
	copies := make(map[*Node]*Node, len(inv.Nodes))
	out.Nodes = make([]*Node, len(inv.Nodes))
	for i, n := range inv.Nodes {
		nodes[i] = *n
		out.Nodes[i], copies[n] = &nodes[i], &nodes[i]
	}
	out.Images = append([]*Image(nil), inv.Images...)
	out.Racks = make([]*Rack, len(inv.Racks))
	for i, r := range inv.Racks {
		rack := *r
		rack.Nodes = make([]*Node, len(r.Nodes))
		for j, n := range r.Nodes {
			rack.Nodes[j] = copies[n]
			copies[n].Rack = &rack
		}
		out.Racks[i] = &rack
	}
	cables := make([]Cable, len(inv.Cables))
	out.Cables = make([]*Cable, len(inv.Cables))
	for i, cable := range inv.Cables {
		cables[i] = *cable
		cables[i].From.Node, cables[i].To.Node = copies[cable.From.Node], copies[cable.To.Node]
		out.Cables[i] = &cables[i]
	}
	return &out
}
