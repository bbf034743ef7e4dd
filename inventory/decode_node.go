// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// rackNodes decodes the nodes of one rack.
func (l *loader) rackNodes(r *Rack, b *language.Body) {
	for _, nb := range b.Blocks("node") {
		l.checkName(nb, nodeName)
		if first := l.nodes[nb.Name]; first != nil {
			l.diags.Add("name.duplicate", nb.Named, "Second node of this name",
				fmt.Sprintf("Two nodes are named %q, in rack %q and in rack %q. Names of nodes are unique in the site.", nb.Name, first.Rack.Name, r.Name)).Also("the first one", first.Ranges.Name).In(nb.Decl)
			continue
		}
		n := l.node(r, nb)
		l.nodes[n.Name] = n
		l.bodies[n] = nb
		r.Nodes = append(r.Nodes, n)
		l.inv.Nodes = append(l.inv.Nodes, n)
	}
	slices.SortStableFunc(r.Nodes, func(a, b *Node) int { return a.Unit - b.Unit })
}

// bodyOf returns the body that says attribute name of a node: its override, or itself.
func bodyOf(node, override *language.Body, name string) *language.Body {
	if override != nil && override.Given(name) {
		return override
	}
	return node
}

func (l *loader) node(r *Rack, b *language.Body) *Node {
	over := l.overrides[b.Name]
	if over != nil && l.expired(over) {
		over = nil
	}
	n := &Node{Name: b.Name, Rack: r, Unit: language.Get[int](b, "unit"), Role: readRef(b, "role", l.roles), ScalableUnit: r.ScalableUnit, Decl: b.Decl}
	get := func(name string) *language.Body { return bodyOf(b, over, name) }
	if src := get("scalable_unit"); src.Given("scalable_unit") {
		n.ScalableUnit = language.Get[int](src, "scalable_unit")
	}
	n.Serial = language.Get[string](get("serial"), "serial")
	n.UUID = language.Get[string](get("uuid"), "uuid")
	n.BootMAC = language.Get[addr.MAC](get("boot_mac"), "boot_mac")
	n.Domain = language.Get[string](get("domain"), "domain")
	n.InstallDisk = language.Get[string](get("install_disk"), "install_disk")
	l.settings(n, b, over)
	n.Ranges = NodeRanges{
		Name: b.Named, Unit: b.Range("unit"), Serial: get("serial").Range("serial"), UUID: get("uuid").Range("uuid"), BootMAC: get("boot_mac").Range("boot_mac"),
		BMCMAC: get("bmc_mac").Range("bmc_mac"), Address: get("address").Range("address"), Hardware: get("hardware").Range("hardware"), Role: b.Range("role"), Feeds: get("feeds").Range("feeds"),
		InstallDisk: get("install_disk").Range("install_disk"),
	}
	l.bootAddress(n, get("address"))
	l.target(n, b, over)
	l.console(n, b, over)
	supplies := 0
	if n.Hardware != nil {
		supplies = n.Hardware.Power.Supplies
	}
	n.Feeds = l.feeds(get("feeds"), b, r, supplies, n.Name)
	return n
}

// settings takes from the override, the node or the role what they may all say.
func (l *loader) settings(n *Node, b, over *language.Body) {
	if role := n.Role; role != nil {
		n.Hardware, n.Image, n.Disks, n.Host, n.Drivers = role.Hardware, role.Image, role.Disks, role.Host, role.Drivers
		n.Partitions, n.Validation, n.Handover, n.Protect = role.Partitions, role.Validation, role.Handover, role.Protect
	}
	if src := bodyOf(b, over, "hardware"); src.Given("hardware") {
		n.Hardware = readRef(src, "hardware", l.hardware)
	} else if n.Hardware == nil && n.Role != nil && !l.bodies[n.Role].Given("hardware") {
		l.diags.Add("language.required", b.Decl, "Node without hardware", fmt.Sprintf("Neither node %q nor its role %q says which hardware it is. Add hardware = hardware.NAME to one of them.", n.Name, n.Role.Name)).Also("the role", n.Role.Decl)
	}
	if src := bodyOf(b, over, "protect"); src.Given("protect") {
		n.Protect = language.Get[bool](src, "protect")
	}
	if over == nil {
		return
	}
	applyOverride(over, "image", l.images, &n.Image)
	applyOverride(over, "disks", l.layouts, &n.Disks)
	applyOverride(over, "host", l.hosts, &n.Host)
	applyOverride(over, "validation", l.validations, &n.Validation)
	applyOverride(over, "handover", l.handovers, &n.Handover)
	if over.Given("drivers") {
		n.Drivers = readRefs(over, "drivers", l.drivers)
	}
	if over.Given("partitions") {
		n.Partitions = l.partitions(over)
	}
}

// applyOverride replaces *to by what the override refers to, if it says something.
func applyOverride[T any](over *language.Body, name string, among map[string]*T, to **T) {
	if over.Given(name) {
		*to = readRef(over, name, among)
	}
}

