// SPDX-License-Identifier: Apache-2.0

// Package addresses lists every address of a site under the name that people and
// DNS use for it: nodes and BMCs, PDUs and switches, controllers and gateways, the
// rails of fabrics, and what was allocated to their links. It writes the list as
// a hosts file and as DNS zones. It is pure.
package addresses

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is what an address belongs to.
type Kind string

// The kinds, in the order in which two names of one address are listed.
const (
	Controller Kind = "controller"
	Node       Kind = "node"
	BMC        Kind = "bmc"
	PDU        Kind = "pdu"
	Shelf      Kind = "shelf"    // of power supplies: its management controller
	Switch     Kind = "switch"   // its management port
	Rail       Kind = "rail"     // a port of a node on a fabric
	Link       Kind = "link"     // a port of a switch on a fabric
	Loopback   Kind = "loopback" // of a switch
	Gateway    Kind = "gateway"
)

var rank = map[Kind]int{Controller: 1, Node: 2, BMC: 3, PDU: 4, Shelf: 5, Switch: 6, Rail: 7, Link: 8, Loopback: 9, Gateway: 10}

// Entry is one address.
type Entry struct {
	Network string       `json:"network"` // name of the network or fabric; "" outside of all
	Address netip.Prefix `json:"address"` // with the length of its network
	Name    string       `json:"name"`    // without the domain; a DNS label
	Kind    Kind         `json:"kind"`
	Node    string       `json:"node,omitempty"`
	Port    string       `json:"port,omitempty"` // of a rail or a link, as cables write it
}

// List lists the addresses of a site by network and address. links are those that
// roce.Addresses computes of it.
func List(inv *inventory.Inventory, links []*roce.Links) []Entry {
	l := lister{inv: inv}
	l.infrastructure()
	l.nodes()
	for _, f := range links {
		l.links(f)
	}
	slices.SortStableFunc(l.list, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Network, b.Network), a.Address.Addr().Compare(b.Address.Addr()), cmp.Compare(rank[a.Kind], rank[b.Kind]), strings.Compare(a.Name, b.Name))
	})
	return l.list
}

type lister struct {
	inv  *inventory.Inventory
	list []Entry
}

// add adds an address of a network that is given by its address alone.
func (l *lister) add(kind Kind, name string, a netip.Addr, node string) {
	if !a.IsValid() {
		return
	}
	network, length := "", a.BitLen()
	for _, n := range l.inv.Networks {
		for _, p := range []netip.Prefix{n.CIDR, n.CIDR6} {
			if p.IsValid() && p.Contains(a) {
				network, length = n.Name, p.Bits()
			}
		}
	}
	l.list = append(l.list, Entry{Network: network, Address: netip.PrefixFrom(a, length), Name: label(name), Kind: kind, Node: node})
}

func (l *lister) infrastructure() {
	for _, c := range l.inv.Controllers {
		l.add(Controller, c.Name, c.Address, "")
	}
	for _, n := range l.inv.Networks {
		l.add(Gateway, "gw-"+n.Name, n.Gateway, "")
		if !n.Gateway6.IsLinkLocalUnicast() { // every link has that one
			l.add(Gateway, "gw-"+n.Name, n.Gateway6, "")
		}
	}
	for _, r := range l.inv.Racks {
		for _, p := range r.PDUs {
			if p.Control != nil {
				l.add(PDU, p.Name+"-pdu", p.Control.Address, "")
			}
		}
		for _, s := range r.Shelves {
			if s.Control != nil {
				l.add(Shelf, s.Name+"-shelf", s.Control.Address, "")
			}
		}
	}
	for _, s := range l.inv.Switches {
		l.add(Switch, s.Name, s.Address, "")
	}
}

func (l *lister) nodes() {
	for _, n := range l.inv.Nodes {
		l.on(Node, n.Name, n.BootNetwork, n.Address, n.Name)
		l.add(Node, n.Name, n.Address6, n.Name)
		for _, t := range n.Tagged {
			l.on(Node, taggedName(n, t), t.Network, t.Address, n.Name)
			l.add(Node, taggedName(n, t), t.Address6, n.Name)
		}
		l.on(BMC, n.Name+"-bmc", n.BMC.Network, n.BMC.Address, n.Name)
		for _, f := range l.inv.Fabrics {
			for _, p := range roce.RailAddresses(f, n) {
				port := inventory.CableEnd{Node: n, NIC: p.NIC, Port: p.Port}
				l.port(Rail, f, railName(n, f, p.Rail, ""), p.Address, n.Name, port.String())
			}
		}
	}
}

// taggedName is the name of a node on a tagged network: "r01-u01-storage". On a network
// that is called "bmc" it would be that of the node's BMC, and has the VLAN as well.
func taggedName(n *inventory.Node, t inventory.TaggedNetwork) string {
	name := n.Name + "-" + t.Network.Name
	if label(name) == label(n.Name+"-bmc") {
		name += "-" + t.Interface()
	}
	return name
}

// on adds an address of a network that is known.
func (l *lister) on(kind Kind, name string, network *inventory.Network, a netip.Addr, node string) {
	if network == nil || !a.IsValid() || !network.CIDR.Contains(a) {
		l.add(kind, name, a, node)
		return
	}
	l.list = append(l.list, Entry{Network: network.Name, Address: netip.PrefixFrom(a, network.CIDR.Bits()), Name: label(name), Kind: kind, Node: node})
}

func (l *lister) port(kind Kind, f *inventory.Fabric, name string, a netip.Prefix, node, port string) {
	if a.IsValid() {
		l.list = append(l.list, Entry{Network: f.Name, Address: a, Name: label(name), Kind: kind, Node: node, Port: port})
	}
}

// links adds both ends of the links of a fabric, and its loopbacks.
func (l *lister) links(f *roce.Links) {
	l.list = slices.Grow(l.list, 2*len(f.Links)+len(f.Switches))
	for i, k := range f.Links {
		lower, upper := f.Link(i)
		l.end(f.Fabric, k.Lower(), lower)
		l.end(f.Fabric, k.Upper(), upper)
	}
	for i, s := range f.Switches {
		l.port(Loopback, f.Fabric, s.Name+"-lo", f.Loopback(i), "", "")
	}
}

func (l *lister) end(f *inventory.Fabric, e inventory.CableEnd, a netip.Prefix) {
	name := e.String()
	switch {
	case e.Node != nil && e.NIC != nil && e.Port < len(e.NIC.Ports):
		lane := ""
		if e.Lane > 0 {
			lane = strconv.Itoa(e.Lane)
		}
		l.port(Rail, f, railName(e.Node, f, e.NIC.Ports[e.Port].Rail, lane), a, e.Node.Name, name)
	case e.Switch != nil:
		l.port(Link, f, name, a, "", name)
	}
}

// railName is the name of a node on a rail: "r01-u01-storage-r0", with the lane
// where one port is several links.
func railName(n *inventory.Node, f *inventory.Fabric, rail int, lane string) string {
	name := n.Name + "-" + f.Name + "-r" + strconv.Itoa(rail)
	if lane != "" {
		name += "-l" + lane
	}
	return name
}

// longest is how many characters a DNS label may have (RFC 1035, 2.3.4).
const longest = 63

// label makes a DNS label of a name: letters, digits and inner hyphens (RFC 1123,
// 2.1), lower case. Of a longer name the end is a digest of it.
func label(name string) string {
	clean := func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return '-'
	}
	text := strings.Trim(strings.Map(clean, name), "-")
	if len(text) > longest {
		sum := sha256.Sum256([]byte(name))
		text = text[:longest-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return text
}
