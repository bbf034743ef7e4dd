package network

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
)

// Memory is a network inside the process: every address is reachable, streams
// are reliable, datagrams are lost only when a receiver's queue is full. It uses
// no timers but for deadlines, so that under testing/synctest time jumps only
// when everybody waits.
type Memory struct {
	mu     sync.Mutex // guards what follows
	stream map[netip.AddrPort]*listener
	packet map[netip.AddrPort]*packetConn
	next   uint16 // last ephemeral port
}

// firstEphemeral is where the dynamic ports begin (RFC 6335, section 6).
const firstEphemeral = 49152

// NewMemory makes an empty network.
func NewMemory() *Memory {
	return &Memory{stream: map[netip.AddrPort]*listener{}, packet: map[netip.AddrPort]*packetConn{}, next: firstEphemeral - 1}
}

// At returns the network as a node with this address has it: what it dials comes
// from there.
func (m *Memory) At(a netip.Addr) Network { return host{m, a} }

// host is the network seen from one address.
type host struct {
	net  *Memory
	addr netip.Addr
}

// Dial connects to a listener, or sends datagrams for udp.
func (h host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := parse(network, addr)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, failed("dial", network, nil, err)
	}
	if strings.HasPrefix(network, "udp") {
		p, err := h.net.bindPacket(netip.AddrPortFrom(h.addr, 0))
		if err != nil {
			return nil, failed("dial", network, addrOf(network, to), err)
		}
		return &packetStream{packetConn: p, to: to}, nil
	}
	from := netip.AddrPortFrom(h.addr, h.net.ephemeral())
	ours, theirs := streamPair(addrOf(network, from), addrOf(network, to))
	if err := h.net.connect(ctx, to, theirs); err != nil {
		return nil, failed("dial", network, addrOf(network, to), err)
	}
	return ours, nil
}

// Listen opens a stream listener.
func (h host) Listen(_ context.Context, network, addr string) (net.Listener, error) {
	at, err := parse(network, addr)
	if err != nil {
		return nil, failed("listen", network, nil, err)
	}
	m := h.net
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, err = m.free(at, func(a netip.AddrPort) bool { return m.stream[a] != nil }); err != nil {
		return nil, failed("listen", network, addrOf(network, at), err)
	}
	l := &listener{net: m, at: at, addr: addrOf(network, at), backlog: make(chan net.Conn, 128), closed: make(chan struct{})}
	m.stream[at] = l
	return l, nil
}

// ListenPacket opens a datagram socket.
func (h host) ListenPacket(_ context.Context, network, addr string) (net.PacketConn, error) {
	at, err := parse(network, addr)
	if err != nil {
		return nil, failed("listen", network, nil, err)
	}
	p, err := h.net.bindPacket(at)
	if err != nil {
		return nil, failed("listen", network, addrOf(network, at), err)
	}
	return p, nil
}

// ephemeral returns a port for a dialler.
func (m *Memory) ephemeral() uint16 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nextPort()
}

// nextPort is called with m.mu held.
func (m *Memory) nextPort() uint16 {
	if m.next++; m.next < firstEphemeral {
		m.next = firstEphemeral // after 65535
	}
	return m.next
}

// free returns at, with a port when it has none, if nobody has it. Called with
// m.mu held.
func (m *Memory) free(at netip.AddrPort, taken func(netip.AddrPort) bool) (netip.AddrPort, error) {
	if at.Port() != 0 {
		if taken(at) {
			return at, syscall.EADDRINUSE
		}
		return at, nil
	}
	for range 65536 - firstEphemeral {
		a := netip.AddrPortFrom(at.Addr(), m.nextPort())
		if !taken(a) {
			return a, nil
		}
	}
	return at, syscall.EADDRNOTAVAIL
}

func (m *Memory) bindPacket(at netip.AddrPort) (*packetConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.free(at, func(a netip.AddrPort) bool { return m.packet[a] != nil })
	if err != nil {
		return nil, err
	}
	p := newPacketConn(m, at)
	m.packet[at] = p
	return p, nil
}

// lookup finds who has an address, or listens on every address.
func lookup[T any](m *Memory, in map[netip.AddrPort]*T, to netip.AddrPort) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := in[to]; v != nil {
		return v
	}
	any := netip.IPv4Unspecified()
	if to.Addr().Is6() {
		any = netip.IPv6Unspecified()
	}
	return in[netip.AddrPortFrom(any, to.Port())]
}

// connect hands a connection to the listener at an address.
func (m *Memory) connect(ctx context.Context, to netip.AddrPort, c net.Conn) error {
	l := lookup(m, m.stream, to)
	if l == nil {
		return syscall.ECONNREFUSED
	}
	select {
	case l.backlog <- c:
		return nil
	case <-l.closed:
		return syscall.ECONNREFUSED
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listener is a stream listener in memory.
type listener struct {
	net     *Memory
	at      netip.AddrPort
	addr    net.Addr
	backlog chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, failed("accept", l.addr.Network(), l.addr, net.ErrClosed)
	default:
	}
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, failed("accept", l.addr.Network(), l.addr, net.ErrClosed)
	}
}

// Close stops listening; connections that nobody accepted are closed.
func (l *listener) Close() error {
	err := failed("close", l.addr.Network(), l.addr, net.ErrClosed)
	l.once.Do(func() {
		err = nil
		l.net.mu.Lock()
		delete(l.net.stream, l.at)
		l.net.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.backlog:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return err
}

// Addr returns the address that is listened on.
func (l *listener) Addr() net.Addr { return l.addr }

// parse reads a numeric address of a known network.
func parse(network, addr string) (netip.AddrPort, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return netip.AddrPort{}, net.UnknownNetworkError(network)
	}
	if strings.HasPrefix(addr, ":") {
		addr = "0.0.0.0" + addr
	}
	return netip.ParseAddrPort(addr)
}

func addrOf(network string, a netip.AddrPort) net.Addr {
	if strings.HasPrefix(network, "udp") {
		return net.UDPAddrFromAddrPort(a)
	}
	return net.TCPAddrFromAddrPort(a)
}

// failed makes the error that package net makes.
func failed(op, network string, a net.Addr, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: a, Err: err}
}
