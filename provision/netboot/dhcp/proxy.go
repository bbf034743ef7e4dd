// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Beside another DHCP server, which gives the addresses, this one is a ProxyDHCP server
// (PXE 2.1, section 2.2): its offers have no address, and only programs that boot get
// one. A firmware that has its address may then ask the boot server's port for the
// program itself. iPXE, BIOS ROMs and HTTP boot take it from the offer, which names it;
// EDK2 asks.

// bootServerPort is the port of boot servers (PXE 2.1, section 2.2.2).
const bootServerPort = 4011

// anyProxy reports whether there is a network on which another server gives the addresses.
func (p Policy) anyProxy() bool {
	return p.Proxy || slices.ContainsFunc(p.Networks, func(n Network) bool { return n.Proxy })
}

// isProxied reports whether another server gives the addresses where a packet comes from.
func (p Policy) isProxied(in *dhcpv4.DHCPv4) bool {
	if n := p.networkOf(in); n != nil {
		return n.Proxy
	}
	return p.Proxy
}

// decideProxy answers a known client on the port of DHCP servers.
func (p Policy) decideProxy(d Decision, in *dhcpv4.DHCPv4, now time.Time) Decision {
	if d.Client.Kind == boot.BMC {
		return d // the other server's client
	}
	switch in.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		if d = p.proxyAnswer(d, in, dhcpv4.MessageTypeOffer, now); d.Refused {
			return d
		}
		d.Reply.SetBroadcast() // it has no address that a frame or a relay could use
		return d.withNote(EventOffer, "%s is offered %s; its address comes from another server", d.Class, d.File)
	case dhcpv4.MessageTypeRequest:
		got := requestedAddr(in)
		if got != d.Client.Address.Addr() {
			return p.otherAddress(d, got, toAddr(in.ServerIdentifier()))
		}
		if p.Chain != nil && d.Client.ForceUndionly {
			p.Chain.Acked(d.MAC, in.TransactionID, now)
		}
		return d.withNote(EventLeased, "%s takes %s from the DHCP server %s", d.Class, got, toAddr(in.ServerIdentifier()))
	case dhcpv4.MessageTypeDecline:
		return d.refuse(eventDecline, "declines %s: the client saw another owner of this address on the wire", requestedAddr(in))
	}
	return d
}

// otherAddress refuses a client that got another address than the files give it: it is
// known by that everywhere but in DHCP.
func (p Policy) otherAddress(d Decision, got, server netip.Addr) Decision {
	by := "the DHCP server of this network"
	if !server.IsUnspecified() {
		by = "the DHCP server " + server.String()
	}
	return d.refuse(EventOtherAddress, "%s gives it %s, and the files say %s: reserve %[3]s for MAC %[4]s there", by, got, d.Client.Address.Addr(), d.MAC)
}

// DecideBoot answers a request at the boot server's port, from an address. It is safe for
// concurrent use.
func (p Policy) DecideBoot(src boot.Source, in *dhcpv4.DHCPv4, from netip.Addr, now time.Time) Decision {
	if !Classify(in).Boots() {
		return Decision{}
	}
	d, ok := p.identify(src, in)
	switch {
	case !ok || d.Client.Kind == boot.BMC:
		return d
	case in.MessageType() != dhcpv4.MessageTypeRequest && in.MessageType() != dhcpv4.MessageTypeInform:
		return d.refuse(eventMalformed, "message type %d is none of a boot server's", uint8(in.MessageType()))
	}
	if isSet(in.ClientIPAddr) {
		from = toAddr(in.ClientIPAddr)
	}
	if from != d.Client.Address.Addr() {
		return p.otherAddress(d, from, netip.IPv4Unspecified())
	}
	if d = p.proxyAnswer(d, in, dhcpv4.MessageTypeAck, now); d.Refused {
		return d
	}
	return d.withNote(EventBootServer, "%s asks the boot server, and is given %s", d.Class, d.File)
}

// proxyAnswer fills a reply without an address, or refuses.
func (p Policy) proxyAnswer(d Decision, in *dhcpv4.DHCPv4, t dhcpv4.MessageType, now time.Time) Decision {
	file, err := p.bootFile(d.Client, d.Class, d.MAC, p.forced(d, in, now))
	if err != nil {
		return d.refuse(eventNoFile, "%s: %v", d.Class, err)
	}
	d.File, d.Reply = file, p.base(in, t)
	o := d.Reply.Options
	class := "PXEClient"
	if d.Class.HTTP {
		class = "HTTPClient" // UEFI 2.10, section 24.7.3.1
	}
	p.putText(o, dhcpv4.OptionClassIdentifier.Code(), class)
	if u := in.Options.Get(optUUID); len(u) == 17 {
		o[optUUID.Code()] = u // PXE 2.1, table 2-3: returned unmodified
	}
	if d.Class.PXE && !d.Class.IPXE && d.Class.Arch == ArchBIOS {
		o[dhcpv4.OptionVendorSpecificInformation.Code()] = bootFromOffer
	}
	p.putFile(d.Reply, file)
	return d
}

// bootFromOffer is option 43 with PXE_DISCOVERY_CONTROL 8: take the boot file of this
// offer, and look for no boot server (PXE 2.1, table 2-1). BIOS ROMs need it; some UEFI
// firmware drops offers with it, and asks the boot server's port where there is none.
var bootFromOffer = []byte{6, 1, 8, 255}
