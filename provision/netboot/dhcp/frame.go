// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"
)

// frameHeads is the size of the headers of IPv4 and UDP.
const frameHeads = 20 + 8

// buildFrame wraps a DHCP message into UDP and IPv4, without the Ethernet header,
// which the packet socket adds.
func buildFrame(src, dst netip.AddrPort, payload []byte) []byte {
	b := append(make([]byte, frameHeads, frameHeads+len(payload)), payload...)
	putHeads(b, src, dst)
	return b
}

// putHeads writes the headers of IPv4 and UDP in front of a payload that begins at
// frameHeads of b. The UDP checksum is left out (RFC 768 allows zero over IPv4): PXE ROMs
// were written for it.
func putHeads(b []byte, src, dst netip.AddrPort) {
	const ip = 20
	clear(b[:frameHeads])
	b[0] = 0x45 // version 4, header of five words
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], 0x4000) // do not fragment
	b[8], b[9] = 64, 17                       // hop limit, UDP
	from, to := src.Addr().As4(), dst.Addr().As4()
	copy(b[12:16], from[:])
	copy(b[16:20], to[:])
	binary.BigEndian.PutUint16(b[10:], ^checksumOf(b[:ip]))
	binary.BigEndian.PutUint16(b[20:], src.Port())
	binary.BigEndian.PutUint16(b[22:], dst.Port())
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-ip))
}

// checksumOf returns the one's complement sum of RFC 1071 over an even number of bytes.
func checksumOf(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// parseFrame returns the UDP payload of an IPv4 packet sent to the given port, and
// its source. It returns nil for everything else, fragments included.
func parseFrame(b []byte, port uint16) ([]byte, netip.Addr) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return nil, netip.Addr{}
	}
	head, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if head < 20 || total < head+8 || total > len(b) || b[9] != 17 || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return nil, netip.Addr{}
	}
	u := b[head:total]
	n := int(binary.BigEndian.Uint16(u[4:]))
	if binary.BigEndian.Uint16(u[2:]) != port || n < 8 || n > len(u) {
		return nil, netip.Addr{}
	}
	return u[8:n], netip.AddrFrom4([4]byte(b[12:16]))
}
