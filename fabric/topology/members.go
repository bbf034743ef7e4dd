// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/inventory"
)

// gather finds the nodes with ports of rails on the fabric, and which of these
// ports cable blocks take.
func (d *design) gather() {
	of := map[*inventory.Hardware][]outlet{}
	for _, n := range d.inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		list, known := of[n.Hardware]
		if !known {
			list = listOutlets(n.Hardware, d.f)
			of[n.Hardware] = list
			d.railless(n.Hardware)
		}
		if len(list) > 0 {
			d.members = append(d.members, member{node: n, outlets: list})
			d.ports += len(list)
		}
	}
	d.given = map[plug]bool{}
	for _, c := range d.inv.Cables {
		if c.Computed() {
			continue
		}
		for _, e := range [2]*inventory.CableEnd{&c.From, &c.To} {
			if e.Node != nil && e.NIC != nil && e.NIC.Fabric == d.f {
				d.given[plug{e.Node, e.NIC, e.Port}] = true
			}
		}
	}
}

// railless reports NICs on the fabric whose ports say no rail: nothing would be
// cabled there.
func (d *design) railless(h *inventory.Hardware) {
	for i := range h.NICs {
		nic := &h.NICs[i]
		if nic.Fabric != d.f || len(nic.Ports) == 0 || slices.ContainsFunc(nic.Ports, func(p inventory.NICPort) bool { return p.Rail >= 0 }) {
			continue
		}
		d.found.Add("fabric.rails", nic.Decl, "Ports without a rail", fmt.Sprintf("NIC %q of hardware %q is on fabric %q, whose topology cables rails, and its ports say none. Write ports = [{ rail = 0, pci = %q }].", nic.Name, h.Name, d.f.Name, nic.Ports[0].PCI)).Also("the fabric", d.f.Decl)
	}
}

// listOutlets lists the ports of a chassis on a fabric, by rail.
func listOutlets(h *inventory.Hardware, f *inventory.Fabric) (list []outlet) {
	for i := range h.NICs {
		nic := &h.NICs[i]
		if nic.Fabric != f {
			continue
		}
		for j, p := range nic.Ports {
			if p.Rail >= 0 {
				list = append(list, outlet{nic, j, p.Rail})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b outlet) int { return a.rail - b.rail })
	return list
}

// Of is the fabric that a block is; nil: none of the site.
func Of(inv *inventory.Inventory, b inventory.Block) *inventory.Fabric {
	i := slices.IndexFunc(inv.Fabrics, func(f *inventory.Fabric) bool { return f.Name == b.Name && f.Kind == b.Kind })
	if i < 0 {
		return nil
	}
	return inv.Fabrics[i]
}

// CountPorts returns the number of ports of rails that the site's nodes have on a fabric.
func CountPorts(inv *inventory.Inventory, f *inventory.Fabric) int {
	total := 0
	of := map[*inventory.Hardware]int{}
	for _, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		count, known := of[n.Hardware]
		if !known {
			count = len(listOutlets(n.Hardware, f))
			of[n.Hardware] = count
		}
		total += count
	}
	return total
}