// bootAddress gives the node its address on the network that it boots from.
func (l *loader) bootAddress(n *Node, src *language.Body) {
	if n.Hardware != nil {
		if nic, ok := n.Hardware.BootNIC(); ok {
			n.BootNetwork = nic.Network
		}
	}
	n.Address = language.Get[netip.Addr](src, "address")
	given := src.Given("address")
	if !given && n.BootNetwork != nil {
		n.Address = positionAddress(n.BootNetwork.CIDR, n.Rack.Number, n.Unit)
		n.Ranges.Address = n.Ranges.Unit
	}
	if n.BootNetwork != nil {
		l.inNetwork(n.Address, n.BootNetwork, n, "node", n.Ranges.Address, given)
	}
	l.addresses.add(n.Address, "node "+n.Name, n.Ranges.Address, n.Name)
	l.secondAddress(n)
	l.taggedNetworks(n, given)
}

// target resolves the node's BMC: the profile of the role, with what the node's
// and the override's bmc blocks say otherwise.
func (l *loader) target(n *Node, b, over *language.Body) {
	t := &n.BMC
	if n.Role != nil && n.Role.BMC != nil {
		p := n.Role.BMC
		*t = BMCTarget{
			Profile: p, Protocol: p.Protocol, Network: p.Network, Port: p.Port, CipherSuite: p.CipherSuite, Endpoint: p.Endpoint, Username: p.Username, Password: p.Password, TLS: p.TLS, FactoryUsername: p.FactoryUsername,
		}
	}
	src := bodyOf(b, over, "bmc_mac")
	t.MAC = language.Get[addr.MAC](src, "bmc_mac")
	src = bodyOf(b, over, "factory_password")
	t.FactoryPassword = language.Get[secret.Ref](src, "factory_password")
	n.Ranges.BMCAddress = n.Ranges.Unit
	given := l.bmcBlock(n, b.Block("bmc"))
	given = l.bmcBlock(n, over.Block("bmc")) || given
	if t.Network == nil {
		return
	}
	if !given {
		t.Address = positionAddress(t.Network.CIDR, n.Rack.Number, n.Unit)
	}
	l.inNetwork(t.Address, t.Network, n, "BMC", n.Ranges.BMCAddress, given)
	l.addresses.add(t.Address, "the BMC of "+n.Name, n.Ranges.BMCAddress, n.Name)
}

// bmcBlock applies a bmc block of a node; it reports whether it gives an address.
func (l *loader) bmcBlock(n *Node, b *language.Body) bool {
	if b == nil {
		return false
	}
	t := &n.BMC
	if b.Given("protocol") && language.Get[string](b, "protocol") != t.Protocol {
		t.Protocol, t.Port, t.CipherSuite, t.TLS, t.Endpoint = language.Get[string](b, "protocol"), 0, -1, TLSTrust{Mode: TLSPinFirstSeen}, ""
	}
	t.Endpoint = l.endpoint(b, t.Protocol, t.Endpoint)
	t.Port, t.CipherSuite = l.bmcPort(b, t.Protocol, t.Port, t.CipherSuite)
	t.TLS = l.trust(b, t.Protocol, t.TLS)
	if b.Given("username") {
		t.Username = language.Get[string](b, "username")
	}
	if b.Given("password") {
		t.Password = language.Get[secret.Ref](b, "password")
	}
	if !b.Given("address") {
		return false
	}
	t.Address = language.Get[netip.Addr](b, "address")
	n.Ranges.BMCAddress = b.Range("address")
	return true
}

// unknownPDU reports a feed from a PDU that the rack does not have.
func (l *loader) unknownPDU(b, owner *language.Body, r *Rack, i int, pdu, name string) {
	var known []string
	for _, p := range r.PDUs {
		known = append(known, p.Label)
	}
	at := b.ElementRange("feeds", i)
	l.diags.Add("reference.unknown", at, "Unknown PDU", fmt.Sprintf("%s feeds from PDU %q, but rack %q has none of that name.%s", name, pdu, r.Name, diag.DidYouMean(pdu, known))).In(owner.Decl).Of(name)
}

// finishNodes sorts the nodes and looks for overrides of none.
func (l *loader) finishNodes() {
	sortByName(l.inv.Nodes)
	for _, o := range l.inv.Overrides {
		n := l.nodes[o.Node]
		if n == nil {
			l.diags.Add("reference.unknown", l.bodies[o].Labels[0], "Override of an unknown node", fmt.Sprintf("There is no node %q.%s", o.Node, l.meantNode(o.Node))).In(o.Decl)
			continue
		}
		if !l.expired(l.bodies[o]) {
			n.Override = o
		}
	}
}

// sortByName sorts things by their names.
func sortByName[T any](list []*T) {
	slices.SortStableFunc(list, func(a, b *T) int { return strings.Compare(nameOf(a), nameOf(b)) })
}

func nameOf(thing any) string {
	switch t := thing.(type) {
	case *Node:
		return t.Name
	case *Controller:
		return t.Name
	case *Network:
		return t.Name
	case *BMCProfile:
		return t.Name
	case *Hardware:
		return t.Name
	case *Image:
		return t.Name
	case *DiskLayout:
		return t.Name
	case *HostSettings:
		return t.Name
	case *Driver:
		return t.Name
	case *Fabric:
		return t.Name
	case *Validation:
		return t.Name
	case *Handover:
		return t.Name
	case *Role:
		return t.Name
	case *Rack:
		return t.Name
	}
	return ""
}

// none is the place of nothing.
var none hcl.Range
