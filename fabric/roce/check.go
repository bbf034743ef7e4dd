// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// CheckLinks finds what addresses cannot be given to: a fabric without a CIDR
// and, of point-to-point addresses, one whose CIDR is too small, and ports that no
// cable ends in.
// links are those of Addresses. It is pure.
func CheckLinks(inv *inventory.Inventory, links []*Links) diag.List {
	var found diag.List
	by := map[*inventory.Fabric]*Links{}
	for _, l := range links {
		by[l.Fabric] = l
	}
	for _, f := range inv.Fabrics {
		if f.Kind != Name || f.Addressing == "" {
			continue
		}
		switch l := by[f]; {
		case !f.CIDR.IsValid():
			found.Add("roce.cidr", f.Place("addressing"), "Fabric without a CIDR", fmt.Sprintf("Fabric %q has addressing %q and no cidr to take the addresses from. Give it one, such as cidr = \"10.200.0.0/14\".", f.Name, f.Addressing)).In(f.Decl)
		case f.Addressing != pointToPoint: // positions are checked as those of nodes are
		case l == nil:
			found.Add("roce.cidr", f.Place("cidr"), "CIDR cannot be cut", fmt.Sprintf("%s of fabric %q is too small to be cut into a part for each of its rails (%d) and one for links between switches.%s", f.CIDR, f.Name, max(f.Rails, 1), adviseCIDR(inv, f))).In(f.Decl)
		default:
			l.room(&found)
			l.portless(inv, &found)
		}
	}
	return found
}

// room reports a CIDR that is too small, with the length that would do.
func (l *Links) room(to *diag.List) {
	short := l.Allocation.Shortages
	if len(short) == 0 {
		return
	}
	f, s := l.Fabric, short[0]
	text := fmt.Sprintf("The part of %s in %s of fabric %q is %s, which has room for %d, and %d are needed", s.Pool.What, f.CIDR, f.Name, s.Pool.Prefix, s.Room, s.Need)
	if s.Stale > 0 {
		text += fmt.Sprintf(" (%d of them kept for things that are gone: `ironrail lock --prune` gives those back)", s.Stale)
	}
	if len(short) > 1 {
		text += fmt.Sprintf("; %d other parts are too small as well", len(short)-1)
	}
	text += "." + l.advice()
	to.Add("roce.cidr", f.Place("cidr"), "CIDR too small for its links", text).In(f.Decl)
}

// adviseCIDR returns the advice for a fabric whose CIDR cannot be cut.
func adviseCIDR(inv *inventory.Inventory, f *inventory.Fabric) string {
	l := &Links{Fabric: f}
	l.gather(inv)
	return l.advice()
}

// advice names the CIDR that would do, as a sentence after another.
func (l *Links) advice() string {
	if length := l.Enough(); length > 0 {
		return fmt.Sprintf(" A CIDR of /%d has room for all.", length)
	}
	return " No CIDR of this kind of address has room for all."
}

// linkCheck is the name of the check of ports without a cable.
const linkCheck = "roce.link"

// portless reports the ports of nodes that have no link, all in one finding, and
// those of nodes whose override allows it in another: a topology that could not
// be computed says so itself.
func (l *Links) portless(inv *inventory.Inventory, to *diag.List) {
	if len(l.Links) == 0 && l.Fabric.Topology != "explicit" {
		return
	}
	if l.full(inv) {
		return
	}
	var refused, allowed loose
	ends := l.ends()
	for _, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		in := &refused
		if n.Override != nil && slices.Contains(n.Override.Allow, linkCheck) {
			in = &allowed
		}
		for _, p := range portsOn(l.Fabric, n) {
			if !ends[end{n, p.nic.Name, p.index}] {
				in.add(n, p)
			}
		}
	}
	refused.report(l.Fabric, to)
	allowed.report(l.Fabric, to)
}

// full reports whether there are as many links as ports of nodes, so that none is
// without: it is so at every site but one with a mistake, and is known at once.
// (Two cables in one port are port.duplicate.)
func (l *Links) full(inv *inventory.Inventory) bool {
	ports := 0
	of := map[*inventory.Hardware]int{}
	for _, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		count, known := of[n.Hardware]
		if !known {
			count = len(portsOn(l.Fabric, n))
			of[n.Hardware] = count
		}
		ports += count
	}
	links := 0
	for _, k := range l.Links {
		if k.Cable.From.Node != nil || k.Cable.To.Node != nil {
			if k.Lower().Lane > 0 {
				return false // several links of one port
			}
			links++
		}
	}
	return ports == links
}

// loose are ports without a cable.
type loose struct {
	count int
	names []string // of the first
	nodes []string
	at    hcl.Range // of the first
}

func (o *loose) add(n *inventory.Node, p port) {
	if o.count++; o.count == 1 {
		o.at = p.decl
	}
	if o.count <= diag.Shown {
		o.names = append(o.names, inventory.CableEnd{Node: n, NIC: p.nic, Port: p.index}.String())
	}
	if len(o.nodes) == 0 || o.nodes[len(o.nodes)-1] != n.Name {
		o.nodes = append(o.nodes, n.Name)
	}
}

func (o *loose) report(f *inventory.Fabric, to *diag.List) {
	if o.count == 0 {
		return
	}
	text := fmt.Sprintf("%s of fabric %q", strings.Join(o.names, ", "), f.Name)
	verb := " end"
	if o.count == 1 {
		verb = " ends"
	}
	if o.count > len(o.names) {
		text = fmt.Sprintf("%d ports of fabric %q, such as %s,", o.count, f.Name, strings.Join(o.names, ", "))
	}
	to.Add(linkCheck, o.at, "Port without a link", text+verb+" in no cable, and a point-to-point address belongs to a cable. Add a cable block, or let a topology compute the cables.").Also("the addressing", f.Place("addressing")).Of(o.nodes...)
}

// ends are the ports of nodes that a link ends in, with an address or without.
func (l *Links) ends() map[end]bool {
	all := make(map[end]bool, len(l.Links))
	for _, k := range l.Links {
		if e := k.Lower(); e.Node != nil && e.NIC != nil {
			all[end{e.Node, e.NIC.Name, e.Port}] = true
		}
	}
	return all
}

// end is a port of a node.
type end struct {
	node *inventory.Node
	nic  string
	port int
}
