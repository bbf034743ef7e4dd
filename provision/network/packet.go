package network

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// The limits of a datagram socket in memory.
const (
	maxDatagram = 65507 // of UDP over IPv4
	packetQueue = 256   // datagrams; one more is lost
)

// packetConn is a datagram socket in memory.
type packetConn struct {
	net *Memory
	at  netip.AddrPort

	mu     sync.Mutex // guards what follows
	cond   *sync.Cond
	queue  []datagram
	closed bool
	readBy deadline
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

func (p *packetConn) err(op string, err error) error { return failed(op, "udp", p.LocalAddr(), err) }

// ReadFrom waits for a datagram. What does not fit into b is cut off.
func (p *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, nil, p.err("read", net.ErrClosed)
		case p.readBy.over:
			return 0, nil, p.err("read", os.ErrDeadlineExceeded)
		case len(p.queue) > 0:
			d := p.queue[0]
			p.queue = p.queue[1:]
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
	return p.send(b, u.AddrPort())
}

func (p *packetConn) send(b []byte, to netip.AddrPort) (int, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return 0, p.err("write", net.ErrClosed)
	case len(b) > maxDatagram:
		return 0, p.err("write", syscall.EMSGSIZE)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if r := lookup(p.net, p.net.packet, to); r != nil {
		r.deliver(datagram{p.at, append([]byte(nil), b...)})
	}
	return len(b), nil
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
	p.closed = true
	p.cond.Broadcast()
	p.mu.Unlock()
	if was {
		return p.err("close", net.ErrClosed)
	}
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	delete(p.net.packet, p.at)
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
func (s *packetStream) Write(b []byte) (int, error) { return s.send(b, s.to) }

// RemoteAddr returns the partner.
func (s *packetStream) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(s.to) }
