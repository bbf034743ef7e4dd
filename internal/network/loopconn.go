// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// loopStream is a stream between real sockets that shows site addresses.
type loopStream struct {
	*net.TCPConn
	net           *Loopback
	at            netip.Addr // the device whose end this is
	local, remote *net.TCPAddr
}

// stream wraps one device's end of a connection.
func (l *Loopback) stream(c *net.TCPConn, at netip.Addr, remote netip.AddrPort) *loopStream {
	local := l.toSite(socket{at: portOf(c.LocalAddr())})
	s := &loopStream{TCPConn: c, net: l, at: at, local: net.TCPAddrFromAddrPort(local), remote: net.TCPAddrFromAddrPort(remote)}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.place(at)
	if p.conns == nil {
		p.conns = map[*loopStream]bool{}
	}
	p.conns[s] = true
	return s
}

// LocalAddr returns this end's site address.
func (s *loopStream) LocalAddr() net.Addr { return s.local }

// RemoteAddr returns the other end's site address.
func (s *loopStream) RemoteAddr() net.Addr { return s.remote }

// Close ends both directions.
func (s *loopStream) Close() error {
	s.net.mu.Lock()
	delete(s.net.place(s.at).conns, s)
	s.net.mu.Unlock()
	return s.TCPConn.Close()
}

// abort resets the connection.
func (s *loopStream) abort() {
	_ = s.SetLinger(0)
	_ = s.Close()
}

// loopListener is a real listener that shows site addresses.
type loopListener struct {
	*net.TCPListener
	net  *Loopback
	at   netip.AddrPort
	once sync.Once
}

// Accept waits for the next connection. While the device is away, connections are
// reset: the kernel has accepted them already.
func (l *loopListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		if l.net.isAway(l.at.Addr()) {
			_ = c.SetLinger(0)
			_ = c.Close()
			continue
		}
		return l.net.stream(c, l.at.Addr(), l.net.toSite(socket{at: portOf(c.RemoteAddr())})), nil
	}
}

// Addr returns the site address that is listened on.
func (l *loopListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// Close stops listening.
func (l *loopListener) Close() error {
	err := l.TCPListener.Close()
	l.once.Do(func() { l.net.unbind(false, l.at) })
	return err
}

// loopPacket is a real datagram socket that shows site addresses. It is made so
// that nobody finds the real socket in it and asks that one.
type loopPacket struct {
	packetSocket
	conn *net.UDPConn
	net  *Loopback
	at   netip.AddrPort
	once sync.Once
}

// packetSocket is what a datagram socket does that has nothing to do with
// addresses.
type packetSocket interface {
	net.PacketConn
	SetReadBuffer(bytes int) error
}

// loopBuffer is asked of the kernel for every datagram socket.
const loopBuffer = 1 << 20

func newLoopPacket(l *Loopback, c *net.UDPConn, at netip.AddrPort) *loopPacket {
	_ = c.SetReadBuffer(loopBuffer) // as much as the kernel allows
	return &loopPacket{packetSocket: c, conn: c, net: l, at: at}
}

// ReadFrom waits for a datagram. Those from or to a device that is away are
// passed over.
func (p *loopPacket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, real, err := p.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return 0, nil, err
		}
		from := p.net.toSite(socket{true, unmapAddress(real)})
		if p.net.isAway(p.at.Addr()) || p.net.isAway(from.Addr()) {
			continue
		}
		return n, net.UDPAddrFromAddrPort(from), nil
	}
}

// WriteTo sends a datagram; one to a device that is away is lost.
func (p *loopPacket) WriteTo(b []byte, to net.Addr) (int, error) {
	u, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, opError("write", "udp", p.LocalAddr(), syscall.EINVAL)
	}
	_, real, err := p.net.route(p.at.Addr(), socket{true, unmapAddress(u.AddrPort())})
	if err != nil {
		return len(b), nil
	}
	return p.conn.WriteToUDPAddrPort(b, real)
}

// LocalAddr returns the site address of the socket.
func (p *loopPacket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(p.at) }

// Close ends waiting reads.
func (p *loopPacket) Close() error {
	err := p.conn.Close()
	p.once.Do(func() { p.net.unbind(true, p.at) })
	return err
}

// loopDatagrams is a real datagram socket with one partner.
type loopDatagrams struct {
	*net.UDPConn
	net           *Loopback
	local, remote netip.AddrPort
}

// Read waits for a datagram of the partner.
func (d *loopDatagrams) Read(b []byte) (int, error) {
	for {
		n, err := d.UDPConn.Read(b)
		if err == nil && d.apart() {
			continue
		}
		return n, err
	}
}

// Write sends a datagram to the partner.
func (d *loopDatagrams) Write(b []byte) (int, error) {
	if d.apart() {
		return len(b), nil
	}
	return d.UDPConn.Write(b)
}

func (d *loopDatagrams) apart() bool {
	return d.net.isAway(d.local.Addr()) || d.net.isAway(d.remote.Addr())
}

// LocalAddr returns the site address of the socket.
func (d *loopDatagrams) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(d.local) }

// RemoteAddr returns the partner's site address.
func (d *loopDatagrams) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(d.remote) }
