// SPDX-License-Identifier: Apache-2.0

// Package wire is a node's cable in a rehearsal: between the node and the network
// it bounds the rate, loses datagrams, stalls downloads, and can be cut. All of
// it acts on what the node receives; what it sends is never slowed, since a write
// that waited, with a lock of its library held, would keep virtual time from
// passing.
package wire

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
)

// unreachable is how long a dial through a cut cable takes to fail, as Linux asks
// for a neighbour.
const unreachable = 3 * time.Second

// Wire is the cable of one node; it is the network as the node has it. Its knobs
// may be turned while it is in use. It is safe for concurrent use.
type Wire struct {
	inner network.Network
	clk   clock.Clock

	mu     sync.Mutex // guards what follows; never held while waiting
	cut    bool
	own    lane
	uplink *Uplink
	scale  map[uint16]float64 // by remote port
	stalls map[uint16]int64   // by remote port: bytes that may still come
	loss   float64
	dice   *rand.Rand
	turned chan struct{} // closed and replaced when a knob is turned that readers wait for
}

// New returns a cable without faults and without a limit. inner is the network at
// the node's address; c tells the waits that the rate makes.
func New(inner network.Network, c clock.Clock) *Wire {
	return &Wire{inner: inner, clk: c, turned: make(chan struct{})}
}

// Cut cuts the cable, or makes it whole: nothing passes, dials end after three
// seconds with EHOSTUNREACH, no peer is told. On a network that is Pluggable the
// other ends lose the node in the same moment.
func (w *Wire) Cut(cut bool) {
	w.turn(func() { w.cut = cut })
	if p, ok := w.inner.(network.Pluggable); ok {
		p.Plug(!cut)
	}
}

// Live reports whether the cable is whole.
func (w *Wire) Live() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut
}

// Rate bounds what the node receives by streams, in bits a second, and sends it
// through an uplink that it shares with others. Zero is no limit of its own, nil
// no uplink. Datagrams are not counted.
func (w *Wire) Rate(bitsPerSecond float64, up *Uplink) {
	w.turn(func() { w.own.rate, w.uplink = bitsPerSecond, up })
}

// Scale lets each byte of streams to a remote port count as factor bytes for the
// rate: images of a rehearsal have a declared size and few bytes. 1 ends it.
func (w *Wire) Scale(port uint16, factor float64) {
	w.turn(func() {
		if w.scale == nil {
			w.scale = map[uint16]float64{}
		}
		w.scale[port] = factor
	})
}

// Scaled is the cable for a program of the node whose every byte counts as
// factor bytes, whatever port it dials.
func (w *Wire) Scaled(factor float64) network.Network { return scaled{w, factor} }

// StallAfter lets so many more bytes come from streams that the node has dialled
// or dials to a port, all together; then they stay open and silent until Heal.
func (w *Wire) StallAfter(bytes int64, port uint16) {
	w.turn(func() {
		if w.stalls == nil {
			w.stalls = map[uint16]int64{}
		}
		w.stalls[port] = max(0, bytes)
	})
}

// Heal ends what StallAfter began, on every port.
func (w *Wire) Heal() { w.turn(func() { w.stalls = nil }) }

// Loss loses datagrams in both directions, each with probability p, drawn from
// seed. Zero ends it.
func (w *Wire) Loss(p float64, seed uint64) {
	w.turn(func() { w.loss, w.dice = p, rand.New(rand.NewPCG(seed, 0x77697265)) })
}

// turn changes a knob and wakes who waits.
func (w *Wire) turn(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.turned)
	w.turned = make(chan struct{})
}

// Dial connects as the node.
func (w *Wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return w.dial(ctx, network, addr, 0)
}

// dial connects; a factor above zero stands before that of the port.
func (w *Wire) dial(ctx context.Context, network, addr string, factor float64) (net.Conn, error) {
	udp := strings.HasPrefix(network, "udp")
	if !udp { // a datagram socket needs nobody
		if err := w.whole(ctx); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	c, err := w.inner.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if udp {
		return &datagrams{Conn: c, wire: w}, nil
	}
	return newStream(w, c, factor, portOf(c.RemoteAddr())), nil
}

// whole waits until the cable is whole, or nobody has answered for too long.
func (w *Wire) whole(ctx context.Context) error {
	if w.Live() {
		return nil
	}
	timeout := time.NewTimer(unreachable)
	defer timeout.Stop()
	for {
		w.mu.Lock()
		cut, turned := w.cut, w.turned
		w.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-turned:
		case <-timeout.C:
			return syscall.EHOSTUNREACH
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Listen opens a stream listener of the node. What comes from its peers passes the
// cable; their ports have no stalls and no scale.
func (w *Wire) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	l, err := w.inner.Listen(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return listener{l, w}, nil
}

// ListenPacket opens a datagram socket of the node.
func (w *Wire) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	p, err := w.inner.ListenPacket(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &packets{PacketConn: p, wire: w}, nil
}

// scaled is a cable with a factor of its own.
type scaled struct {
	*Wire
	factor float64
}

// Dial connects as the node.
func (s scaled) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dial(ctx, network, addr, s.factor)
}

// listener wraps what is accepted.
type listener struct {
	net.Listener
	wire *Wire
}

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newStream(l.wire, c, 1, 0), nil
}

func portOf(a net.Addr) uint16 {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return 0
	}
	return at.Port()
}
