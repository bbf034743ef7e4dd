// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
)

// TestAnsweredNetworks: the networks of a site as the DHCP service has them, and the BMCs
// that it gives addresses to; nothing that is somebody's is in a pool.
func TestAnsweredNetworks(t *testing.T) {
	t.Parallel()
	network := func(name, cidr, gateway string, mode inventory.DHCPMode) *inventory.Network {
		n := &inventory.Network{Name: name, CIDR: netip.MustParsePrefix(cidr), DHCP: inventory.DHCP{Mode: mode}}
		if gateway != "" {
			n.Gateway = netip.MustParseAddr(gateway)
		}
		return n
	}
	boot := network("boot", "10.0.0.0/24", "", inventory.DHCPProxy)
	oob := network("oob", "10.0.1.0/24", "10.0.1.1", inventory.DHCPAuthoritative)
	far := network("far", "10.0.2.0/24", "", inventory.DHCPAuthoritative)
	off := network("off", "10.0.3.0/24", "10.0.3.1", inventory.DHCPOff)
	for _, n := range []*inventory.Network{boot, oob} {
		n.DHCP.Pool = inventory.Pool{First: n.CIDR.Addr().Next(), Last: netip.MustParseAddr("10.0.1.40")}
	}
	c := &inventory.Controller{Address: netip.MustParseAddr("10.0.0.2")}
	node := func(name string, n *inventory.Network, last byte) *inventory.Node {
		return &inventory.Node{Name: name, BMC: inventory.BMCTarget{Network: n, MAC: addr.MAC{2, 0, 0, 0, 1, last}, Address: netip.AddrFrom4([4]byte{10, 0, n.CIDR.Addr().As4()[2], last})}}
	}
	inv := &inventory.Inventory{Networks: []*inventory.Network{boot, oob, far, off}, Controllers: []*inventory.Controller{c},
		Nodes: []*inventory.Node{node("n1", oob, 30), node("n2", boot, 31), node("n3", far, 32), node("n4", off, 33)}}
	clients, _ := ListClients(inv, nil)
	if len(clients) != 1 || clients[0].Kind != netboot.BMC || clients[0].Node != "n1" || clients[0].Address.String() != "10.0.1.30/24" || clients[0].Gateway != oob.Gateway {
		t.Errorf("clients %+v", clients)
	}
	list := answeredNetworks(inv, c, boot, install.NewBoots(nil, clients, nil))
	if len(list) != 2 || !list[0].Local || !list[0].Proxy || list[0].Pool != nil || list[1].Local || list[1].Proxy || list[1].Pool == nil || list[1].Relays[0] != oob.Gateway {
		t.Fatalf("networks %+v", list)
	}
	for i := range 39 {
		a, _, err := list[1].Pool.Offer(addr.MAC{2, 1, 1, 1, 1, byte(i)}, "port", netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + i)}), time.Now())
		if err != nil || a == oob.Gateway || a.String() == "10.0.1.30" {
			t.Errorf("offered %s, %v", a, err)
		}
	}
}
