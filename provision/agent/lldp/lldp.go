// SPDX-License-Identifier: Apache-2.0

// Package lldp reads what the device at the other end of a cable says of itself
// by LLDP (IEEE 802.1AB): it parses the frames, and listens for them on a node's
// NICs. All text in it is from outside.
package lldp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// etherType is that of LLDP frames (802.1AB, 7.3).
const etherType = 0x88cc

// PDU is one LLDPDU.
type PDU struct {
	ChassisID       string // a MAC is written 08:00:27:..., an address as usual, else as it is
	PortID          string
	TTL             time.Duration // 0: the port goes down, forget it
	PortDescription string
	SystemName      string
}

// TLV types (802.1AB, table 8-1).
const (
	tlvEnd             = 0
	tlvChassisID       = 1
	tlvPortID          = 2
	tlvTTL             = 3
	tlvPortDescription = 4
	tlvSystemName      = 5
)

// Subtypes of ids that are not text (802.1AB, tables 8-2 and 8-3).
const (
	chassisMAC     = 4
	chassisAddress = 5
	portMAC        = 3
	portAddress    = 4
)

// headers of an Ethernet frame.
const (
	ethernetHeader = 14
	vlanTag        = 4
	typeVLAN       = 0x8100
	typePriority   = 0x88a8
)

var errFrame = errors.New("not an LLDP frame")

// ParseFrame reads an Ethernet frame, with up to two VLAN tags.
func ParseFrame(frame []byte) (PDU, error) {
	at := ethernetHeader - 2
	for range 3 {
		if len(frame) < at+2 {
			break
		}
		switch binary.BigEndian.Uint16(frame[at:]) {
		case etherType:
			return Parse(frame[at+2:])
		case typeVLAN, typePriority:
			at += vlanTag
		default:
			return PDU{}, errFrame
		}
	}
	return PDU{}, errFrame
}

// Parse reads what follows the Ethernet header. The three mandatory TLVs come
// first and once (802.1AB, 9.2.7.7.1); what follows the end is padding.
func Parse(b []byte) (p PDU, err error) {
	for n := 0; len(b) >= 2; n++ {
		kind, length := int(b[0]>>1), int(b[0]&1)<<8|int(b[1])
		if kind == tlvEnd {
			if n < 3 {
				return PDU{}, fmt.Errorf("LLDPDU ends after %d of 3 mandatory TLVs", n)
			}
			return p, nil
		}
		if length > len(b)-2 {
			return PDU{}, fmt.Errorf("TLV %d of %d bytes is cut off after %d", kind, length, len(b)-2)
		}
		if want := n + 1; n < 3 && kind != want || n >= 3 && kind <= tlvTTL {
			return PDU{}, fmt.Errorf("TLV of type %d in place %d", kind, want)
		}
		if err := p.take(kind, b[2:2+length]); err != nil {
			return PDU{}, err
		}
		b = b[2+length:]
		if len(b) == 0 && n >= 2 {
			return p, nil // the end may be left out
		}
	}
	return PDU{}, errors.New("LLDPDU is cut off")
}

// take reads the value of one TLV.
func (p *PDU) take(kind int, v []byte) error {
	switch kind {
	case tlvChassisID, tlvPortID:
		if len(v) < 2 || len(v) > 256 {
			return fmt.Errorf("id of %d bytes", len(v))
		}
		if kind == tlvChassisID {
			p.ChassisID = id(v, chassisMAC, chassisAddress)
		} else {
			p.PortID = id(v, portMAC, portAddress)
		}
	case tlvTTL:
		if len(v) < 2 {
			return fmt.Errorf("time to live of %d bytes", len(v))
		}
		p.TTL = time.Duration(binary.BigEndian.Uint16(v)) * time.Second
	case tlvPortDescription:
		p.PortDescription = text(v)
	case tlvSystemName:
		p.SystemName = text(v)
	}
	return nil
}

// id writes an id of which the first byte says what it is.
func id(v []byte, mac, address byte) string {
	switch kind, v := v[0], v[1:]; {
	case kind == mac && len(v) == 6:
		return net.HardwareAddr(v).String()
	case kind == address && len(v) > 1: // the family (IANA: 1 IPv4, 2 IPv6), then the address
		if a, ok := netip.AddrFromSlice(v[1:]); ok {
			return a.String()
		}
		return hex.EncodeToString(v)
	default:
		return text(v)
	}
}

// text makes valid UTF-8 of what should be it. Some devices count a closing NUL.
func text(v []byte) string {
	return strings.TrimSpace(strings.TrimRight(strings.ToValidUTF8(string(v), "\uFFFD"), "\x00"))
}
