// SPDX-License-Identifier: Apache-2.0

// Package dhcp is an authoritative DHCPv4 server for known clients. What to
// answer is a decision without I/O (Decide); around it lies a receive loop with
// bounds on memory, goroutines and evidence (Server), the choice of the reply's
// path by RFC 2131 section 4.1, and the search for other servers (Watch).
package dhcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Arch is a client system architecture type of RFC 4578 section 2.1 and the
// IANA registry that continues it.
type Arch uint16

// The architectures that have a name here; the others are shown by number.
const (
	ArchBIOS      Arch = 0
	ArchIA32      Arch = 6
	ArchX64       Arch = 7
	ArchEBC       Arch = 9 // meant for EFI byte code, sent by x64 firmware of several vendors
	ArchARM64     Arch = 11
	ArchX64HTTP   Arch = 16
	ArchARM64HTTP Arch = 19
)

var archNames = map[Arch]string{
	ArchBIOS: "BIOS", ArchIA32: "UEFI ia32", ArchX64: "UEFI x64", ArchEBC: "UEFI x64 (as byte code)", ArchARM64: "UEFI arm64",
	ArchX64HTTP: "UEFI x64 over HTTP", ArchARM64HTTP: "UEFI arm64 over HTTP",
}

// String returns the name and the number.
func (a Arch) String() string {
	if n, ok := archNames[a]; ok {
		return n
	}
	return fmt.Sprintf("architecture %d", uint16(a))
}

// Options that the codec has no name for.
const (
	optUUID = dhcpv4.GenericOptionCode(97)  // RFC 4578 section 2.3
	optIPXE = dhcpv4.GenericOptionCode(175) // iPXE's encapsulated options
)

// Class is what a packet says about the program that sent it.
type Class struct {
	Arch    Arch
	HasArch bool
	PXE     bool     // option 60 begins with PXEClient
	HTTP    bool     // option 60 begins with HTTPClient
	IPXE    bool     // user class iPXE, or iPXE's own options
	UUID    [16]byte // as on the wire; all zero when not sent, see unknownUUID
}

// Boots reports whether the sender wants a boot program: an operating system
// that asks for its address does not.
func (c Class) Boots() bool { return c.PXE || c.HTTP || c.IPXE }

// String says who is asking, for evidence.
func (c Class) String() string {
	who := "a plain client"
	switch {
	case c.IPXE:
		who = "iPXE"
	case c.HTTP:
		who = "an HTTP boot firmware"
	case c.PXE:
		who = "a PXE firmware"
	}
	if !c.HasArch {
		return who
	}
	return who + ", " + c.Arch.String()
}

// Classify reads the class of a client's packet. It never fails: what is absent
// or malformed stays zero.
func Classify(p *dhcpv4.DHCPv4) Class {
	var c Class
	vendor := p.ClassIdentifier()
	c.PXE = strings.HasPrefix(vendor, "PXEClient")
	c.HTTP = strings.HasPrefix(vendor, "HTTPClient")
	c.IPXE = p.Options.Has(optIPXE) || isIPXE(p.Options.Get(dhcpv4.OptionUserClassInformation))
	c.Arch, c.HasArch = archOf(p.Options.Get(dhcpv4.OptionClientSystemArchitectureType), vendor)
	// RFC 4578 2.3: one byte of type, which is 0, and 16 bytes of UUID.
	if b := p.Options.Get(optUUID); len(b) == 17 && b[0] == 0 {
		copy(c.UUID[:], b[1:])
	}
	return c
}

// isIPXE accepts the bare "iPXE" that iPXE sends (seen on 1.0.0+git-20190125)
// and the length-prefixed form of RFC 3004.
func isIPXE(b []byte) bool {
	if bytes.Equal(b, []byte("iPXE")) {
		return true
	}
	for len(b) > 1 && int(b[0]) < len(b) {
		n := int(b[0])
		if string(b[1:1+n]) == "iPXE" {
			return true
		}
		b = b[1+n:]
	}
	return false
}

// archOf takes the first type of option 93, or the one that the vendor class
// names ("PXEClient:Arch:00007:UNDI:003000"): some firmware sends only that.
func archOf(opt []byte, vendor string) (Arch, bool) {
	if len(opt) >= 2 {
		return Arch(binary.BigEndian.Uint16(opt)), true
	}
	if f := strings.Split(vendor, ":"); len(f) >= 3 && f[1] == "Arch" {
		if n, err := strconv.ParseUint(f[2], 10, 16); err == nil {
			return Arch(n), true
		}
	}
	return 0, false
}

// sameUUID compares the inventory's text with the wire's bytes. SMBIOS 2.6
// stores the first three fields little-endian and firmware differs in whether
// it swaps them, so both orders agree. Unknown on either side agrees too.
func sameUUID(text string, wire [16]byte) bool {
	if unknownUUID(wire) || text == "" {
		return true
	}
	want, ok := parseUUID(text)
	if !ok {
		return true // the inventory's own checks reject such text
	}
	return wire == want || wire == swapUUID(want)
}

// swapUUID turns the byte order of SMBIOS into that of the text, and back.
func swapUUID(u [16]byte) [16]byte {
	slices.Reverse(u[0:4])
	slices.Reverse(u[4:6])
	slices.Reverse(u[6:8])
	return u
}

// parseUUID reads 32 hexadecimal digits, with dashes anywhere between them.
func parseUUID(s string) (u [16]byte, ok bool) {
	n := 0 // digits
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '-':
			continue
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return u, false
		}
		if n == 2*len(u) {
			return u, false
		}
		u[n/2] = u[n/2]<<4 | c
		n++
	}
	return u, n == 2*len(u)
}

// formatUUID shows bytes of the wire as dmidecode would show them: iPXE and EDK2
// send SMBIOS's order.
func formatUUID(wire [16]byte) string {
	u := swapUUID(wire)
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
