// Package network is the seam below every protocol: the network of the operating
// system, or one in memory on which a rehearsal runs thousands of nodes without
// a socket. It is a leaf.
package network

import (
	"context"
	"net"
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
