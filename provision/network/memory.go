package network

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

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
// pulled out and put back. Nothing that is lost in between is lost for ever on a
// stream, if both ends still have it then.
type Pluggable interface{ Plug(in bool) }

// Memory is a network inside the process, a Board. Streams are reliable,
// datagrams arrive in order and are lost only on their way to nobody. It uses no
// timers but for deadlines and for dials to nobody, and never holds a lock while
// something waits, so that under testing/synctest time jumps only when everybody
// waits.
//
// A device that nobody has attached does not answer: a dial ends after three
// seconds with EHOSTUNREACH, as when nobody answers ARP. A connection whose device
// closed it while it was detached is reset when the device is attached again: it
// has booted since and knows nothing of it.
type Memory struct {
	mu       sync.Mutex // guards what follows and the fields of stations; flow.mu and packetConn.mu are taken inside
	stations map[netip.Addr]*station
}

// firstEphemeral is where the dynamic ports begin (RFC 6335, section 6).
const firstEphemeral = 49152

// arpTries and arpWait are how often and how long Linux asks for a neighbour
// before a dial fails.
const (
	arpTries = 3
	arpWait  = time.Second
)

// NewMemory makes an empty network.
func NewMemory() *Memory { return &Memory{stations: map[netip.Addr]*station{}} }

// station is one address. Memory.mu guards it.
type station struct {
	down      bool // detached
	unplugged bool
	port      uint16 // last ephemeral port
	streams   map[uint16]*listener
	packets   map[uint16]*packetConn
	conns     map[*streamConn]bool // open ends, and those closed while the station was away
}

func (s *station) away() bool { return s == nil || s.down || s.unplugged }

// At returns the network as the device with this address has it; see Board. It is
// Pluggable.
func (m *Memory) At(a netip.Addr) Network {
	a = a.Unmap()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stations[a] == nil {
		m.stations[a] = &station{}
	}
	return host{m, a}
}

// Attach puts a device back; see Board.
func (m *Memory) Attach(a netip.Addr) { m.change(a, func(s *station) { s.down = false }) }

// Detach takes a device off; see Board.
func (m *Memory) Detach(a netip.Addr) { m.change(a, func(s *station) { s.down = true }) }

// change changes a station and holds or releases its streams.
func (m *Memory) change(a netip.Addr, do func(*station)) {
	a = a.Unmap()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stations[a]
	if s == nil {
		s = &station{}
		m.stations[a] = s
	}
	before := s.away()
	do(s)
	now := s.away()
	if before == now {
		return
	}
	for c := range s.conns {
		if c.self {
			continue
		}
		if now {
			c.in.hold()
			c.out.hold()
		} else if c.in.release(); c.out.release() {
			delete(s.conns, c)
		}
	}
}

// open registers both ends of a new stream to a listener of another device. The
// error is nil, ECONNREFUSED, or EHOSTUNREACH where nobody answers.
func (m *Memory) open(network string, from netip.Addr, to netip.AddrPort) (ours, theirs *streamConn, l *listener, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, b := m.stations[from], m.stations[to.Addr()]
	if a.away() || b.away() {
		return nil, nil, nil, syscall.EHOSTUNREACH
	}
	if l = b.streams[to.Port()]; l == nil {
		return nil, nil, nil, syscall.ECONNREFUSED
	}
	at := netip.AddrPortFrom(from, a.nextPort())
	ours, theirs = streamPair(m, addrOf(network, at), addrOf(network, to), bufferOf(to.Port()))
	ours.self, theirs.self = a == b, a == b
	a.keep(ours)
	b.keep(theirs)
	return ours, theirs, l, nil
}

func (s *station) keep(c *streamConn) {
	if s.conns == nil {
		s.conns = map[*streamConn]bool{}
	}
	s.conns[c] = true
}

// forget takes a closed end off its station. One that is away keeps it, to reset
// the other end when it comes back.
func (m *Memory) forget(c *streamConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stations[c.at]; s != nil && (c.self || !s.away()) {
		delete(s.conns, c)
	}
}

// nextPort returns an ephemeral port; every device has its own.
func (s *station) nextPort() uint16 {
	if s.port++; s.port < firstEphemeral {
		s.port = firstEphemeral // after 65535
	}
	return s.port
}

// free returns a port that a socket may have: at, or an ephemeral one when at is
// 0.
func (s *station) free(at uint16, taken func(uint16) bool) (uint16, error) {
	if at != 0 {
		if taken(at) {
			return 0, syscall.EADDRINUSE
		}
		return at, nil
	}
	for range 65536 - firstEphemeral {
		if p := s.nextPort(); !taken(p) {
			return p, nil
		}
	}
	return 0, syscall.EADDRNOTAVAIL
}

// host is the network seen from one address.
type host struct {
	net  *Memory
	addr netip.Addr
}

// Plug pulls out the device's cable, or puts it back.
func (h host) Plug(in bool) { h.net.change(h.addr, func(s *station) { s.unplugged = !in }) }

// Dial connects to a listener, or makes a socket with one partner for udp.
func (h host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := h.parse(network, addr)
	if err != nil {
		return nil, failed("dial", network, nil, err)
	}
	if strings.HasPrefix(network, "udp") {
		p, err := h.bindPacket(netip.AddrPortFrom(h.addr, 0))
		if err != nil {
			return nil, failed("dial", network, addrOf(network, to), err)
		}
		return &packetStream{packetConn: p, to: to}, nil
	}
	for try := 1; ; try++ {
		c, err := h.connect(ctx, network, to)
		if err == syscall.EHOSTUNREACH && try <= arpTries {
			err = pause(ctx, arpWait)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, failed("dial", network, addrOf(network, to), err)
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

// pause waits for d, and returns the context's error when that ends first.
func pause(ctx context.Context, d time.Duration) error {
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
		return nil, failed("listen", network, nil, err)
	}
	m := h.net
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stations[at.Addr()]
	if s == nil {
		return nil, failed("listen", network, addrOf(network, at), syscall.EADDRNOTAVAIL)
	}
	port, err := s.free(at.Port(), func(p uint16) bool { return s.streams[p] != nil })
	if err != nil {
		return nil, failed("listen", network, addrOf(network, at), err)
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
		return nil, failed("listen", network, nil, err)
	}
	p, err := h.bindPacket(at)
	if err != nil {
		return nil, failed("listen", network, addrOf(network, at), err)
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
	at, err := parse(network, addr)
	if err == nil && at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(h.addr, at.Port())
	}
	return at, err
}
