// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
)

const (
	// roceHeaders are the bytes on the wire of a RoCE v2 packet in the middle of a
	// write that are no payload: Ethernet 38 with its preamble and gap (IEEE 802.3),
	// IPv4 20 (RFC 791), UDP 8 (RFC 768), BTH 12 and ICRC 4 (InfiniBand Architecture
	// Specification, volume 1, annex 17).
	roceHeaders = 38 + 20 + 8 + 12 + 4
	// ip6Headers are those that IPv6 (RFC 8200) has more than IPv4.
	ip6Headers = 20
	// ibHeaders are those of an InfiniBand packet: LRH 8, BTH 12, ICRC 4, VCRC 2.
	ibHeaders = 8 + 12 + 4 + 2
	// mtuHeaders is what Linux keeps free for headers when it chooses the payload
	// that fits into an Ethernet MTU (iboe_get_mtu, include/rdma/ib_addr.h).
	mtuHeaders = 96
	// etherMTU is the MTU of a fabric that gives none.
	etherMTU = 1500
	// fullPayload is the largest payload of an RDMA packet; the published figures
	// are of links with it, and InfiniBand has no other here.
	fullPayload = 4096
)

// payloadOf returns the largest payload of an RDMA packet on a fabric, in bytes.
func payloadOf(f *inventory.Fabric) int {
	if f.Kind != "roce" {
		return fullPayload
	}
	mtu := f.MTU
	if mtu == 0 {
		mtu = etherMTU
	}
	size := fullPayload
	for size > 256 && size+mtuHeaders > mtu {
		size /= 2
	}
	return size
}

// headersOf returns the bytes beside the payload of a packet on a fabric.
func headersOf(f *inventory.Fabric) int {
	switch {
	case f.Kind != "roce":
		return ibHeaders
	case f.CIDR.Addr().Is6():
		return roceHeaders + ip6Headers
	}
	return roceHeaders
}

// onWire is the share of the wire that is payload with packets of that size.
func onWire(size, headers int) float64 { return float64(size) / float64(size+headers) }

// rateAt returns what is left, in whole per cent, of a share that was published for full
// packets, on this fabric; why is empty when that is all of it.
func rateAt(percent int, f *inventory.Fabric) (left int, why string) {
	size, beside := payloadOf(f), headersOf(f)
	if size == fullPayload && beside <= roceHeaders {
		return percent, ""
	}
	return int(float64(percent) * onWire(size, beside) / onWire(fullPayload, roceHeaders)), describePackets(f)
}

// describePackets says how large the packets of a fabric are, and why.
func describePackets(f *inventory.Fabric) string {
	size := payloadOf(f)
	switch {
	case f.Kind != "roce":
		return fmt.Sprintf("%d bytes a packet", size)
	case f.MTU == 0:
		return fmt.Sprintf("%d bytes a packet, as fabric %q has no mtu, which means %d", size, f.Name, etherMTU)
	}
	return fmt.Sprintf("%d bytes a packet, as fabric %q has an mtu of %d", size, f.Name, f.MTU)
}

// wireMost is the most that RDMA writes can carry on the best port of a chassis,
// in bytes per second, and on which fabric: what the headers of packets leave. 0
// where a speed is not given.
func wireMost(h *inventory.Hardware) (most float64, on *inventory.Fabric) {
	for _, n := range h.NICs {
		switch {
		case n.Fabric == nil:
			continue
		case n.Speed == 0:
			return 0, nil
		}
		if v := float64(n.Speed) / 8 * onWire(payloadOf(n.Fabric), headersOf(n.Fabric)); v > most {
			most, on = v, n.Fabric
		}
	}
	return most, on
}
