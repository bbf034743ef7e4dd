// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"net/netip"

	"github.com/ironrail/ironrail/internal/secret"
)

// Endpoint is where a device of a rehearsal on loopback answers, and how to log in.
// The password is made up for the rehearsal; it is none of the site's.
type Endpoint struct {
	Name     string         `json:"name"`
	Protocol string         `json:"protocol"` // "redfish", "ipmi", "rpc", "snmp" or "ssh"
	Site     netip.AddrPort `json:"site"`     // the address in the site's files
	Real     netip.AddrPort `json:"real"`     // the one for outside tools
	User     string         `json:"user,omitempty"`
	Password string         `json:"password"` // of SNMP: the community
}

// Endpoints lists them, for a board that knows real addresses; after Open.
func (w *World) Endpoints() []Endpoint {
	real, ok := w.opt.Board.(interface {
		Real(netip.AddrPort) netip.AddrPort
	})
	if !ok {
		return nil
	}
	var doors []Endpoint
	add := func(name, protocol string, at netip.AddrPort, user string, password secret.Ref) {
		doors = append(doors, Endpoint{Name: name, Protocol: protocol, Site: at, Real: real.Real(at), User: user, Password: w.password(password)})
	}
	for _, n := range w.inv.Nodes {
		if node := w.nodes[n.Name]; node != nil && n.BMC.Address.IsValid() {
			at := netip.AddrPortFrom(n.BMC.Address, n.BMC.Port)
			if n.BMC.Endpoint != "" {
				at = endpointAt(n.BMC.Endpoint)
			}
			add(n.Name+" BMC", n.BMC.Protocol, at, n.BMC.Username, n.BMC.Password)
		}
		if c := n.Console; c != nil {
			add(n.Name+" console", "ssh", netip.AddrPortFrom(c.Address, c.Port), c.Username, c.Login.Password)
		}
	}
	for _, r := range w.inv.Racks {
		for _, p := range r.PDUs {
			if p.Control != nil {
				add("PDU "+p.Name, "snmp", netip.AddrPortFrom(p.Control.Address, snmpPort), "", p.Control.Community)
			}
		}
	}
	for _, r := range w.inv.Racks {
		for _, s := range r.Shelves {
			if s.Control != nil {
				add("power shelf "+s.Name, "redfish", netip.AddrPortFrom(s.Control.Address, shelfPort), s.Control.Username, s.Control.Password)
			}
		}
	}
	for _, s := range w.inv.Switches {
		if w.switches[s.Name] != nil {
			add("switch "+s.Name, "ssh", netip.AddrPortFrom(s.Address, s.Login.Port), s.Login.Username, s.Login.Password)
		}
	}
	return doors
}
