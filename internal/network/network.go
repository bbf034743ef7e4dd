// SPDX-License-Identifier: Apache-2.0

// Package network is the seam below every protocol: the network of the operating
// system, one in memory on which a rehearsal runs thousands of nodes without a
// socket, or one on loopback for outside tools to look at. It is a leaf.
package network

import (
	"context"
	"net"
	"net/netip"
)

// Network makes connections. Names of networks are those of package net: tcp and
// udp, with 4 or 6. Addresses are numeric, "10.77.1.11:623"; port 0 of a listener
// is chosen by the network. Errors are those of package net: a refused dial is
// syscall.ECONNREFUSED, a taken address syscall.EADDRINUSE, an overrun deadline
// os.ErrDeadlineExceeded, a closed connection net.ErrClosed. Implementations are
// safe for concurrent use and pass networktest.Run.
type Network interface {
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
	Listen(ctx context.Context, network, addr string) (net.Listener, error)
	ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error)
}

// Or returns n, or the network of the operating system when n is nil: what
// configurations mean by leaving their Network out.
func Or(n Network) Network {
	if n == nil {
		return OS{}
	}
	return n
}

// IsOS reports whether n, or what nil stands for, is the network of the
// operating system, on which options of sockets, broadcasts and raw frames exist.
func IsOS(n Network) bool {
	_, ok := Or(n).(OS)
	return ok
}

// Broadcasts reports whether a datagram to 255.255.255.255 that is sent on n reaches
// every other device's socket with that port. On the network of the operating system
// a socket needs more than this seam has; see package dhcp.
func Broadcasts(n Network) bool {
	b, ok := n.(interface{ Broadcasts() bool })
	return ok && b.Broadcasts()
}

// OS is the network of the operating system. Dials are bounded by their context
// only.
type OS struct{}

// Dial connects.
func (OS) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// Listen opens a stream listener.
func (OS) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	var l net.ListenConfig
	return l.Listen(ctx, network, addr)
}

// ListenPacket opens a datagram socket.
func (OS) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	var l net.ListenConfig
	return l.ListenPacket(ctx, network, addr)
}

// Board is a network that has an address for every device of a site. Memory and
// Loopback are boards.
type Board interface {
	// At returns the network as the device with this address has it: what it dials
	// comes from there, what it listens on without an address is that address. The
	// first At attaches the address.
	At(a netip.Addr) Network
	// Attach puts a device back on the network: it has power and its controller
	// runs. It changes nothing where the device never left.
	Attach(a netip.Addr)
	// Detach takes a device off the network, as a loss of power does: nothing
	// reaches it or leaves it, and no peer is told. Call it before the device's
	// programs are ended, or their peers will see orderly ends of connections.
	Detach(a netip.Addr)
}

// Pluggable is what the networks of a Board can do besides: their cable can be
// pulled out and put back. Nothing that is lost in between is lost forever on a
// stream, if both ends still have it then.
type Pluggable interface{ Plug(in bool) }
