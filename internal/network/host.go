// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// arpTries and arpWait are how often and how long Linux asks for a neighbour
// before a dial fails.
const (
	arpTries = 3
	arpWait  = time.Second
)

// host is the network seen from one address.
type host struct {
	net  *Memory
	addr netip.Addr
}

// Broadcasts is true: see the function of that name.
func (host) Broadcasts() bool { return true }

// Plug pulls out the device's cable, or puts it back.
func (h host) Plug(in bool) { h.net.change(h.addr, func(s *station) { s.unplugged = !in }) }

// Dial connects to a listener, or makes a socket with one partner for udp.
func (h host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := h.parse(network, addr)
	if err != nil {
		return nil, opError("dial", network, nil, err)
	}
	if strings.HasPrefix(network, "udp") {
		p, err := h.bindPacket(netip.AddrPortFrom(h.addr, 0))
		if err != nil {
			return nil, opError("dial", network, addrOf(network, to), err)
		}
		return &packetStream{packetConn: p, to: to}, nil
	}
	for try := 1; ; try++ {
		c, err := h.connect(ctx, network, to)
		if err == syscall.EHOSTUNREACH && try <= arpTries {
			err = pauseFor(ctx, arpWait)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, opError("dial", network, addrOf(network, to), err)
		}
		return c, nil
	}
}

// connect hands a new connection to the listener at an address.
func (h host) connect(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ours, theirs, l, err := h.net.open(network, h.addr, to)
		if err != nil {
			return nil, err
		}
		select {
		case l.backlog <- theirs:
			if l.isClosed() {
				l.drain() // it may have looked before we put this in
			}
			return ours, nil
		case <-l.closed: // by a loss of power, perhaps: look again
			_, _ = ours.Close(), theirs.Close()
		case <-ctx.Done():
			_, _ = ours.Close(), theirs.Close()
			return nil, ctx.Err()
		}
	}
}

// pauseFor waits for d, and returns the context's error when that ends first.
func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen opens a stream listener on an address of this network.
func (h host) Listen(_ context.Context, network, addr string) (net.Listener, error) {
	at, err := h.parse(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, err)
	}
	m := h.net
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stations[at.Addr()]
	if s == nil {
		return nil, opError("listen", network, addrOf(network, at), syscall.EADDRNOTAVAIL)
	}
	port, err := s.free(at.Port(), func(p uint16) bool { return s.streams[p] != nil })
	if err != nil {
		return nil, opError("listen", network, addrOf(network, at), err)
	}
	at = netip.AddrPortFrom(at.Addr(), port)
	if s.streams == nil {
		s.streams = map[uint16]*listener{}
	}
	l := newListener(m, at, addrOf(network, at))
	s.streams[port] = l
	return l, nil
}

// ListenPacket opens a datagram socket on an address of this network.
func (h host) ListenPacket(_ context.Context, network, addr string) (net.PacketConn, error) {
	at, err := h.parse(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, err)
	}
	p, err := h.bindPacket(at)
	if err != nil {
		return nil, opError("listen", network, addrOf(network, at), err)
	}
	return p, nil
}

func (h host) bindPacket(at netip.AddrPort) (*packetConn, error) {
	m := h.net
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stations[at.Addr()]
	if s == nil {
		return nil, syscall.EADDRNOTAVAIL
	}
	port, err := s.free(at.Port(), func(p uint16) bool { return s.packets[p] != nil })
	if err != nil {
		return nil, err
	}
	if s.packets == nil {
		s.packets = map[uint16]*packetConn{}
	}
	p := newPacketConn(m, netip.AddrPortFrom(at.Addr(), port))
	s.packets[port] = p
	return p, nil
}

// parse reads a numeric address; an unspecified one is the device's own.
func (h host) parse(network, addr string) (netip.AddrPort, error) {
	at, err := parseAddress(network, addr)
	if err == nil && at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(h.addr, at.Port())
	}
	return at, err
}
