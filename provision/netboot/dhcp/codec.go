// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"math"
	"net"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// Offsets and sizes of a message, RFC 2131 section 2.
const (
	optionsAt = 240 // behind the magic cookie
	leastSize = 300 // RFC 951: some relay agents drop what is shorter
)

var magicCookie = [4]byte{99, 130, 83, 99}

// decode reads a request into in, as dhcpv4.FromBytes does, but for sname and file, which no
// request is answered by. It allocates next to nothing: the map of in's options is used again, and in
// refers to b until the next call. False: the library refuses b as well.
func decode(b []byte, in *dhcpv4.DHCPv4) bool {
	if len(b) < optionsAt || [4]byte(b[optionsAt-4:]) != magicCookie {
		return false
	}
	options := in.Options
	if options == nil {
		options = dhcpv4.Options{}
	}
	clear(options)
	*in = dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeType(b[0]), HWType: iana.HWType(b[1]), HopCount: b[3], TransactionID: [4]byte(b[4:]),
		NumSeconds: binary.BigEndian.Uint16(b[8:]), Flags: binary.BigEndian.Uint16(b[10:]),
		ClientIPAddr: b[12:16:16], YourIPAddr: b[16:20:20], ServerIPAddr: b[20:24:24], GatewayIPAddr: b[24:28:28],
		ClientHWAddr: net.HardwareAddr(b[28 : 28+min(b[2], 16) : 44]), Options: options,
	}
	return len(b) == optionsAt || decodeOptions(b[optionsAt:], options)
}

// decodeOptions reads options up to the end option, which there must be. One that comes again is
// appended (RFC 3396).
func decodeOptions(b []byte, options dhcpv4.Options) bool {
	for len(b) > 0 {
		code := b[0]
		switch code {
		case uint8(dhcpv4.OptionPad):
			b = b[1:]
			continue
		case dhcpv4.OptionEnd.Code():
			return true
		}
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return false
		}
		n := 2 + int(b[1])
		if first, again := options[code]; again {
			options[code] = append(first[:len(first):len(first)], b[2:n]...)
		} else if n == 2 {
			options[code] = nil
		} else {
			options[code] = b[2:n:n]
		}
		b = b[n:]
	}
	return false
}

// appendReply appends a reply to b, byte for byte as ToBytes of the library writes it.
func appendReply(b []byte, r *dhcpv4.DHCPv4) []byte {
	at := len(b)
	b = slices.Grow(b, packetSize)[:at+optionsAt]
	head := b[at:]
	clear(head)
	head[0], head[1], head[2], head[3] = byte(r.OpCode), byte(r.HWType), byte(len(r.ClientHWAddr)), r.HopCount
	copy(head[4:], r.TransactionID[:])
	binary.BigEndian.PutUint16(head[8:], r.NumSeconds)
	binary.BigEndian.PutUint16(head[10:], r.Flags)
	for i, ip := range []net.IP{r.ClientIPAddr, r.YourIPAddr, r.ServerIPAddr, r.GatewayIPAddr} {
		copy(head[12+4*i:16+4*i], ip.To4())
	}
	copy(head[28:44], r.ClientHWAddr)
	copy(head[44:107], r.ServerHostName)
	copy(head[108:235], r.BootFileName)
	copy(head[236:], magicCookie[:])
	b = appendOptions(b, r.Options)
	b = append(b, dhcpv4.OptionEnd.Code())
	for len(b)-at < leastSize {
		b = append(b, uint8(dhcpv4.OptionPad))
	}
	return b
}

// appendOptions appends options by their codes, the relay agent's last (RFC 3046, section 2.1), and
// those that are longer than 255 bytes in pieces (RFC 3396).
func appendOptions(b []byte, options dhcpv4.Options) []byte {
	var room [32]uint8
	codes := room[:0]
	for code := range options {
		if code != uint8(dhcpv4.OptionPad) && code != dhcpv4.OptionEnd.Code() && code != uint8(dhcpv4.OptionRelayAgentInformation) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	if _, ok := options[uint8(dhcpv4.OptionRelayAgentInformation)]; ok {
		codes = append(codes, uint8(dhcpv4.OptionRelayAgentInformation))
	}
	for _, code := range codes {
		v := options[code]
		for {
			n := min(len(v), math.MaxUint8)
			b = append(b, code, uint8(n))
			b = append(b, v[:n]...)
			if v = v[n:]; len(v) == 0 {
				break
			}
		}
	}
	return b
}
