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
	// mtuHeaders is what Linux keeps free for headers when it chooses the payload
	// that fits into an Ethernet MTU (iboe_get_mtu, include/rdma/ib_addr.h).
	mtuHeaders = 96
	// etherMTU is the MTU of a fabric that gives none.
	etherMTU = 1500
	// fullPayload is the largest payload of an RDMA packet; the published figures
	// are of links with it, and InfiniBand has no other here.
	fullPayload = 4096
)

// payload is the largest payload of an RDMA packet on a fabric, in bytes.
func payload(f *inventory.Fabric) int {
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

// onWire is the share of the wire that is payload with packets of that size.
func onWire(size, headers int) float64 { return float64(size) / float64(size+headers) }

// at is what is left, in whole per cent, of a share that was published for RoCE
// with full packets, on this fabric; why is empty when that is all of it.
func at(percent int, f *inventory.Fabric) (left int, why string) {
	size := payload(f)
	headers := roceHeaders
	if f.CIDR.Addr().Is6() {
		headers += ip6Headers
	}
	if f.Kind != "roce" || size == fullPayload && headers == roceHeaders {
		return percent, ""
	}
	left = int(float64(percent) * onWire(size, headers) / onWire(fullPayload, roceHeaders))
	if f.MTU == 0 {
		return left, fmt.Sprintf("%d bytes a packet, as fabric %q has no mtu, which means %d", size, f.Name, etherMTU)
	}
	return left, fmt.Sprintf("%d bytes a packet, as fabric %q has an mtu of %d", size, f.Name, f.MTU)
}
