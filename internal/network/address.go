// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"strings"
)

// parseAddress reads a numeric address of a known network.
func parseAddress(network, addr string) (netip.AddrPort, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return netip.AddrPort{}, net.UnknownNetworkError(network)
	}
	if strings.HasPrefix(addr, ":") {
		addr = "0.0.0.0" + addr
	}
	a, err := netip.ParseAddrPort(addr)
	return unmapAddress(a), err
}

// unmapAddress makes an IPv4 address of one that package net wrote in 16 bytes.
func unmapAddress(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// addrOf is an address as package net has it.
func addrOf(network string, a netip.AddrPort) net.Addr {
	if strings.HasPrefix(network, "udp") {
		return net.UDPAddrFromAddrPort(a)
	}
	return net.TCPAddrFromAddrPort(a)
}

// portOf is the address that package net has in a.
func portOf(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		return unmapAddress(a.AddrPort())
	case *net.UDPAddr:
		return unmapAddress(a.AddrPort())
	}
	return netip.AddrPort{}
}

// opError makes the error that package net makes.
func opError(op, network string, a net.Addr, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: a, Err: err}
}
