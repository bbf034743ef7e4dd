// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// switchPorts are the ports of switches at which the NICs that nodes boot from are, by the
// site's cables.
type switchPorts struct {
	switches map[string]*inventory.Switch // by the names that they may say of themselves
	byAddr   map[netip.Addr]*inventory.Switch
	ends     map[string][]switchPort // by node
	owner    map[switchPort]string   // the port of a node, as cables write it
}

type switchPort struct {
	of     *inventory.Switch
	number int // on the panel
}

func (p switchPort) String() string { return fmt.Sprintf("port %d of switch %s", p.number, p.of.Name) }

func newSwitchPorts(inv *inventory.Inventory) *switchPorts {
	s := &switchPorts{map[string]*inventory.Switch{}, map[netip.Addr]*inventory.Switch{}, map[string][]switchPort{}, map[switchPort]string{}}
	for _, w := range inv.Switches {
		if w.Address.IsValid() {
			s.byAddr[w.Address] = w
		}
		for _, name := range []string{w.Name, w.Label, strings.ReplaceAll(w.Name, "/", "-"), strings.ReplaceAll(w.Name, "/", "_"), strings.ReplaceAll(w.Name, "/", ".")} {
			s.name(strings.ToLower(name), w)
		}
	}
	for _, c := range inv.Cables {
		for _, ends := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
			node, far := ends[0], ends[1]
			if node.Node == nil || node.NIC == nil || !node.NIC.Boot || far.Switch == nil {
				continue
			}
			at := switchPort{far.Switch, far.Port}
			s.ends[node.Node.Name] = append(s.ends[node.Node.Name], at)
			s.owner[at] = node.String()
		}
	}
	return s
}

// name takes a name of a switch over; nil: several have it.
func (s *switchPorts) name(name string, w *inventory.Switch) {
	if other, taken := s.switches[name]; taken && other != w {
		w = nil
	}
	s.switches[name] = w
}

// wrong says why a node that asks through a relay agent is not at a port at which a cable
// of its boot NIC ends; "" where it is, where the site has no cable for it, and where what the relay
// agent says is not understood.
func (s *switchPorts) wrong(c netboot.Client, a dhcp.Asked) string {
	want := s.ends[c.Node]
	if c.Kind == netboot.BMC || len(want) == 0 {
		return ""
	}
	at, ok := s.read(a)
	if !ok || slices.Contains(want, at) {
		return ""
	}
	text := fmt.Sprintf("asks at %s, as relay agent %s says by option 82, and its cable ends at %s by the files", at, a.Relay, want[0])
	if other := s.owner[at]; other != "" {
		text += ": the cable of " + other + " does there"
	}
	return text
}

// read finds the port that a relay agent means. The circuit id is the name of the port, as
// dhcrelay of ISC writes it, or has the switch before it ("leaf-1:Ethernet4", as SONiC writes it); the remote
// id may be the name of the switch, else the relay agent is the switch that has its address. Binary
// ids, of VLAN, module and port, are each maker's own and not read.
func (s *switchPorts) read(a dhcp.Asked) (at switchPort, ok bool) {
	name := strings.TrimRight(string(a.Circuit), "\x00")
	if at.of = s.named(string(a.Remote)); at.of == nil {
		at.of = s.byAddr[a.Relay]
	}
	if i := strings.IndexAny(name, ": "); i > 0 {
		if w := s.named(name[:i]); w != nil {
			at.of, name = w, name[i+1:]
		}
	}
	if at.of == nil {
		return at, false
	}
	name, _, _ = strings.Cut(name, ":") // its VLAN may follow
	if at.number, ok = cabling.PanelNumber(at.of.OS, at.of.Model, name); ok {
		return at, true
	}
	n, err := strconv.Atoi(strings.TrimSpace(name))
	at.number = n
	return at, err == nil && n > 0
}

// named finds a switch by what it calls itself, with or without a domain.
func (s *switchPorts) named(text string) *inventory.Switch {
	text = strings.ToLower(strings.TrimRight(text, "\x00"))
	if w := s.switches[text]; w != nil {
		return w
	}
	host, _, _ := strings.Cut(text, ".")
	return s.switches[host]
}
