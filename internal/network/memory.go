// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"sync"
	"syscall"
)

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
