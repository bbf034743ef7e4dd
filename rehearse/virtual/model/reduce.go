// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"math"
	"time"
)

// Reduction asks for one all-reduce over TCP, of host memory, one rank a port.
type Reduction struct {
	Test    string
	Members []PortID
	Size    int64 // bytes of each rank's buffer
	MTU     int   // bytes of IP; 0: 1500
}

// AllReduce returns how long one all-reduce takes. It takes the better of a ring
// (large buffers; as fast as the slowest link) and of recursive doubling (small
// ones), as Open MPI does. The error names the first pair of neighbours that
// cannot speak, and wraps errDown, errApart, ErrLoss or errNoPort.
func (m *Model) AllReduce(r Reduction) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(r.Members)
	if n < 2 {
		return 0, errors.New("an all-reduce needs two ranks")
	}
	slowest, delay := math.Inf(1), tcpLatency
	for i, a := range r.Members {
		from, to, hop, err := m.path(a, r.Members[(i+1)%n])
		if err != nil {
			return 0, err
		}
		slowest = min(slowest, m.tcp(from, to, hop, r.MTU)*m.noise(r.Test, a, to.ID, max(noiseTCP, noiseOf(from, to))))
		if from.Emulated {
			delay = emulatedLatency
		}
	}
	size, ranks := float64(r.Size), float64(n)
	second := float64(time.Second)
	ring := 2 * (ranks - 1) * (delay.Seconds() + size/ranks/slowest)
	doubling := math.Ceil(math.Log2(ranks)) * (delay.Seconds() + size/slowest)
	return time.Duration(min(ring, doubling) * second), nil
}

// tcp is what one stream carries between two ports, bytes a second.
func (m *Model) tcp(a, b *port, hop Hop, mtu int) float64 {
	if mtu <= 0 {
		mtu = 1500
	}
	payload := mtu - 52
	rate := min(wireRate(a.state().Speed), wireRate(b.state().Speed)) * payloadShare(payload, tcpHeaders)
	rate = min(rate, hostTCP)
	if a.Emulated || b.Emulated {
		rate = emulatedTCP * min(a.whole(), b.whole())
	}
	loss := pathLoss(a, b, hop, payload)
	if hop == OtherLeaf {
		rate, loss = m.overTrunks(a, b, 1, rate*m.leafShare(a, b), loss, payload)
	}
	if loss > 0 {
		rate = min(rate, float64(payload)/tcpRound.Seconds()*mathis/math.Sqrt(loss))
	}
	return rate
}
