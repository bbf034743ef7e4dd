// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// checkHardware compares the parts of one chassis.
func (l *loader) checkHardware(h *Hardware, b *language.Body) {
	if p := b.Block("power"); p != nil {
		if h.Power.Typical > h.Power.Max && h.Power.Max > 0 {
			l.diags.Add("hardware.power", p.Range("typical"), "Typical power above the maximum", fmt.Sprintf("Hardware %q draws %s typically and %s at most.", h.Name, h.Power.Typical, h.Power.Max)).In(p.Decl)
		}
		if h.Power.Required > h.Power.Supplies {
			l.diags.Add("hardware.power", p.Range("required"), "More supplies required than built in", fmt.Sprintf("Hardware %q needs %d supplies and has %d.", h.Name, h.Power.Required, h.Power.Supplies)).In(p.Decl)
		}
	}
	l.checkInterconnect(h, b)
	l.checkDisks(h, b)
	type port struct {
		nic string
		at  hcl.Range
	}
	seen := map[string]port{}
	for _, block := range []string{"nic", "hca"} {
		for _, nb := range b.Blocks(block) {
			n, ok := h.NIC(nb.Name)
			if !ok {
				continue
			}
			if n.Decl != nb.Decl {
				l.diags.Add("name.duplicate", nb.Labels[0], "Two NICs of this name", fmt.Sprintf("Hardware %q has two nic or hca blocks %q; bonds and cables could not tell them apart.", h.Name, nb.Name)).Also("the other one", n.Decl).In(nb.Decl)
				continue
			}
			for i, p := range n.Ports {
				at := portPlace(nb, i)
				if first, dup := seen[p.PCI]; dup {
					l.diags.Add("pci.duplicate", at, "PCI address used twice", fmt.Sprintf("%s is a port of %q and of %q in hardware %q.", p.PCI, first.nic, n.Name, h.Name)).Also("used first here", first.at).In(nb.Decl)
					continue
				}
				seen[p.PCI] = port{n.Name, at}
			}
		}
	}
	l.checkRails(h, b)
	l.checkBootNIC(h, b)
	l.checkTagged(h, b)
}

// checkBootNIC reports a second block that boots the node: its network, from which the
// node has its address, would be that of the block that stands first.
func (l *loader) checkBootNIC(h *Hardware, b *language.Body) {
	var first *language.Body
	for _, nb := range slices.Concat(b.Blocks("nic"), b.Blocks("hca")) {
		if !language.Get[bool](nb, "boot") {
			continue
		}
		if first == nil {
			first = nb
			continue
		}
		l.diags.Add("nic.boot", nb.Range("boot"), "Second NIC that boots", fmt.Sprintf("Hardware %q boots from %q and from %q, and a node has one boot network and one boot_mac. Keep boot = true in one of them; ports of one network that may both boot belong in one block.", h.Name, first.Name, nb.Name)).
			Also("the first one", first.Range("boot")).In(nb.Decl)
	}
}

// vendorLinks are what each vendor's GPUs are joined by: NVLink, by itself or with
// NVSwitches, and AMD's Infinity Fabric (xGMI).
var vendorLinks = map[string][]string{"nvidia": {"nvswitch", "nvlink"}, "amd": {"xgmi"}}

// checkInterconnect reports GPUs that are joined by links of another vendor.
func (l *loader) checkInterconnect(h *Hardware, b *language.Body) {
	for i, g := range b.Blocks("gpu") {
		gpu := h.GPUs[i]
		if known := vendorLinks[gpu.Vendor]; gpu.Interconnect != "" && known != nil && !slices.Contains(known, gpu.Interconnect) {
			l.diags.Add("hardware.interconnect", g.Range("interconnect"), "Interconnect of another vendor", fmt.Sprintf("GPUs of vendor %q are joined by %s, not by %q. Leave interconnect out for PCIe cards.", gpu.Vendor, diag.Quoted(known), gpu.Interconnect)).Also("the vendor", g.Range("vendor")).In(g.Decl)
		}
	}
}

