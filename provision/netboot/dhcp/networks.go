// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Network is a network whose clients are answered.
type Network struct {
	Name    string
	Prefix  netip.Prefix
	Relays  []netip.Addr // that speak for its clients, its gateway among them
	Local   bool         // the server is on it, and hears its broadcasts
	Proxy   bool         // another server gives its addresses
	Gateway netip.Addr   // zero: none is offered
	DNS     []netip.Addr
	Domain  string
	Pool    *Pool // addresses for machines that nobody knows; nil: they get none
}

// networkOf finds the network that a packet comes from: that of the relay agent that
// passed it on, or ours. A relay agent that stands elsewhere names the network by an
// address of it (RFC 3527, link selection). Nil: not known.
func (p Policy) networkOf(in *dhcpv4.DHCPv4) *Network {
	relay := toAddr(in.GatewayIPAddr)
	at := relay
	if rai := in.RelayAgentInfo(); rai != nil {
		if b := rai.Get(dhcpv4.LinkSelectionSubOption); len(b) == 4 {
			at = netip.AddrFrom4([4]byte(b))
		}
	}
	i := slices.IndexFunc(p.Networks, func(n Network) bool {
		switch {
		case relay.IsUnspecified() && isSet(in.ClientIPAddr):
			return n.Prefix.Contains(toAddr(in.ClientIPAddr))
		case relay.IsUnspecified():
			return n.Local
		case at != relay:
			return n.Prefix.Contains(at)
		}
		return n.Prefix.Contains(relay) || slices.Contains(n.Relays, relay)
	})
	if i < 0 {
		return nil
	}
	return &p.Networks[i]
}

// isElsewhere reports whether a client asks on a network that its address is not of: one
// whose network is not known is not.
func (p Policy) isElsewhere(in *dhcpv4.DHCPv4, c boot.Client) (*Network, bool) {
	if !isSet(in.GatewayIPAddr) {
		return nil, false
	}
	n := p.networkOf(in)
	return n, n != nil && !n.Prefix.Contains(c.Address.Addr())
}

// Asked is where a relay agent says that a client asks (RFC 3046): its own address, and its
// words for the port (circuit id) and for itself or the far end (remote id), bytes from
// outside.
type Asked struct {
	Relay           netip.Addr
	Circuit, Remote []byte
}

// askedOf reads option 82; false: there is none.
func askedOf(in *dhcpv4.DHCPv4) (a Asked, ok bool) {
	rai := in.RelayAgentInfo()
	if rai == nil {
		return a, false
	}
	return Asked{toAddr(in.GatewayIPAddr), rai.Get(dhcpv4.AgentCircuitIDSubOption), rai.Get(dhcpv4.AgentRemoteIDSubOption)}, true
}

// wrongPort says why a client asks at a port that is not its own; "": it does not, or
// nobody can say. The relay agent is one of the site's.
func (p Policy) wrongPort(in *dhcpv4.DHCPv4, c boot.Client) string {
	a, ok := askedOf(in)
	if p.WrongPort == nil || !ok || !isSet(in.GatewayIPAddr) {
		return ""
	}
	return p.WrongPort(c, a)
}
