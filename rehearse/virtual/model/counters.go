// SPDX-License-Identifier: Apache-2.0

package model

import "math"

// Counters are what a port has counted since its node had power. The names are
// those of the kernel: sysfs .../ports/N/counters and hw_counters, and
// /sys/class/net/*/statistics.
type Counters struct {
	XmitBytes, RcvBytes int64
	SymbolError         int64 // damaged symbols that correction could not fix
	LinkErrorRecovery   int64 // the link trained again and came back
	LinkDowned          int64
	PortRcvErrors       int64 // damaged packets
	LocalLinkIntegrity  int64
	OutOfSequence       int64 // packets that came after a gap
	AdpRetrans          int64 // roce_adp_retrans: sent again by adaptive retransmission
	CarrierChanges      int64
}

// retrained counts one training of the link.
func (c *Counters) retrained() {
	c.LinkErrorRecovery++
	c.CarrierChanges += 2
}

// Counters returns what a port has counted; zero for one that is not there.
func (m *Model) Counters(id PortID) Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.ports[id]; p != nil {
		return p.counters
	}
	return Counters{}
}

// Carry counts bytes that went from one port to another in so many flows, 0 being one:
// at both ports, and at both ends of every trunk on the way. Errors are counted at the
// port whose cable makes them, whichever way the bytes went: the cable's two ends are
// that port and its switch.
func (m *Model) Carry(from, to PortID, flows int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, q := m.ports[from], m.ports[to]
	if p == nil || q == nil || bytes <= 0 {
		return
	}
	p.counters.XmitBytes += bytes
	q.counters.RcvBytes += bytes
	p.damage(bytes)
	if p != q {
		q.damage(bytes)
	}
	if p.at.leaf == q.at.leaf {
		return
	}
	ways := m.routes(p, q, flows)
	for _, way := range ways {
		carry(way, bytes/int64(len(ways)))
	}
}

// damage counts what errors on the port's cable did to so many bytes.
func (p *port) damage(bytes int64) {
	if p.ber <= 0 {
		return
	}
	packets := float64(bytes) / rdmaMTU
	lost := packets * lossOf(p.ber, rdmaMTU)
	p.counters.SymbolError += roundUp(float64(bytes) * 8 * p.ber)
	p.counters.PortRcvErrors += roundUp(lost)
	p.counters.OutOfSequence += roundUp(lost)
	p.counters.AdpRetrans += roundUp(lost * retransmitted)
	p.counters.LocalLinkIntegrity += roundUp(lost / integrityRun)
	p.counters.LinkErrorRecovery += roundUp(lost / recoveryRun)
}

// roundUp rounds up, so that a transfer over a bad cable is never without a trace,
// and stays in what a 64-bit counter of a real port can reach.
func roundUp(v float64) int64 { return int64(math.Min(math.Ceil(v), 1<<52)) }
