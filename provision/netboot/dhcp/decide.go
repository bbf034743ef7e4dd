// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// What words of the evidence about DHCP.
const (
	EventOffer        = "offer"
	EventAck          = "ack"
	eventNak          = "nak"
	eventInform       = "inform"
	eventRelease      = "release"
	eventDecline      = "decline"     // the client says that its address is taken
	EventOtherServer  = "elsewhere"   // the client took the offer of another server
	EventLeased       = "leased"      // beside us: the client takes its address from the other server
	EventOtherAddress = "address"     // beside us: the other server gave the client another address
	EventBootServer   = "boot-server" // beside us: the client asked port 4011
	eventHeld         = "held"        // not answered: other DHCP servers are looked for, or there is one
	eventUnknown      = "unknown"     // nobody in the inventory has this MAC
	eventRelay        = "relay"       // asked through a relay agent that the site does not have
	eventUUID         = "uuid"        // the firmware's UUID is not the inventory's
	EventTwoUUIDs     = "two-uuids"   // two machines ask under one MAC
	eventNoFile       = "no-loader"   // there is nothing this firmware could load
	EventPool         = "pool"        // a machine that nobody knows has an address of the pool
	eventPool         = "pool-limit"  // one gets none
	eventConflict     = "conflict"    // an address of the pool is in use by others
	eventNetwork      = "network"     // a client asks on another network than that of its address
	EventPort         = "port"        // a client asks at another port of a switch than its cable ends at
	eventMalformed    = "malformed"
	eventDropped      = "dropped" // packets lost because more came than could be answered
)

// Decision is the answer to one packet. Reply is nil when nothing is sent.
type Decision struct {
	Reply   *dhcpv4.DHCPv4
	Client  boot.Client // zero: unknown
	MAC     addr.MAC
	Class   Class
	File    string // boot file name or URL in the reply
	What    string // word for the evidence; empty: not worth telling
	Detail  string
	Refused bool

	probe netip.Addr // of the pool: nobody may have it, or the offer is not sent; zero: there is nothing to look for
	pool  *Pool      // of probe
}

// Evidence makes what is told about the decision.
func (d Decision) Evidence(now time.Time) boot.Evidence {
	if d.Client.Kind == boot.BMC { // the node itself did nothing
		return boot.Evidence{Time: now, MAC: d.MAC, Address: d.Client.Address.Addr(), Proto: boot.DHCP, What: d.What, Detail: "the BMC of " + d.Client.Node + ": " + d.Detail, Refused: d.Refused}
	}
	return boot.Evidence{Time: now, Node: d.Client.Node, MAC: d.MAC, Address: d.Client.Address.Addr(),
		Proto: boot.DHCP, What: d.What, Detail: d.Detail, Refused: d.Refused}
}

func (d Decision) refuse(what, format string, args ...any) Decision {
	d.Reply, d.File = nil, ""
	d.What, d.Detail, d.Refused = what, fmt.Sprintf(format, args...), true
	return d
}

func (d Decision) withNote(what, format string, args ...any) Decision {
	d.What, d.Detail = what, fmt.Sprintf(format, args...)
	return d
}

// identify finds the client that a packet is of. False: nothing more is to be decided, and
// the decision says why.
func (p Policy) identify(src boot.Source, in *dhcpv4.DHCPv4) (d Decision, ok bool) {
	if in.OpCode != dhcpv4.OpcodeBootRequest {
		return d, false // a reply: not ours to answer, and another server is found by Watch
	}
	mac, err := clientMAC(in)
	if err != nil {
		return d.refuse(eventMalformed, "%v", err), false
	}
	d.MAC, d.Class = mac, Classify(in)
	c, ok := src.ByMAC(mac)
	if !ok {
		return d.refuse(eventUnknown, "%s asks for an address, and no node of the inventory has MAC %s", d.Class, mac), false
	}
	relay := toAddr(in.GatewayIPAddr)
	if n, other := p.isElsewhere(in, c); other && n.speaks(relay) {
		d.Client = c
		return d.refuse(eventNetwork, "asks on network %s, through the relay agent %s, and its address %s is on another: MAC %s may be at a port of another VLAN",
			n.Name, relay, c.Address.Addr(), mac), false
	}
	if !relay.IsUnspecified() && !p.relayed(relay, c) {
		// Not the client's record: it did not ask, or somebody else speaks for it.
		return d.refuse(eventRelay, "%s asks for %s (%s), and is neither a relay of the network's dhcp block nor its gateway", relay, c.Node, mac), false
	}
	d.Client = c
	if why := p.wrongPort(in, c); why != "" {
		return d.refuse(EventPort, "%s", why), false
	}
	if !c.Address.Addr().Is4() {
		return d.refuse(eventMalformed, "no IPv4 address is reserved for %s", mac), false
	}
	if !sameUUID(c.UUID, d.Class.UUID) {
		return d.refuse(eventUUID, "the firmware says its UUID is %s and the inventory says %s: MAC %s may be in another chassis",
			formatUUID(d.Class.UUID), c.UUID, mac), false
	}
	return d, true
}

