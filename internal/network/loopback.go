// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"sync"
	"syscall"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Loopback is a Board on real sockets of this controller, without root, for
// outside tools to look at; Linux only, where all of 127.0.0.0/8 is local. Every
// device's site address has one address there: 10.77.1.11 becomes 127.77.1.11
// where that is free. Ports below 1024 are LowPorts higher; other ports are kept
// if nobody else has them. Both are translated back, so that the connections show
// site addresses; Real tells what an outside tool has to use. Peers that are no
// device of the site are shown as they are.
//
// It differs from Memory in one thing: the connections of a device that is
// detached or unplugged are reset at once, since the kernel would go on
// acknowledging.
type Loopback struct {
	// Set before the first use.
	shared bool // devices may be in other processes
	joined bool // the devices are those of another process, and no others
	block  byte // the second byte of real addresses; 0: that of the site's

	mu      sync.Mutex // guards what follows and the fields of places
	places  map[netip.Addr]*place
	sites   map[netip.Addr]netip.Addr // by address in 127.0.0.0/8
	sockets map[socket]netip.AddrPort // by site address: the real one
	names   map[socket]netip.AddrPort // by real address: the site's
}

// LowPorts is added to ports below 1024, which need root.
const LowPorts = 10000

// place is one device. Loopback.mu guards it.
type place struct {
	real            netip.Addr
	met             bool // At was called, or Attach
	down, unplugged bool
	conns           map[*loopStream]bool
}

func (p *place) away() bool { return !p.met || p.down || p.unplugged }

// socket is an open socket: a site and a real address may have one for each.
type socket struct {
	udp bool
	at  netip.AddrPort
}

// NewSharedLoopback is NewLoopback for a site whose devices live in several
// processes: one that does not listen here may listen there. Its ports are never
// replaced: one that somebody else has is an error. block is the second byte of all real
// addresses, so that sites with the same addresses can be kept apart; 0: that of the
// site's address.
func NewSharedLoopback(block byte) *Loopback {
	l := NewLoopback()
	l.shared, l.block = true, block
	return l
}

// JoinLoopback is the network of a shared loopback of another process, whose Places are
// given. There is nothing else on it: dialling any other address is an error of kind
// refused, at once.
func JoinLoopback(places map[netip.Addr]netip.Addr) *Loopback {
	l := NewSharedLoopback(0)
	l.joined = true
	for site, real := range places {
		l.places[site] = &place{real: real, met: true}
		l.sites[real] = site
	}
	return l
}

// Places lists the real address of each device, by its site address.
func (l *Loopback) Places() map[netip.Addr]netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[netip.Addr]netip.Addr, len(l.places))
	for site, p := range l.places {
		all[site] = p.real
	}
	return all
}

// checkJoined refuses an address that is not on a network that was joined.
func (l *Loopback) checkJoined(a netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.joined || l.places[a] != nil {
		return nil
	}
	return errkind.New(errkind.Refused, "%s is no address of the virtual rack", a).
		Do("It has the addresses of the files that it was started with: start `ironrail rack` anew after a change of addresses.")
}

// NewLoopback makes a network without devices.
func NewLoopback() *Loopback {
	return &Loopback{places: map[netip.Addr]*place{}, sites: map[netip.Addr]netip.Addr{},
		sockets: map[socket]netip.AddrPort{}, names: map[socket]netip.AddrPort{}}
}

// At returns the network as the device with this address has it; see Board. It is
// Pluggable.
func (l *Loopback) At(a netip.Addr) Network {
	a = a.Unmap()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place(a).met = true
	return seat{l, a}
}

// Attach puts a device back; see Board.
func (l *Loopback) Attach(a netip.Addr) {
	l.change(a, func(p *place) { p.met, p.down = true, false })
}

// Detach takes a device off, and resets its connections; see Board.
func (l *Loopback) Detach(a netip.Addr) {
	l.change(a, func(p *place) { p.met, p.down = true, true })
}