// checkRails reports two ports of one chassis on one rail of a fabric.
func (l *loader) checkRails(h *Hardware, b *language.Body) {
	type rail struct {
		fabric *Fabric
		number int
	}
	type port struct {
		pci string
		at  hcl.Range
	}
	seen := map[rail]port{}
	for _, nb := range slices.Concat(b.Blocks("nic"), b.Blocks("hca")) {
		n, ok := h.NIC(nb.Name)
		if !ok || n.Decl != nb.Decl || n.Fabric == nil {
			continue
		}
		for i, p := range n.Ports {
			if p.Rail < 0 {
				continue
			}
			k, at := rail{n.Fabric, p.Rail}, nb.ElementRange("ports", i)
			if first, dup := seen[k]; dup {
				l.diags.Add("rail.duplicate", at, "Two ports on one rail", fmt.Sprintf("Ports %s and %s of hardware %q are both on rail %d of fabric %q. Give each a rail of its own.", first.pci, p.PCI, h.Name, p.Rail, n.Fabric.Name)).Also("the first one", first.at).In(nb.Decl)
				continue
			}
			seen[k] = port{p.PCI, at}
		}
	}
}

// portPlace is where port i of a NIC is written: those of ports come first.
func portPlace(b *language.Body, i int) hcl.Range {
	if n := len(language.Get[[]NICPort](b, "ports")); i >= n {
		return b.ElementRange("pci", i-n)
	}
	return b.ElementRange("ports", i)
}

// checkNIC looks at one nic or hca block.
func (l *loader) checkNIC(n *NIC, b *language.Body) {
	if n.Fabric != nil && n.Network != nil {
		l.diags.Add("nic.place", b.Range("network"), "NIC on a network and on a fabric", fmt.Sprintf("%s %q stands on network %q and on fabric %q; it has one of the two.", b.Type, n.Name, n.Network.Name, n.Fabric.Name)).In(b.Decl)
	}
	if n.Boot && !b.Given("network") {
		l.diags.Add("language.required", b.Range("boot"), "No network to boot from", fmt.Sprintf("NIC %q boots the node; it needs network = network.NAME.", n.Name)).In(b.Decl)
	}
	if n.Fabric == nil {
		return
	}
	wrong := map[string]string{"infiniband": "ethernet", "roce": "infiniband"}
	if n.LinkType != "" && n.LinkType == wrong[n.Fabric.Kind] {
		l.diags.Add("nic.link-type", b.Range("link_type"), "Link type that the fabric has not", fmt.Sprintf("Fabric %q is of kind %s; its ports cannot be %s.", n.Fabric.Name, n.Fabric.Kind, n.LinkType)).Also("the fabric", n.Fabric.Decl).In(b.Decl)
	}
	for i, p := range n.Ports {
		switch at := b.ElementRange("ports", i); {
		case b.Given("ports") && p.Rail < 0:
			l.diags.Add("language.required", at, "Port without a rail", fmt.Sprintf("Port %s is on fabric %q; it needs rail = N.", p.PCI, n.Fabric.Name)).In(b.Decl)
		case n.Fabric.Rails > 0 && p.Rail >= n.Fabric.Rails:
			l.diags.Add("rail.range", at, "Rail that the fabric has not", fmt.Sprintf("Port %s is on rail %d; fabric %q has the rails 0 to %d.", p.PCI, p.Rail, n.Fabric.Name, n.Fabric.Rails-1)).Also("the fabric", n.Fabric.Decl).In(b.Decl)
		}
	}
}

// checkLayouts compares disk layouts and bonds with the hardware of the nodes
// that use them, each pair once.
func (l *loader) checkLayouts() {
	type pair struct {
		h *Hardware
		d *DiskLayout
		s *HostSettings
	}
	seen := map[pair]bool{}
	for _, n := range l.inv.Nodes {
		p := pair{n.Hardware, n.Disks, n.Host}
		if n.Hardware == nil || seen[p] {
			continue
		}
		seen[p] = true
		if n.Disks != nil {
			l.checkLayout(n.Hardware, n.Disks)
		}
		if n.Host != nil {
			l.checkBonds(n.Hardware, n.Host)
			l.checkBondsOf(n.Hardware, n.Host)
		}
	}
}

// checkRoles looks at what roles mount, and warns of those that no node has.
func (l *loader) checkRoles() {
	used := map[*Role]bool{}
	for _, n := range l.inv.Nodes {
		used[n.Role] = true
	}
	for _, r := range l.inv.Roles {
		l.checkMounts(r)
		if !used[r] && !l.diags.HasErrors() {
			l.diags.Add("role.unused", r.Decl, "Role without nodes", fmt.Sprintf("No node has the role %q. Give it to one, or remove it.", r.Name)).Warn()
		}
	}
}
