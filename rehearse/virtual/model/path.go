// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Hop says how far apart two ports are.
type Hop uint8

// The hop classes.
const (
	SamePort  Hop = iota // a port and itself
	SameLeaf             // one switch between them
	OtherLeaf            // leaf, spine, leaf
)

// String names the class.
func (h Hop) String() string {
	return [...]string{"same port", "same leaf", "other leaf"}[h]
}

// Why two ports do not reach each other; use errors.Is.
var (
	errNoPort = errors.New("no such port")
	errDown   = errors.New("link is down")
	errNoPath = errors.New("no way between these ports")
	ErrLoss   = errors.New("too many packets are lost")
)

// Question asks for a transfer of messages from one port to another.
type Question struct {
	Test     string // names the measurement; figures of two tests scatter apart
	From, To PortID
	Size     int64 // bytes of one message
	MTU      int   // bytes of an RDMA packet's payload; 0: 4096
	Flows    int   // queue pairs, of which each sends as many messages; 0: one
}

// Flow is the answer.
type Flow struct {
	Hop     Hop
	Average float64 // bytes a second
	Peak    float64 // bytes a second, of the best moment
	Latency time.Duration
	Loss    float64 // share of packets lost on the way
}

// Write answers how RDMA writes go. It changes nothing; Carry counts what went.
func (m *Model) Write(q Question) (Flow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to, hop, err := m.path(q.From, q.To)
	if err != nil {
		return Flow{}, err
	}
	if !from.Medium.RDMA() || !to.Medium.RDMA() {
		return Flow{}, fmt.Errorf("%s to %s: no RDMA: %w", q.From, q.To, errNoPath)
	}
	mtu := q.MTU
	if mtu <= 0 {
		mtu = rdmaMTU
	}
	size := max(q.Size, 1)
	rate := messageRateOf(min(from.handles(hop, mtu), to.handles(hop, mtu)), size)
	if hop == OtherLeaf {
		rate *= m.leafShare(from, to)
	}
	loss := pathLoss(from, to, hop, mtu)
	if hop == OtherLeaf {
		rate, loss = m.overTrunks(from, to, q.Flows, rate, loss, mtu)
	}
	if loss > mostLoss {
		return Flow{Hop: hop, Loss: loss}, fmt.Errorf("%s to %s: %w", q.From, q.To, ErrLoss)
	}
	rate = withLoss(rate, loss, mtu) * m.noise(q.Test, q.From, q.To, noiseOf(from, to))
	return Flow{Hop: hop, Average: rate, Peak: rate * 1.001, Latency: latencyOf(from, to, hop, rate, size), Loss: loss}, nil
}

// overTrunks is what is left of a rate over the trunks between two leaves, and the
// share of packets that is lost on the whole way. All flows send as much, so that the
// slowest of them decides. m.mu is held.
func (m *Model) overTrunks(from, to *port, flows int, rate, loss float64, mtu int) (float64, float64) {
	slowest, worst := 1.0, 0.0
	for _, way := range m.routes(from, to, flows) {
		share, lost := m.quality(way, mtu)
		slowest, worst = min(slowest, share), max(worst, lost)
	}
	return rate * slowest, 1 - (1-loss)*(1-worst)
}

// path finds both ports and how far apart they are. m.mu is held.
func (m *Model) path(a, b PortID) (from, to *port, hop Hop, err error) {
	if from = m.ports[a]; from == nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", a, errNoPort)
	}
	if to = m.ports[b]; to == nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", b, errNoPort)
	}
	switch {
	case from.down:
		return nil, nil, 0, fmt.Errorf("%s: %w", a, errDown)
	case to.down:
		return nil, nil, 0, fmt.Errorf("%s: %w", b, errDown)
	case from == to:
		return from, to, SamePort, nil
	case !from.receivesFrom(to):
		return nil, nil, 0, fmt.Errorf("%s to %s: %w", a, b, errNoPath)
	case from.at.leaf == to.at.leaf:
		return from, to, SameLeaf, nil
	}
	return from, to, OtherLeaf, nil
}

// receivesFrom reports whether a packet of p reaches q. An Ethernet port in another
// segment has an address of the wrong subnet there, and nobody answers it.
func (p *port) receivesFrom(q *port) bool {
	if p.Medium == InfiniBand && q.Medium == InfiniBand {
		return p.at.segment.Fabric == q.at.segment.Fabric
	}
	return p.at.segment == q.at.segment && p.Rail == q.Rail && p.at.segment.Rail == p.Rail
}

// pathLoss is the share of packets lost on either cable. What a port sends to itself turns
// round in its NIC.
func pathLoss(a, b *port, hop Hop, mtu int) float64 {
	if hop == SamePort {
		return 0
	}
	return 1 - (1-lossOf(a.ber, mtu))*(1-lossOf(b.ber, mtu))
}

// handles is what a port sends or receives at best, bytes a second: with itself whatever
// the lanes of its cable carry.
func (p *port) handles(hop Hop, mtu int) float64 {
	if hop == SamePort {
		whole := *p
		whole.lanes = p.Lanes
		p = &whole
	}
	return p.peak(mtu) * p.share
}

func noiseOf(a, b *port) float64 {
	if a.Emulated || b.Emulated || a.Medium == SoftRoCE || b.Medium == SoftRoCE {
		return noiseEmulated
	}
	return noiseNIC
}

// latencyOf returns one way of one message.
func latencyOf(a, b *port, hop Hop, rate float64, size int64) time.Duration {
	d := nodeLatency
	if a.Medium == SoftRoCE || b.Medium == SoftRoCE {
		d = softLatency
	}
	switch hop {
	case SameLeaf:
		d += hopLatency
	case OtherLeaf:
		d += 3 * hopLatency
	}
	for _, p := range []*port{a, b} {
		d = time.Duration(float64(d) * p.scales.Of(quantity.PortLatency, ""))
	}
	return d + time.Duration(float64(size)/rate*float64(time.Second))
}

// noise is a factor below one, drawn from the seed, the test and the pair.
func (m *Model) noise(test string, a, b PortID, spread float64) float64 {
	h := fnv.New64a()
	for _, s := range []string{test, a.Node, a.NIC, b.Node, b.NIC} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write([]byte{byte(a.Index), byte(a.Index >> 8), byte(b.Index), byte(b.Index >> 8)})
	r := rand.New(rand.NewPCG(m.seed, h.Sum64()))
	return 1 - spread*r.Float64()
}
