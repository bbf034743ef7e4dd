// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/ironrail/ironrail/inventory"
)

// defaultMTU is that of Ethernet, for a fabric that does not say.
const defaultMTU = 1500

// firstTable is the routing table of rail 0; rail r has firstTable+r. The
// tables below 253 are free for use (ip-route(8)).
const firstTable = 100

// railSubnet returns the subnet of one rail: the fabric's CIDR is cut into as
// many equal parts as there are rails, rounded up to a power of two.
func railSubnet(f *inventory.Fabric, rail int) (netip.Prefix, error) {
	rails := max(f.Rails, 1)
	if rail < 0 || rail >= rails {
		return netip.Prefix{}, fmt.Errorf("rail %d is not among the %d rails of fabric %q", rail, rails, f.Name)
	}
	length := f.CIDR.Bits() + bits.Len(uint(rails-1))
	host := f.CIDR.Addr().BitLen() - length
	if host < 2 {
		return netip.Prefix{}, fmt.Errorf("%s is too small for %d rails", f.CIDR, rails)
	}
	base, ok := addHost(f.CIDR.Masked().Addr(), uint64(rail), host)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("%s is too small for %d rails", f.CIDR, rails)
	}
	return netip.PrefixFrom(base, length), nil
}

// positionOf returns the host part of the node's address in its boot network. It is
// what the node's rail addresses are made of: it depends on no other node, so
// that adding nodes renumbers nobody.
func positionOf(n *inventory.Node) (uint64, error) {
	switch {
	case n.BootNetwork == nil:
		return 0, fmt.Errorf("node %q has no boot network to take its position from", n.Name)
	case !n.Address.IsValid():
		return 0, fmt.Errorf("node %q has no address", n.Name)
	case !n.BootNetwork.CIDR.Contains(n.Address):
		return 0, fmt.Errorf("%s is not in network %q (%s)", n.Address, n.BootNetwork.Name, n.BootNetwork.CIDR)
	}
	a, net := n.Address.As16(), n.BootNetwork.CIDR.Masked().Addr().As16()
	var p uint64
	for i := range a {
		if p>>48 != 0 {
			return 0, fmt.Errorf("the position of %s in %s is too large", n.Address, n.BootNetwork.CIDR)
		}
		p = p<<8 | uint64(a[i]^net[i])
	}
	return p, nil
}

// railAddress returns the node's address on one rail, with the subnet's length.
func railAddress(f *inventory.Fabric, n *inventory.Node, rail int) (netip.Prefix, error) {
	subnet, err := railSubnet(f, rail)
	if err != nil {
		return netip.Prefix{}, err
	}
	p, err := positionOf(n)
	if err != nil {
		return netip.Prefix{}, err
	}
	host := subnet.Addr().BitLen() - subnet.Bits()
	// The last address of an IPv4 subnet is its broadcast address.
	if p == 0 || host < 64 && p >= 1<<host-1 {
		return netip.Prefix{}, fmt.Errorf("%s is number %d of its network, and rail %d (%s) has no address of that number", n.Address, p, rail, subnet)
	}
	a, ok := addHost(subnet.Addr(), p, 0)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("rail %d (%s) has no address number %d", rail, subnet, p)
	}
	return netip.PrefixFrom(a, subnet.Bits()), nil
}

// addHost returns a + n<<shift; false when that is no address any more.
func addHost(a netip.Addr, n uint64, shift int) (netip.Addr, bool) {
	var room [16]byte
	b := room[:a.BitLen()/8]
	if a.Is4() {
		four := a.As4()
		copy(b, four[:])
	} else {
		room = a.As16()
	}
	if shift >= 8*len(b) && n != 0 {
		return netip.Addr{}, false
	}
	carry := uint64(0)
	for i := range b {
		at := len(b) - 1 - i
		part := uint64(0)
		switch s := 8*i - shift; {
		case s >= 64:
		case s >= 0:
			part = n >> s & 0xff
		case s > -8:
			part = n << -s & 0xff
		}
		sum := uint64(b[at]) + part + carry
		b[at], carry = byte(sum), sum>>8
	}
	width := 8*len(b) - shift
	if carry != 0 || width < 64 && n>>width != 0 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(b)
}
