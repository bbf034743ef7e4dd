// SPDX-License-Identifier: Apache-2.0

// Package addr holds the address types of the field that the standard library
// lacks: MAC addresses and InfiniBand GUIDs as comparable values. IP addresses
// are net/netip everywhere. It is a leaf.
package addr

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// MAC is a 48-bit IEEE 802 address. It is comparable and a map key; the zero
// MAC means "not known".
type MAC [6]byte

// ParseMAC reads a MAC in the forms 02:00:5e:10:00:01, 02-00-..., 0200.5e10.0001
// or 02005e100001, in any case.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	if len(s) == 12 {
		if b, err := hex.DecodeString(s); err == nil {
			return MAC(b), nil
		}
	}
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return m, fmt.Errorf("%q is not a MAC address such as 02:00:5e:10:00:01", s)
	}
	return MAC(hw), nil
}

// String returns the lower-case colon form.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether m is not known.
func (m MAC) IsZero() bool { return m == MAC{} }

// HardwareAddr returns m as the standard library's type.
func (m MAC) HardwareAddr() net.HardwareAddr { return net.HardwareAddr(m[:]) }

// MarshalText writes the colon form, and nothing for the zero MAC.
func (m MAC) MarshalText() ([]byte, error) {
	if m.IsZero() {
		return nil, nil
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads any form of ParseMAC; empty text is the zero MAC.
func (m *MAC) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*m = MAC{}
		return nil
	}
	*m, err = ParseMAC(string(b))
	return err
}

// GUID is a 64-bit InfiniBand or EUI-64 identifier.
type GUID uint64

// ParseGUID reads 0x506b4b03005c2740, 506b4b03005c2740 or 506b:4b03:005c:2740.
func ParseGUID(s string) (GUID, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "0x"), ":", ""))
	if err != nil || len(b) != 8 {
		return 0, fmt.Errorf("%q is not a GUID such as 0x506b4b03005c2740", s)
	}
	var g GUID
	for _, c := range b {
		g = g<<8 | GUID(c)
	}
	return g, nil
}

// String returns the 0x form with sixteen digits.
func (g GUID) String() string { return fmt.Sprintf("0x%016x", uint64(g)) }

// MarshalText writes the 0x form.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads any form of ParseGUID.
func (g *GUID) UnmarshalText(b []byte) (err error) { *g, err = ParseGUID(string(b)); return err }
