// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"math"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Ports of RFC 2131 section 4.1.
const (
	serverPort = 67
	clientPort = 68
)

// reply builds OFFER and ACK. Options 43 and 60 are not sent to a PXE firmware:
// with them it would look for a boot server of its own (PXE 2.1 section 2.2),
// without them it takes siaddr and file as plain BOOTP does, and that is what
// all firmware seen so far does. HTTP boot needs option 60 back, or it drops
// the offer (UEFI 2.10 section 24.7.3.1).
func (p Policy) reply(in *dhcpv4.DHCPv4, t dhcpv4.MessageType, c boot.Client, cl Class, file string) *dhcpv4.DHCPv4 {
	r := p.base(in, t)
	o := r.Options
	if in.MessageType() != dhcpv4.MessageTypeInform { // RFC 2131 section 4.3.5: no lease times, no yiaddr
		r.YourIPAddr = p.room.address(c.Address.Addr())
		p.putLease(o)
	}
	o[uint8(dhcpv4.OptionSubnetMask)] = p.room.keep(maskOf(c.Address.Bits())...)
	if c.Gateway.Is4() {
		o[uint8(dhcpv4.OptionRouter)] = p.room.address(c.Gateway)
	}
	if dns := p.room.addresses(c.DNS); len(dns) > 0 {
		o[uint8(dhcpv4.OptionDomainNameServer)] = dns
	}
	p.putText(o, dhcpv4.OptionHostName.Code(), c.Hostname)
	p.putText(o, dhcpv4.OptionDomainName.Code(), c.Domain)
	if u := in.Options.Get(optUUID); len(u) == 17 {
		o[optUUID.Code()] = u // RFC 4578 section 2.3: returned unmodified
	}
	if cl.HTTP {
		p.putText(o, dhcpv4.OptionClassIdentifier.Code(), "HTTPClient")
	}
	if cl.IPXE {
		o[optIPXE.Code()] = noProxyDHCP
	}
	if file != "" {
		p.putFile(r, file)
	}
	return r
}

// putFile names the boot file, and where it lies. Options are sent whether asked for or
// not: some firmware needs them and does not ask.
func (p Policy) putFile(r *dhcpv4.DHCPv4, file string) {
	r.ServerIPAddr = p.room.address(p.Address)
	if len(file) <= maxFile {
		r.BootFileName = file
	}
	p.putText(r.Options, dhcpv4.OptionBootfileName.Code(), file)
	p.putText(r.Options, dhcpv4.OptionTFTPServerName.Code(), p.Address.String())
}

// noProxyDHCP is iPXE's encapsulated option 176: it need not wait three seconds
// for the offers of a ProxyDHCP server beside us.
var noProxyDHCP = []byte{176, 1, 1}

// room is memory of replies, used again for each. A nil room is none: replies are new. It is
// used by one goroutine.
type room struct {
	reply  dhcpv4.DHCPv4
	values []byte // of options, of all that are in reply
}

// reset returns an empty reply, which is valid until the next call.
func (r *room) reset() *dhcpv4.DHCPv4 {
	if r == nil {
		return &dhcpv4.DHCPv4{Options: dhcpv4.Options{}}
	}
	options := r.reply.Options
	if options == nil {
		options = dhcpv4.Options{}
	}
	clear(options)
	r.reply, r.values = dhcpv4.DHCPv4{Options: options}, r.values[:0]
	return &r.reply
}

// keep copies bytes for the time of the reply.
func (r *room) keep(b ...byte) []byte {
	if r == nil {
		return slices.Clone(b)
	}
	at := len(r.values)
	r.values = append(r.values, b...)
	return r.values[at:len(r.values):len(r.values)]
}

// text is keep, of a string.
func (r *room) text(s string) []byte {
	if r == nil {
		return []byte(s)
	}
	at := len(r.values)
	r.values = append(r.values, s...)
	return r.values[at:len(r.values):len(r.values)]
}

// address is keep, of an IPv4 address.
func (r *room) address(a netip.Addr) net.IP {
	b := a.As4()
	return r.keep(b[:]...)
}

// addresses is keep, of those of a list that are IPv4.
func (r *room) addresses(list []netip.Addr) (b []byte) {
	var room [64]byte
	packed := room[:0]
	for _, a := range list {
		if a.Is4() {
			four := a.As4()
			packed = append(packed, four[:]...)
		}
	}
	return r.keep(packed...)
}