// Move takes a device's address to another machine: from now on it is dialled at the real
// address that is given. Connections that are open stay with the old one.
func (l *Loopback) Move(a, real netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place(a.Unmap()).real = real
	l.sites[real] = a.Unmap()
}

func (l *Loopback) change(a netip.Addr, do func(*place)) {
	l.mu.Lock()
	p := l.place(a.Unmap())
	do(p)
	var lost []*loopStream
	if p.away() {
		for c := range p.conns {
			lost = append(lost, c)
		}
	}
	l.mu.Unlock()
	for _, c := range lost {
		c.abort()
	}
}

// place returns a device's place, a new one if need be. l.mu is held.
func (l *Loopback) place(a netip.Addr) *place {
	p := l.places[a]
	if p == nil {
		p = &place{real: l.choose(a)}
		l.places[a], l.sites[p.real] = p, a
	}
	return p
}

// choose finds a free address in 127.0.0.0/8: one that people recognise, if that
// can be. 127.0.0.0/16 is left to others.
func (l *Loopback) choose(a netip.Addr) netip.Addr {
	first := netip.AddrFrom4([4]byte{127, 240, 0, 1})
	if l.block != 0 {
		first = netip.AddrFrom4([4]byte{127, l.block, 200, 1})
	}
	if a.Is4() {
		b := a.As4()
		if b[0] = 127; b[1] == 0 {
			b[1] = 200
		}
		if l.block != 0 {
			b[1] = l.block
		}
		if c := netip.AddrFrom4(b); l.sites[c] == (netip.Addr{}) && c != netip.AddrFrom4([4]byte{127, 255, 255, 255}) {
			return c
		}
	}
	c := first
	for l.sites[c] != (netip.Addr{}) {
		c = c.Next()
	}
	return c
}

// Real returns what an outside tool uses in place of a site address, or the zero
// value for an address that is no device's.
func (l *Loopback) Real(site netip.AddrPort) netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[site.Addr().Unmap()]; p == nil || !p.met {
		return netip.AddrPort{}
	}
	if r, ok := l.sockets[socket{at: unmapAddress(site)}]; ok {
		return r
	}
	return l.toReal(socket{true, unmapAddress(site)})
}

// toReal translates an address that is dialled or sent to; that of an outside
// tool is real already. l.mu is held.
func (l *Loopback) toReal(s socket) netip.AddrPort {
	if s.at.Addr().IsLoopback() && l.places[s.at.Addr()] == nil {
		return s.at
	}
	if r, ok := l.sockets[s]; ok {
		return r
	}
	return netip.AddrPortFrom(l.place(s.at.Addr()).real, raisePort(s.at.Port()))
}

func raisePort(port uint16) uint16 {
	if port != 0 && port < 1024 {
		return port + LowPorts
	}
	return port
}

// toSite translates an address that a socket shows.
func (l *Loopback) toSite(s socket) netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.names[s]; ok {
		return n
	}
	if a, ok := l.sites[s.at.Addr()]; ok {
		return netip.AddrPortFrom(a, s.at.Port())
	}
	return s.at
}

// isAway reports whether a site address is not on the network. Addresses that are
// no device's are outside tools, which always are.
func (l *Loopback) isAway(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[a]
	if p == nil {
		return !a.IsLoopback()
	}
	return p.away()
}

// route returns the two real addresses between devices, or EHOSTUNREACH. A device
// of ours that does not listen refuses streams: on its real address somebody else
// may, another rehearsal of the same site.
func (l *Loopback) route(from netip.Addr, to socket) (local netip.Addr, real netip.AddrPort, err error) {
	if l.isAway(from) || l.isAway(to.at.Addr()) {
		return local, real, syscall.EHOSTUNREACH
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, listens := l.sockets[to]; !l.shared && !listens && !to.udp && l.places[to.at.Addr()] != nil {
		return local, real, syscall.ECONNREFUSED
	}
	return l.place(from).real, l.toReal(to), nil
}
