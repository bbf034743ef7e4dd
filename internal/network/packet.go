// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The limits of a datagram socket in memory.
const (
	maxDatagram = 65507   // of UDP over IPv4
	packetQueue = 1 << 16 // datagrams; one more is lost. Far more than a kernel keeps: what is lost must not depend on who runs first
)

// packetConn is a datagram socket in memory.
type packetConn struct {
	net *Memory
	at  netip.AddrPort

	mu      sync.Mutex // guards what follows
	cond    *sync.Cond
	queue   []datagram
	closed  bool
	refused bool // the partner's device has no such socket: an ICMP message said so
	readBy  deadline
}

type datagram struct {
	from netip.AddrPort
	data []byte
}

func newPacketConn(m *Memory, at netip.AddrPort) *packetConn {
	p := &packetConn{net: m, at: at}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *packetConn) err(op string, err error) error { return opError(op, "udp", p.LocalAddr(), err) }

// ReadFrom waits for a datagram. What does not fit into b is cut off.
func (p *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, nil, p.err("read", net.ErrClosed)
		case p.refused:
			p.refused = false
			return 0, nil, p.err("read", syscall.ECONNREFUSED)
		case p.readBy.over:
			return 0, nil, p.err("read", os.ErrDeadlineExceeded)
		case len(p.queue) > 0:
			d := p.queue[0]
			p.queue[0] = datagram{}
			if p.queue = p.queue[1:]; len(p.queue) == 0 {
				p.queue = nil
			}
			return copy(b, d.data), net.UDPAddrFromAddrPort(d.from), nil
		}
		p.cond.Wait()
	}
}

// WriteTo sends a datagram. One to nobody is lost, as on a real network.
func (p *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	u, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, p.err("write", syscall.EINVAL)
	}
	_, err := p.send(b, u.AddrPort())
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// send delivers a datagram; heard is false when the partner's device is there and
// has no such socket.
func (p *packetConn) send(b []byte, to netip.AddrPort) (heard bool, err error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return false, p.err("write", net.ErrClosed)
	case len(b) > maxDatagram:
		return false, p.err("write", syscall.EMSGSIZE)
	}
	if to = unmapAddress(to); to.Addr() == broadcastAddr() {
		for _, r := range p.net.sockets(p.at.Addr(), to.Port()) {
			r.deliver(datagram{p.at, append([]byte(nil), b...)})
		}
		return true, nil
	}
	r, there := p.net.socket(p.at.Addr(), to)
	if r != nil {
		r.deliver(datagram{p.at, append([]byte(nil), b...)})
	}
	return r != nil || !there, nil
}

// socket finds who gets the datagrams from a device to an address; there is true
// when they reach its device at all.
func (m *Memory) socket(from netip.Addr, to netip.AddrPort) (r *packetConn, there bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stations[to.Addr()]
	if s.away() || m.stations[from].away() {
		return nil, false
	}
	return s.packets[to.Port()], true
}

// broadcastAddr returns the address of a broadcast.
func broadcastAddr() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }

// sockets finds who gets the broadcasts of a device to a port: all others, by address.
func (m *Memory) sockets(from netip.Addr, port uint16) (all []*packetConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stations[from].away() {
		return nil
	}
	for a, s := range m.stations {
		if r := s.packets[port]; r != nil && a != from && !s.away() {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *packetConn) int { return a.at.Compare(b.at) })
	return all
}

func (p *packetConn) deliver(d datagram) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && len(p.queue) < packetQueue {
		p.queue = append(p.queue, d)
		p.cond.Broadcast()
	}
}

// Close ends waiting reads.
func (p *packetConn) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed, p.queue = true, nil
	p.readBy.stop()
	p.cond.Broadcast()
	p.mu.Unlock()
	if was {
		return p.err("close", net.ErrClosed)
	}
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	delete(p.net.stations[p.at.Addr()].packets, p.at.Port())
	return nil
}

// LocalAddr returns the address of the socket.
func (p *packetConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(p.at) }

// SetDeadline bounds reads; writes never wait.
func (p *packetConn) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetReadDeadline bounds reads.
func (p *packetConn) SetReadDeadline(t time.Time) error {
	p.readBy.set(&p.mu, p.cond, t)
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (p *packetConn) SetWriteDeadline(time.Time) error { return nil }

// packetStream is a datagram socket with one partner, as a dial of udp makes it.
type packetStream struct {
	*packetConn
	to netip.AddrPort
}

// Read waits for a datagram of the partner; others are passed over.
func (s *packetStream) Read(b []byte) (int, error) {
	for {
		n, from, err := s.ReadFrom(b)
		if err != nil {
			return 0, err
		}
		if u := from.(*net.UDPAddr).AddrPort(); netip.AddrPortFrom(u.Addr().Unmap(), u.Port()) == s.to {
			return n, nil
		}
	}
}

// Write sends a datagram to the partner.
func (s *packetStream) Write(b []byte) (int, error) {
	heard, err := s.send(b, s.to)
	if err != nil {
		return 0, err
	}
	if !heard {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = true
		s.cond.Broadcast()
	}
	return len(b), nil
}

// RemoteAddr returns the partner.
func (s *packetStream) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(s.to) }
