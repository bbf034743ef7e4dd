// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
)

// checkSecondPrefix looks at cidr6 and gateway6 of a network.
func (l *loader) checkSecondPrefix(n *Network) {
	wrong := func(attribute, format string, args ...any) {
		l.diags.Add("language.value", l.place(n, attribute), "Wrong value of "+attribute, fmt.Sprintf(format, args...)).In(n.Decl)
	}
	switch p := n.CIDR6; {
	case p.IsValid() && !p.Addr().Is6():
		wrong("cidr6", "%s is not an IPv6 network.", p)
	case p.IsValid() && !n.CIDR.Addr().Is4():
		wrong("cidr6", "cidr of network %q is an IPv6 network already, %s: nodes have their address of it. Remove cidr6.", n.Name, n.CIDR)
	}
	switch g := n.Gateway6; {
	case !g.IsValid():
	case !n.CIDR6.IsValid():
		wrong("gateway6", "Network %q has no cidr6, so that no node has an address that %s could be the gateway of. Add cidr6, or remove gateway6.", n.Name, g)
	case !n.CIDR6.Contains(g) && !(g.Is6() && g.IsLinkLocalUnicast()):
		l.diags.Add("address.outside-network", l.place(n, "gateway6"), "Gateway outside of its network",
			fmt.Sprintf("The gateway %s is not in cidr6 of network %q, %s, and no link-local address (fe80::/10).", g, n.Name, n.CIDR6)).Also("the network", l.place(n, "cidr6")).In(n.Decl)
	}
}

// secondAddress gives a node its address of the second prefix of its boot network: the
// prefix, and the host part of its first address. An address that follows from a position
// has by that the same place in both.
func (l *loader) secondAddress(n *Node) {
	net := n.BootNetwork
	if net == nil || !net.CIDR6.IsValid() || !net.CIDR6.Addr().Is6() || !net.CIDR.IsValid() || !net.CIDR.Addr().Is4() || !n.Address.IsValid() {
		return
	}
	if net.CIDR6.Contains(n.Address) {
		l.diags.Add("address.outside-network", n.Ranges.Address, "Address outside of its network",
			fmt.Sprintf("Address %s of node %s is of cidr6 of network %q. Give an address of cidr, %s: the address of cidr6 follows from it.", n.Address, n.Name, net.Name, net.CIDR)).Also("the network", l.place(net, "cidr6")).In(n.Decl).Of(n.Name)
		return
	}
	if !net.CIDR.Contains(n.Address) {
		return // reported
	}
	n.Address6 = l.numberIn6(n, net, n.Address)
	l.addresses.add(n.Address6, "node "+n.Name, n.Ranges.Address, n.Name)
}

// numberIn6 is the address of cidr6 of a network that has the number of a node's address there;
// invalid where cidr6 is too small.
func (l *loader) numberIn6(n *Node, net *Network, first netip.Addr) netip.Addr {
	a, ok := sameHost(net.CIDR, net.CIDR6, first)
	if !ok {
		l.diags.Add("address.outside-network", l.place(net, "cidr6"), "IPv6 network that is too small",
			fmt.Sprintf("Node %s has address %s of %s, and cidr6 of network %q, %s, has no address of the same number. Make it larger: a /64 is usual.", n.Name, first, net.CIDR, net.Name, net.CIDR6)).Also("the address", n.Ranges.Address).In(net.Decl).Of(n.Name)
		return netip.Addr{}
	}
	return a
}

// gateways are those of all networks by their addresses; one of a link may be that of many.
func (l *loader) gateways() map[netip.Addr]addressEntry {
	first := make(map[netip.Addr]addressEntry, len(l.addresses))
	for _, n := range l.inv.Networks {
		for _, name := range []string{"gateway", "gateway6"} {
			a := map[string]netip.Addr{"gateway": n.Gateway, "gateway6": n.Gateway6}[name]
			if _, again := first[a]; a.IsValid() && !a.IsLinkLocalUnicast() && !again {
				first[a] = addressEntry{a, fmt.Sprintf("the %s of network %q", name, n.Name), l.place(n, name), ""}
			}
		}
	}
	return first
}

// followsFrom reports whether two nodes have one address of cidr6, or of a tagged network, since
// they have one of cidr, which is reported.
func (l *loader) followsFrom(a, b addressEntry) bool {
	m, n := l.nodes[a.node], l.nodes[b.node]
	return m != nil && n != nil && m.Address == n.Address &&
		(b.addr == n.Address6 || slices.ContainsFunc(n.Tagged, func(t TaggedNetwork) bool { return t.Address == b.addr || t.Address6 == b.addr }))
}

// sameHost is the address of a network that has the same number in it as an address has in
// its own; false: the network is too small for it.
func sameHost(from, to netip.Prefix, a netip.Addr) (netip.Addr, bool) {
	number := func(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }
	sum := new(big.Int).Sub(number(a), number(from.Masked().Addr()))
	sum.Add(sum, number(to.Masked().Addr()))
	if sum.Sign() < 0 || sum.BitLen() > to.Addr().BitLen() {
		return netip.Addr{}, false
	}
	b, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, to.Addr().BitLen()/8)))
	return b, to.Contains(b)
}
