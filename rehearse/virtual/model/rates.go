// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"time"

	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// The figures of the model. "measured" is ours, "read" is from public text,
// "belief" is neither and marked so. Not modelled: contention of flows in spines
// and trunks (each flow has the whole of its trunk), PCIe and NUMA placement, congestion control, adaptive routing,
// SHARP, GPUs.
const (
	// rdmaMTU is the payload of an RDMA packet where the question names none.
	rdmaMTU = 4096
	// Bytes beside the payload. RoCE v2: preamble 8, Ethernet 18, gap 12, IPv4 20,
	// UDP 8, BTH 12, ICRC 4. InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2.
	roceHeaders = 82
	ibHeaders   = 26
	// tcpHeaders: preamble 8, Ethernet 18, gap 12, IPv4 20, TCP with timestamps 32.
	tcpHeaders = 90
	// nicEfficiency is what a NIC reaches of the rate that headers leave: 400G
	// then carries 48.9 GB/s (RoCE) and 49.6 GB/s (InfiniBand). Read: public
	// acceptance limits of 380 to 390 of 400 Gb/s, and OCI's 96 % of the wire.
	nicEfficiency = 0.998
	// otherLeaf is what a path over a spine keeps. Belief.
	otherLeaf = 0.99
	// messageRate is how many messages a second one queue pair posts, and kneeSharp
	// how sharply that meets the wire. Fitted to a published table of ib_write_bw
	// from 2 B to 1 MiB (ROCm's network documentation): within 7 % from 256 B on.
	messageRate = 8.5e6
	kneeSharp   = 4
	// softRate is rxe on an emulated NIC, bytes a second. Measured in the lab with
	// two emulated nodes: 13.6 and 12.6 MB/s at 64 KiB.
	softRate = 13.1e6
	// softRateReal is rxe on a real NIC: one core copies. Belief.
	softRateReal = 0.6e9
	// emulatedTCP is TCP between two emulated nodes, bytes a second. Measured in
	// the lab: four times the floor of 5 MB/s that its all-reduce has to keep.
	emulatedTCP = 24e6
	// hostTCP is one TCP stream with MPI on top, one core, bytes a second. Belief.
	hostTCP = 2.8e9
	// undeclared stands in for the speed of an emulated NIC, bits a second. Belief.
	undeclared = 10e9

	// retransmitted is how many packets are sent again for one that was lost, with
	// selective repetition. Belief.
	retransmitted = 1.5
	// retryRound is how long a sender goes on before it hears of a loss: the window
	// that it loses with each. Belief.
	retryRound = 6 * time.Microsecond
	// mostLoss is the share of lost packets beyond which seven retries (perftest's
	// default) are used up within a test of some thousand messages. Belief.
	mostLoss = 0.3
	// integrityRun and recoveryRun are how many damaged packets lead to one count
	// of local_link_integrity_errors and of link_error_recovery. Belief.
	integrityRun = 16
	recoveryRun  = 4096

	// tcpRound is the round trip of TCP within a site. Belief.
	tcpRound = 50 * time.Microsecond
	// mathis is the constant of Mathis et al. 1997: rate = MSS/RTT x C/sqrt(loss).
	mathis = 1.22
)

// Latencies of an RDMA write of few bytes, one way. Read: ib_write_lat of at
// most 5 us is the limit in public acceptance tests; the split is belief.
const (
	nodeLatency     = 1400 * time.Nanosecond // both NICs
	hopLatency      = 250 * time.Nanosecond  // one switch
	softLatency     = 900 * time.Microsecond // rxe, emulated
	tcpLatency      = 22 * time.Microsecond  // TCP and MPI
	emulatedLatency = 450 * time.Microsecond // the same, emulated
)

// How far measurements scatter, as a share. Belief, but for the emulated ones:
// the lab's two figures are 8 % apart.
const (
	noiseNIC      = 0.006
	noiseTCP      = 0.04
	noiseEmulated = 0.06
)

// lanesOf returns how many lanes a link of that speed has, as sold today. A link
// without a speed is given four, so that a part of them can fail.
func lanesOf(s unit.BitRate) int {
	switch s {
	case 0, 40e9, 100e9, 200e9, 400e9, 800e9, 1600e9:
		return 4
	case 50e9:
		return 2
	}
	return 1
}

// lossOf is the share of packets that bit errors destroy.
func lossOf(ber float64, payload int) float64 {
	if ber <= 0 {
		return 0
	}
	return -math.Expm1(float64(8*(payload+roceHeaders)) * math.Log1p(-min(ber, 1-1e-9)))
}

// wireRate returns the rate of a link in bytes a second before headers.
func wireRate(s unit.BitRate) float64 {
	if s <= 0 {
		s = undeclared
	}
	return float64(s) / 8
}

// peak is what RDMA carries over a link at best, bytes a second.
func (p *port) peak(mtu int) float64 { return p.scales.Of(quantity.PortRate, "") * p.nominal(mtu) }

// nominal is that of a port as its model is.
func (p *port) nominal(mtu int) float64 {
	rate := wireRate(p.state().Speed)
	switch p.Medium {
	case SoftRoCE:
		if p.Emulated {
			return softRate * p.whole()
		}
		return min(softRateReal, rate*payloadShare(mtu, roceHeaders))
	case InfiniBand:
		return rate * payloadShare(mtu, ibHeaders) * nicEfficiency
	}
	return rate * payloadShare(mtu, roceHeaders) * nicEfficiency
}

// whole is the share of the lanes that carry.
func (p *port) whole() float64 { return float64(p.lanes) / float64(p.Lanes) }

func payloadShare(payload, headers int) float64 { return float64(payload) / float64(payload+headers) }

// messageRateOf returns the rate of messages of one size over a link of that peak: the smooth
// minimum of the wire and of the message rate.
func messageRateOf(peak float64, size int64) float64 {
	posted := messageRate * float64(size)
	return math.Pow(math.Pow(peak, -kneeSharp)+math.Pow(posted, -kneeSharp), -1.0/kneeSharp)
}

// withLoss is what a sender reaches when packets are lost: each loss costs it a
// round.
func withLoss(rate, loss float64, mtu int) float64 {
	window := max(1, rate*retryRound.Seconds()/float64(mtu))
	return rate * (1 - loss) / (1 + loss*window)
}