// base is what every reply has in common with its request: RFC 2131 table 3,
// the client identifier by RFC 6842 and the relay's information by RFC 3046.
func (p Policy) base(in *dhcpv4.DHCPv4, t dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	r := p.room.reset()
	o := r.Options
	o[uint8(dhcpv4.OptionDHCPMessageType)] = p.room.keep(byte(t))
	o[uint8(dhcpv4.OptionServerIdentifier)] = serverID(p, in)
	for _, code := range []uint8{uint8(dhcpv4.OptionClientIdentifier), uint8(dhcpv4.OptionRelayAgentInformation)} {
		if b := in.Options[code]; b != nil {
			o[code] = b
		}
	}
	*r = dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, TransactionID: in.TransactionID, Flags: in.Flags,
		ClientIPAddr: in.ClientIPAddr, GatewayIPAddr: in.GatewayIPAddr, ClientHWAddr: in.ClientHWAddr, Options: o,
	}
	return r
}

// nak refuses an address. Through a relay the broadcast bit is set, since the
// client may not own the address it sends from (RFC 2131 section 4.3.2).
func (p Policy) nak(in *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	r := p.base(in, dhcpv4.MessageTypeNak)
	r.ClientIPAddr = nil
	if isSet(in.GatewayIPAddr) {
		r.SetBroadcast()
	}
	return r
}

// serverID is our address, or the one that the relay wants to be seen as (RFC
// 5107 section 4): renewals then pass through it.
func serverID(p Policy, in *dhcpv4.DHCPv4) net.IP {
	if rai := in.RelayAgentInfo(); rai != nil {
		if b := rai.Get(dhcpv4.ServerIdentifierOverrideSubOption); len(b) == 4 {
			return net.IP(b)
		}
	}
	return p.room.address(p.Address)
}

// putLease writes lease, T1 (a half) and T2 (seven eighths), RFC 2131 4.4.5.
func (p Policy) putLease(o dhcpv4.Options) {
	put := func(code uint8, v uint32) {
		o[code] = p.room.keep(byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	put(uint8(dhcpv4.OptionIPAddressLeaseTime), p.Lease)
	if p.Lease == math.MaxUint32 {
		return
	}
	put(dhcpv4.OptionRenewTimeValue.Code(), p.Lease/2)
	put(dhcpv4.OptionRebindingTimeValue.Code(), p.Lease-p.Lease/8)
}

func (p Policy) putText(o dhcpv4.Options, code uint8, s string) {
	if s != "" && len(s) <= math.MaxUint8 {
		o[code] = p.room.text(s)
	}
}

// maskOf is the subnet mask of a prefix of that many bits.
func maskOf(bits int) []byte {
	v := ^uint32(0) << (32 - bits)
	return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

func isSet(ip net.IP) bool { return len(ip) != 0 && !ip.IsUnspecified() }

// Path is how a reply reaches its client.
type Path uint8

// The paths of RFC 2131 section 4.1.
const (
	ToRelay     Path = iota // UDP to giaddr, server port
	ToAddress               // UDP to ciaddr, client port
	ToBroadcast             // UDP to 255.255.255.255, client port
	ToHardware              // an Ethernet frame to chaddr with yiaddr, client port: it answers no ARP yet
)

// PathOf chooses the path of a reply and its IP destination. "If the giaddr
// field in a DHCP message from a client is non-zero, the server sends any
// return messages to the 'DHCP server' port on the BOOTP relay agent ... In all
// cases, when giaddr is zero, the server broadcasts any DHCPNAK messages."
func PathOf(in, r *dhcpv4.DHCPv4) (Path, netip.Addr) {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	switch {
	case isSet(in.GatewayIPAddr):
		return ToRelay, toAddr(in.GatewayIPAddr)
	case r.MessageType() == dhcpv4.MessageTypeNak:
		return ToBroadcast, broadcast
	case isSet(in.ClientIPAddr):
		return ToAddress, toAddr(in.ClientIPAddr)
	case in.IsBroadcast() || !isSet(r.YourIPAddr):
		return ToBroadcast, broadcast
	}
	return ToHardware, toAddr(r.YourIPAddr)
}
