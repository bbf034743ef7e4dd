// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// seat is the network seen from one address.
type seat struct {
	net  *Loopback
	addr netip.Addr
}

// Plug pulls out the device's cable, or puts it back.
func (s seat) Plug(in bool) { s.net.change(s.addr, func(p *place) { p.unplugged = !in }) }

// Dial connects, or makes a socket with one partner for udp.
func (s seat) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := s.parse(network, addr)
	if err != nil {
		return nil, opError("dial", network, nil, err)
	}
	if err := s.net.checkJoined(to.Addr()); err != nil {
		return nil, opError("dial", network, addrOf(network, to), err)
	}
	udp := strings.HasPrefix(network, "udp")
	for try := 1; ; try++ {
		var c net.Conn
		if udp {
			c, err = s.dialUDP(to)
		} else {
			c, err = s.dialTCP(ctx, to)
		}
		if err == syscall.EHOSTUNREACH && try <= arpTries {
			if err = pauseFor(ctx, arpWait); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, s.failed("dial", network, to, err)
		}
		return c, nil
	}
}

func (s seat) dialTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	local, real, err := s.net.route(s.addr, socket{at: to})
	if err != nil {
		return nil, err
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}
	c, err := d.DialContext(ctx, "tcp4", real.String())
	if err != nil {
		return nil, err
	}
	return s.net.stream(c.(*net.TCPConn), s.addr, to), nil
}

// dialUDP opens a datagram socket with one partner, which need not be there.
func (s seat) dialUDP(to netip.AddrPort) (net.Conn, error) {
	l := s.net
	l.mu.Lock()
	own, real := l.place(s.addr).real, l.toReal(socket{true, to})
	l.mu.Unlock()
	c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0)), net.UDPAddrFromAddrPort(real))
	if err != nil {
		return nil, err
	}
	local := netip.AddrPortFrom(s.addr, portOf(c.LocalAddr()).Port())
	return &loopDatagrams{UDPConn: c, net: l, local: local, remote: to}, nil
}

// Listen opens a stream listener.
func (s seat) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	at, err := s.parse(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, err)
	}
	var lc net.ListenConfig
	var ln net.Listener
	at, err = s.bind(socket{at: at}, func(real netip.AddrPort) (net.Addr, error) {
		if ln, err = lc.Listen(ctx, "tcp4", real.String()); err != nil {
			return nil, err
		}
		return ln.Addr(), nil
	})
	if err != nil {
		return nil, s.failed("listen", network, at, err)
	}
	return &loopListener{TCPListener: ln.(*net.TCPListener), net: s.net, at: at}, nil
}

// ListenPacket opens a datagram socket.
func (s seat) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	at, err := s.parse(network, addr)
	if err != nil {
		return nil, opError("listen", network, nil, err)
	}
	var lc net.ListenConfig
	var pc net.PacketConn
	at, err = s.bind(socket{true, at}, func(real netip.AddrPort) (net.Addr, error) {
		if pc, err = lc.ListenPacket(ctx, "udp4", real.String()); err != nil {
			return nil, err
		}
		return pc.LocalAddr(), nil
	})
	if err != nil {
		return nil, s.failed("listen", network, at, err)
	}
	return newLoopPacket(s.net, pc.(*net.UDPConn), at), nil
}

// bind opens a socket for a site address and writes down both of its addresses.
// A port that somebody else has is replaced, unless the network is shared.
func (s seat) bind(want socket, open func(real netip.AddrPort) (net.Addr, error)) (netip.AddrPort, error) {
	l := s.net
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ours := l.sockets[want]; ours {
		return want.at, syscall.EADDRINUSE
	}
	if p := l.places[want.at.Addr()]; p == nil {
		return want.at, syscall.EADDRNOTAVAIL
	}
	real := l.toReal(want)
	bound, err := open(real)
	if errors.Is(err, syscall.EADDRINUSE) && real.Port() != 0 && !l.shared {
		bound, err = open(netip.AddrPortFrom(real.Addr(), 0))
	}
	if err != nil {
		return want.at, err
	}
	real = portOf(bound)
	at := want.at
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), real.Port())
	}
	l.sockets[socket{want.udp, at}] = real
	l.names[socket{want.udp, real}] = at
	return at, nil
}

// unbind forgets a socket.
func (l *Loopback) unbind(udp bool, at netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := socket{udp, at}
	delete(l.names, socket{udp, l.sockets[s]})
	delete(l.sockets, s)
}

// parse reads a numeric address; an unspecified one is the device's own.
func (s seat) parse(network, addr string) (netip.AddrPort, error) {
	return host{addr: s.addr}.parse(network, addr)
}

// failed shows the site's address in place of the real one.
func (s seat) failed(op, network string, at netip.AddrPort, err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return opError(op, network, addrOf(network, at), err)
}
