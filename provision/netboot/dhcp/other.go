// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
)

// Other is a DHCP server beside ours on the boot network.
type Other struct {
	Address netip.Addr // its server identifier, or the source of its answers
	MAC     addr.MAC   // zero: not known
	// VendorClass is option 60 of its answers; empty: it sent none. Text from outside.
	VendorClass string
	Offered     netip.Addr // an address that it gave away; zero: none was heard
	File        string     // boot file that it sends; empty: none. Text from outside
	Seen        string     // how it was found, as a sentence
	First, Last time.Time  // when it was first and last heard
}

// String says who the server is.
func (o Other) String() string {
	text := "the DHCP server " + o.Address.String()
	if o.MAC.IsZero() {
		text += ", MAC not known"
	} else {
		text += " at MAC " + o.MAC.String()
	}
	if o.VendorClass == "" {
		return text + ", without a vendor class"
	}
	return text + fmt.Sprintf(", vendor class %q", o.VendorClass)
}

// Gives says what the server hands out; empty: that was not heard.
func (o Other) Gives() string {
	switch {
	case o.Offered.IsValid() && o.File != "":
		return fmt.Sprintf("it offered %s and the boot file %q", o.Offered, o.File)
	case o.Offered.IsValid():
		return fmt.Sprintf("it offered %s and no boot file", o.Offered)
	case o.File != "":
		return fmt.Sprintf("it offered the boot file %q and no address", o.File)
	}
	return ""
}

// otherOf reads the answer of a server, heard from a source. False: it names no
// server.
func otherOf(p *dhcpv4.DHCPv4, from netip.Addr, mac addr.MAC) (Other, bool) {
	o := Other{Address: toAddr(p.ServerIdentifier()), MAC: mac, VendorClass: p.ClassIdentifier(), File: cmp.Or(p.BootFileNameOption(), p.BootFileName)}
	if o.Address.IsUnspecified() {
		o.Address = from
	}
	if isSet(p.YourIPAddr) {
		o.Offered = toAddr(p.YourIPAddr)
	}
	return o, o.Address.IsValid() && !o.Address.IsUnspecified()
}

// merge takes over what a later event knows beside.
func (o *Other) merge(n Other) {
	o.Last = n.Last
	if o.MAC.IsZero() {
		o.MAC = n.MAC
	}
	if !o.Offered.IsValid() {
		o.Offered = n.Offered
	}
	o.VendorClass, o.File = cmp.Or(o.VendorClass, n.VendorClass), cmp.Or(o.File, n.File)
}
