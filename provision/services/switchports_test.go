// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// TestWrongPort: what relay agents say of ports, against the site's cables.
func TestWrongPort(t *testing.T) {
	t.Parallel()
	leaf := &inventory.Switch{Name: "r01/mgmt-1", OS: "sonic", Model: "SN4700", Address: netip.MustParseAddr("10.0.9.1")}
	tor := &inventory.Switch{Name: "r02/mgmt-1", OS: "cumulus", Address: netip.MustParseAddr("10.0.9.2")}
	hw := &inventory.Hardware{NICs: []inventory.NIC{{Name: "mgmt", Boot: true, Ports: make([]inventory.NICPort, 2)}, {Name: "rail", Ports: make([]inventory.NICPort, 1)}}}
	inv := &inventory.Inventory{Switches: []*inventory.Switch{leaf, tor}}
	plug := func(node string, nic, port int, w *inventory.Switch, at int) {
		n, ok := inv.Node(node)
		if !ok {
			n = &inventory.Node{Name: node, Hardware: hw}
		}
		e := inventory.CableEnd{Node: n, NIC: &hw.NICs[nic], Port: port}
		inv.Cables = append(inv.Cables, &inventory.Cable{From: e, To: inventory.CableEnd{Switch: w, Port: at}})
	}
	plug("n1", 0, 0, leaf, 2)
	plug("n1", 0, 1, tor, 2)
	plug("n2", 0, 0, leaf, 3)
	plug("n2", 1, 0, leaf, 9)
	s := newSwitchPorts(inv)
	relay, elsewhere := leaf.Address, netip.MustParseAddr("10.0.0.1")
	for _, tt := range []struct {
		node            string
		relay           netip.Addr
		circuit, remote string
		want            string // "": it is right, or nobody can say
	}{
		{"n1", relay, "Ethernet8", "", ""},
		{"n1", relay, "2", "", ""},
		{"n1", relay, "etp2", "02:00:00:00:00:01", ""},
		{"n1", elsewhere, "r01-mgmt-1.dc1.example:Ethernet8:Vlan20", "", ""},
		{"n1", elsewhere, "swp2", "r02/mgmt-1", ""},
		{"n1", relay, "Ethernet16", "", "asks at port 3 of switch r01/mgmt-1, as relay agent 10.0.9.1 says by option 82, and its cable ends at port 2 of switch r01/mgmt-1 by the files: the cable of n2/mgmt/0 does there"},
		{"n1", elsewhere, "r02-mgmt-1 swp7", "", "asks at port 7 of switch r02/mgmt-1"},
		{"n2", relay, "Ethernet64", "", "asks at port 9 of switch r01/mgmt-1"},
		{"n1", relay, "Vlan20", "", ""},
		{"n1", relay, "\x00\x04\x00\x14\x01\x03", "", ""},
		{"n1", elsewhere, "Ethernet16", "", ""},
		{"n1", elsewhere, "mgmt-1:Ethernet16", "", ""},
		{"n3", relay, "Ethernet16", "", ""},
		{"n1", relay, "", "", ""},
	} {
		got := s.wrong(netboot.Client{Node: tt.node}, dhcp.Asked{Relay: tt.relay, Circuit: []byte(tt.circuit), Remote: []byte(tt.remote)})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	if got := s.wrong(netboot.Client{Node: "n1", Kind: netboot.BMC}, dhcp.Asked{Relay: relay, Circuit: []byte("Ethernet16")}); got != "" {
		t.Errorf("a BMC: %s", got)
	}
}
