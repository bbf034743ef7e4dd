// SPDX-License-Identifier: Apache-2.0

// Package nvlink is the fabric kind of NVLink between nodes: domains of nodes
// whose GPUs are one, such as the 18 compute trays of a GB200 NVL72 rack. It
// checks that the site's domains are what the fabric says, and that the GPUs have
// joined the same one; and it sets up IMEX, the service by which they share memory.
package nvlink

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Name is the kind's name in the language.
const Name = "nvlink"

// domain is the nodes that say they are in one.
type domain struct {
	name  string
	nodes []*inventory.Node
}

// Check looks at the domains of a fabric: their size, their racks, and nodes that
// have none. domain_size counts nodes, not GPUs. Source: NVIDIA GB200 NVL72 (18
// compute trays of 4 GPUs and 9 switch trays to a rack), NVIDIA IMEX guide (all
// nodes of a domain are in nodes_config.cfg).
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	i := slices.IndexFunc(inv.Fabrics, func(f *inventory.Fabric) bool { return f.Name == b.Name && f.Kind == Name })
	if i < 0 {
		return nil
	}
	f := inv.Fabrics[i]
	size, imex := b.Number("domain_size"), b.True("imex")
	domains, without := listDomains(inv, f)
	var found diag.List
	if len(without) > 0 && (size > 0 || imex) {
		reportMissing(&found, f, without)
	}
	for _, d := range domains {
		if size > 0 && len(d.nodes) != size {
			wrongSize(&found, f, d, size)
		}
		twoRacks(&found, f, d)
		twoSets(&found, f, d)
	}
	return found
}

// listDomains lists the domains of a fabric by name, and the nodes that should be in
// one and are not. A node is on the fabric that its NICs name, or the NVLink
// switches of its rack; with one fabric of the kind, all nodes with a domain or
// with NVLink that leaves the chassis are on it.
func listDomains(inv *inventory.Inventory, f *inventory.Fabric) (domains []domain, without []*inventory.Node) {
	only := 0
	for _, x := range inv.Fabrics {
		if x.Kind == Name {
			only++
		}
	}
	at := map[string]int{}
	for _, n := range inv.Nodes {
		leaves := linksOutside(n.Hardware)
		switch {
		case !leaves && n.Domain == "":
			continue
		case only > 1 && !isOn(n, f):
			continue
		case n.Domain == "":
			without = append(without, n)
			continue
		}
		i, known := at[n.Domain]
		if !known {
			i = len(domains)
			at[n.Domain] = i
			domains = append(domains, domain{name: n.Domain})
		}
		domains[i].nodes = append(domains[i].nodes, n)
	}
	slices.SortFunc(domains, func(a, b domain) int { return strings.Compare(a.name, b.name) })
	return domains, without
}

// linksOutside reports whether the GPUs of a chassis are linked to those of others: an
// interconnect of "nvswitch" stays in the chassis (HGX).
func linksOutside(h *inventory.Hardware) bool {
	return h != nil && slices.ContainsFunc(h.GPUs, func(g inventory.GPU) bool { return g.Interconnect == "nvlink" })
}

// isOn reports whether the site says that a node is on a fabric.
func isOn(n *inventory.Node, f *inventory.Fabric) bool {
	if n.Hardware != nil && slices.ContainsFunc(n.Hardware.NICs, func(x inventory.NIC) bool { return x.Fabric == f }) {
		return true
	}
	return n.Rack != nil && slices.ContainsFunc(n.Rack.Switches, func(s *inventory.Switch) bool { return s.Fabric == f })
}

func reportMissing(found *diag.List, f *inventory.Fabric, without []*inventory.Node) {
	var names []string
	for _, n := range without {
		names = append(names, n.Name)
	}
	found.Add("nvlink.domain", without[0].Decl, "Node without an NVLink domain", fmt.Sprintf("The GPUs of %s have NVLink to other nodes, and fabric %q has domains. Say domain = \"NAME\" for each node, such as the name of its rack.", diag.Few(names, len(names)), f.Name)).Also("the fabric", f.Decl).Of(names...)
}

func wrongSize(found *diag.List, f *inventory.Fabric, d domain, size int) {
	gpus := 0
	for _, n := range d.nodes {
		if n.Hardware != nil {
			gpus += n.Hardware.GPUCount()
		}
	}
	var names []string
	for _, n := range d.nodes {
		names = append(names, n.Name)
	}
	text := fmt.Sprintf("Domain %q of fabric %q has %d nodes, and domain_size is %d. Correct the domain of its nodes, or domain_size.", d.name, f.Name, len(d.nodes), size)
	if gpus == size {
		text = fmt.Sprintf("Domain %q of fabric %q has %d nodes with %d GPUs, and domain_size is %d: it counts nodes. Say domain_size = %d.", d.name, f.Name, len(d.nodes), gpus, size, len(d.nodes))
	}
	found.Add("nvlink.domain-size", f.Place("domain_size"), "Wrong size of an NVLink domain", text).Also("its first node", d.nodes[0].Decl).In(f.Decl).Of(names...)
}

// twoRacks reports a domain in several racks. Copper holds NVLink to one rack,
// but for designs whose racks have NVLink switches each.
func twoRacks(found *diag.List, f *inventory.Fabric, d domain) {
	first := d.nodes[0]
	for _, n := range d.nodes[1:] {
		if n.Rack == first.Rack || hasNVSwitches(n.Rack) && hasNVSwitches(first.Rack) {
			continue
		}
		found.Add("nvlink.domain-racks", n.Decl, "NVLink domain in two racks", fmt.Sprintf("Domain %q of fabric %q has %s in rack %s and %s in rack %s, and these racks have no NVLink switches each. Give one of them another domain, or say switch \"NAME\" { kind = \"nvlink\" } in both racks.",
			d.name, f.Name, first.Name, rackName(first), n.Name, rackName(n))).Also("its first node", first.Decl).Of(first.Name, n.Name)
		return
	}
}

// twoSets reports a domain whose nodes have different drivers: its GPUs are one machine to what runs
// on them, and IMEX refuses a peer of another version.
func twoSets(found *diag.List, f *inventory.Fabric, d domain) {
	first := d.nodes[0]
	for _, n := range d.nodes[1:] {
		if slices.Equal(n.Drivers, first.Drivers) {
			continue
		}
		found.Add("nvlink.domain-drivers", n.Decl, "NVLink domain with two sets of drivers", fmt.Sprintf("Domain %q of fabric %q has %s with %s and %s with %s. Driver, IMEX, DOCA, CUDA and tools of a domain are one set: give all of its nodes the same drivers.",
			d.name, f.Name, first.Name, driverNames(first), n.Name, driverNames(n))).Also("its first node", first.Decl).Of(first.Name, n.Name)
		return
	}
}

// driverNames lists the drivers of a node in their order.
func driverNames(n *inventory.Node) string {
	if len(n.Drivers) == 0 {
		return "no drivers"
	}
	var names []string
	for _, d := range n.Drivers {
		names = append(names, "driver."+d.Name)
	}
	return strings.Join(names, ", ")
}

func rackName(n *inventory.Node) string {
	if n.Rack == nil {
		return "none"
	}
	return fmt.Sprintf("%q", n.Rack.Name)
}

func hasNVSwitches(r *inventory.Rack) bool {
	return r != nil && slices.ContainsFunc(r.Switches, func(s *inventory.Switch) bool { return s.Kind == Name })
}