// Decide says what to answer to one packet of a client. It does no I/O; its
// only memory is the Chain of the policy. It is safe for concurrent use and for
// any packet that the codec accepts.
func (p Policy) Decide(src boot.Source, in *dhcpv4.DHCPv4, now time.Time) Decision {
	proxy := p.isProxied(in)
	if proxy && !Classify(in).Boots() {
		return Decision{} // the other server's client
	}
	d, ok := p.identify(src, in)
	switch {
	case !ok && d.What == eventUnknown && !proxy:
		return p.decideUnknown(d, in, now)
	case !ok:
		return d
	case proxy:
		return p.decideProxy(d, in, now)
	}
	c := d.Client
	switch in.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return p.offer(d, in, now)
	case dhcpv4.MessageTypeRequest:
		return p.request(d, in, now)
	case dhcpv4.MessageTypeInform:
		return p.inform(d, in, now)
	case dhcpv4.MessageTypeRelease:
		return d.withNote(eventRelease, "gives %s back; it stays reserved", c.Address.Addr())
	case dhcpv4.MessageTypeDecline:
		return d.refuse(eventDecline, "declines %s: the client saw another owner of this address on the wire", c.Address.Addr())
	}
	return d.refuse(eventMalformed, "message type %d is none of a client's", uint8(in.MessageType()))
}

func (p Policy) offer(d Decision, in *dhcpv4.DHCPv4, now time.Time) Decision {
	d = p.answer(d, in, dhcpv4.MessageTypeOffer, now)
	if d.Refused {
		return d
	}
	d.What, d.Detail = EventOffer, d.Class.String()+" is offered "+d.Client.Address.Addr().String()+andFile(d.File)
	return d
}

// inform answers a client that has its address and asks for options only. The answer goes to ciaddr
// (RFC 2131 section 4.3.5), and so to the address of the files alone: whoever knows a MAC of this site
// could send replies to another one.
func (p Policy) inform(d Decision, in *dhcpv4.DHCPv4, now time.Time) Decision {
	if got, want := toAddr(in.ClientIPAddr), d.Client.Address.Addr(); got != want {
		return d.refuse(eventInform, "asks for options as %s, and %s is reserved for it", got, want)
	}
	if d = p.answer(d, in, dhcpv4.MessageTypeAck, now); d.Refused {
		return d
	}
	return d.withNote(eventInform, "%s asks for options only", d.Class)
}

// request answers the four uses of DHCPREQUEST, RFC 2131 section 4.3.2.
func (p Policy) request(d Decision, in *dhcpv4.DHCPv4, now time.Time) Decision {
	if sid := in.ServerIdentifier(); sid != nil && !sid.Equal(serverID(p, in)) {
		return d.withNote(EventOtherServer, "takes the offer of the DHCP server %s", sid)
	}
	want := d.Client.Address.Addr()
	got := requestedAddr(in)
	if got != want {
		d.Reply = p.nak(in)
		return d.withNote(eventNak, "asks for %s and %s is reserved for it", got, want)
	}
	d = p.answer(d, in, dhcpv4.MessageTypeAck, now)
	if d.Refused {
		return d
	}
	if p.Chain != nil && d.Client.ForceUndionly {
		p.Chain.Acked(d.MAC, in.TransactionID, now)
	}
	d.What, d.Detail = EventAck, d.Class.String()+" gets "+want.String()+andFile(d.File)
	return d
}

// answer fills the reply of the given type, or refuses.
func (p Policy) answer(d Decision, in *dhcpv4.DHCPv4, t dhcpv4.MessageType, now time.Time) Decision {
	file, err := p.bootFile(d.Client, d.Class, d.MAC, p.forced(d, in, now))
	if err != nil {
		return d.refuse(eventNoFile, "%s: %v", d.Class, err)
	}
	d.File = file
	d.Reply = p.reply(in, t, d.Client, d.Class, file)
	return d
}

// forced reports whether iPXE of a ROM is to load undionly.kpxe first.
func (p Policy) forced(d Decision, in *dhcpv4.DHCPv4, now time.Time) bool {
	return p.Chain != nil && d.Client.ForceUndionly && d.Class.IPXE && d.Class.HasArch && d.Class.Arch == ArchBIOS &&
		p.Chain.Loader(d.MAC, in.TransactionID, now)
}

func andFile(file string) string {
	if file == "" {
		return ", no boot program"
	}
	return " and " + file
}

// clientMAC returns the Ethernet address of the sender. Other hardware types
// (InfiniBand has an empty chaddr, RFC 4390) are not served.
func clientMAC(in *dhcpv4.DHCPv4) (addr.MAC, error) {
	if in.HWType != iana.HWTypeEthernet || len(in.ClientHWAddr) != 6 {
		return addr.MAC{}, fmt.Errorf("hardware type %d with an address of %d bytes is not Ethernet", uint16(in.HWType), len(in.ClientHWAddr))
	}
	m := addr.MAC(in.ClientHWAddr)
	if m.IsZero() || m[0]&1 != 0 {
		return addr.MAC{}, fmt.Errorf("%s is not the address of one client", m)
	}
	return m, nil
}

// relayed reports whether a relay agent may speak for a client.
func (p Policy) relayed(relay netip.Addr, c boot.Client) bool {
	return p.AnyRelay || relay == c.Gateway || slices.Contains(p.Relays, relay) ||
		slices.ContainsFunc(p.Networks, func(n Network) bool { return n.Prefix.Contains(c.Address.Addr()) && n.speaks(relay) })
}

// requestedAddr returns the address that a REQUEST is about: option 50 when the
// client has none yet, else ciaddr (RFC 2131 section 4.3.2).
func requestedAddr(in *dhcpv4.DHCPv4) netip.Addr {
	if ip := in.RequestedIPAddress(); ip != nil {
		return toAddr(ip)
	}
	return toAddr(in.ClientIPAddr)
}

// toAddr returns 0.0.0.0 for what is no IPv4 address.
func toAddr(ip net.IP) netip.Addr {
	if a, ok := netip.AddrFromSlice(ip.To4()); ok {
		return a
	}
	return netip.IPv4Unspecified()
}
