// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"

	"github.com/hashicorp/hcl/v2"
)

// unitsPerRack is how many addresses a rack has in each network: the address of a
// position is network + number of the rack * 64 + unit. The block of rack 0 is
// left to what is not in a rack (gateways, controllers, PDUs). It is a constant,
// not the height of the tallest rack, so that no change renumbers anybody.
const unitsPerRack = 64

// positionAddress returns the address that a position has in a network; invalid when the
// network is, outside of it when it is too small.
func positionAddress(p netip.Prefix, rack, unit int) netip.Addr {
	if !p.IsValid() || unit == 0 {
		return netip.Addr{}
	}
	n := uint64(rack)*unitsPerRack + uint64(unit)
	raw := p.Addr().As16()
	for i := 15; i >= 0 && n > 0; i-- {
		n += uint64(raw[i])
		raw[i] = byte(n)
		n >>= 8
	}
	a := netip.AddrFrom16(raw)
	if p.Addr().Is4() {
		if !a.Is4In6() {
			return netip.Addr{}
		}
		return a.Unmap()
	}
	return a
}

// addressBook is every address that belongs to one thing.
type addressBook []addressEntry

type addressEntry struct {
	addr  netip.Addr
	owner string
	at    hcl.Range
	node  string // set when it is a node's
}

func (b *addressBook) add(a netip.Addr, owner string, at hcl.Range, node string) {
	if a.IsValid() {
		*b = append(*b, addressEntry{a, owner, at, node})
	}
}

// inNetwork checks that an address of a node can be used on a network.
func (l *loader) inNetwork(a netip.Addr, net *Network, n *Node, what string, at hcl.Range, given bool) {
	outside := !net.CIDR.Contains(a) && !(net.CIDR6.IsValid() && net.CIDR6.Contains(a))
	if !net.CIDR.IsValid() || !outside && !net.DHCP.Pool.Contains(a) && !isReserved(net.CIDR, a) {
		return
	}
	source := "was given"
	if !given {
		source = fmt.Sprintf("follows from rack number %d and unit %d", n.Rack.Number, n.Unit)
	}
	who := fmt.Sprintf("Address %s of %s %s", a, what, n.Name)
	if what == "BMC" {
		who = fmt.Sprintf("Address %s of the BMC of %s", a, n.Name)
	}
	if !a.IsValid() {
		if given || n.Unit == 0 {
			return // reported as wrong
		}
		who = fmt.Sprintf("The address of %s %s", what, n.Name)
	}
	switch {
	case outside:
		l.diags.Add("address.outside-network", at, "Address outside of its network",
			fmt.Sprintf("%s (it %s) is not in network %q, %s. Give an address that is, or make the network larger.", who, source, net.Name, net.CIDR)).Also("the network", l.place(net, "cidr")).In(n.Decl).Of(n.Name)
	case net.DHCP.Pool.Contains(a):
		l.diags.Add("address.in-pool", at, "Address inside of a pool",
			fmt.Sprintf("%s (it %s) is in the pool of network %q, whose addresses go to clients that are not in the inventory. Give another one, or move the pool.", who, source, net.Name)).Also("the pool", l.poolPlace(net)).In(n.Decl).Of(n.Name)
	default:
		l.diags.Add("address.reserved", at, "Address that no node can have", fmt.Sprintf("%s (it %s) is the network or the broadcast address of %s.", who, source, net.CIDR)).Also("the network", l.place(net, "cidr")).In(n.Decl).Of(n.Name)
	}
}

// poolPlace is where a network's pool is written.
func (l *loader) poolPlace(net *Network) hcl.Range {
	if b := l.bodies[net]; b != nil && b.Block("dhcp") != nil {
		return b.Block("dhcp").Range("pool")
	}
	return none
}

// isReserved reports the first and the last address of an IPv4 network.
func isReserved(p netip.Prefix, a netip.Addr) bool {
	return p.Addr().Is4() && p.Bits() < 31 && p.Contains(a) && (a == p.Addr() || a == lastAddress(p))
}

// lastAddress returns the last address of a prefix.
func lastAddress(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for i := p.Bits(); i < len(raw)*8; i++ {
		raw[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}
