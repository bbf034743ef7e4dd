// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"net/netip"
	"slices"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// findBootNetwork returns the one network that this controller serves boot clients on:
// the one that holds its address.
func findBootNetwork(inv *inventory.Inventory, c *inventory.Controller) (*inventory.Network, bool) {
	for _, n := range inv.Networks {
		if n.CIDR.Contains(c.Address) && n.DHCP.Mode != inventory.DHCPOff {
			return n, true
		}
	}
	return nil, false
}

// IsAnswered reports whether clients on a network with a dhcp block can be answered: the
// controller is on it, or a relay agent passes their requests on.
func IsAnswered(inv *inventory.Inventory, n *inventory.Network) bool {
	return n.DHCP.Mode != inventory.DHCPOff && n.CIDR.Addr().Is4() && (len(relaysOf(n)) > 0 ||
		slices.ContainsFunc(inv.Controllers, func(c *inventory.Controller) bool { return n.CIDR.Contains(c.Address) }))
}

// relaysOf are the relay agents that speak for the clients of a network.
func relaysOf(n *inventory.Network) []netip.Addr {
	relays := slices.Clone(n.DHCP.Relays)
	if n.Gateway.Is4() {
		relays = append(relays, n.Gateway)
	}
	return relays
}

// answeredNetworks are the networks that clients ask from. Addresses that are somebody's
// are in no pool.
func answeredNetworks(inv *inventory.Inventory, c *inventory.Controller, served *inventory.Network, src netboot.Source) (list []dhcp.Network) {
	for _, n := range inv.Networks {
		if !IsAnswered(inv, n) {
			continue
		}
		x := dhcp.Network{Name: n.Name, Prefix: n.CIDR, Relays: relaysOf(n), Local: n == served, Proxy: n.DHCP.Mode == inventory.DHCPProxy, Gateway: n.Gateway, DNS: n.DNS, Domain: inv.Site.Domain}
		if p := n.DHCP.Pool; p.First.Is4() && !x.Proxy {
			x.Pool = dhcp.NewPool(p.First, p.Last, func(a netip.Addr) bool {
				_, known := src.ByAddress(a)
				return known || a == c.Address || slices.Contains(x.Relays, a)
			})
		}
		list = append(list, x)
	}
	return list
}

// ListClients lists the nodes that may netboot, as the boot services know them, BMCs that
// have their addresses of us, and the kernel's console argument of each node. A chassis that moved to another node is
// that node's only, whatever the site's files still say of where it was.
func ListClients(inv *inventory.Inventory, moved map[addr.MAC]string) (cs []netboot.Client, kernel map[string][]string) {
	kernel = map[string][]string{}
	for _, n := range inv.Nodes {
		if to, ok := moved[n.BootMAC]; ok && to != n.Name {
			continue
		}
		if b := n.BMC; b.Network != nil && b.Network.DHCP.Mode == inventory.DHCPAuthoritative && IsAnswered(inv, b.Network) && !b.MAC.IsZero() && b.Network.CIDR.Contains(b.Address) {
			cs = append(cs, netboot.Client{Node: n.Name, Kind: netboot.BMC, MACs: []addr.MAC{b.MAC}, Address: netip.PrefixFrom(b.Address, b.Network.CIDR.Bits()), Gateway: b.Network.Gateway, DNS: b.Network.DNS, Domain: inv.Site.Domain, Hostname: n.Name + "-bmc"})
		}
		if n.BootMAC.IsZero() || !n.Address.IsValid() || n.BootNetwork == nil || n.Hardware == nil {
			continue
		}
		cs = append(cs, newClient(inv, n))
		kernel[n.Name] = install.RamdiskArgs(n)
	}
	return cs, kernel
}

func newClient(inv *inventory.Inventory, n *inventory.Node) netboot.Client {
	return netboot.Client{Node: n.Name, MACs: []addr.MAC{n.BootMAC}, UUID: n.UUID,
		Address: netip.PrefixFrom(n.Address, n.BootNetwork.CIDR.Bits()), VLAN: n.BootNetwork.VLAN, Gateway: n.BootNetwork.Gateway, DNS: n.BootNetwork.DNS,
		Domain: inv.Site.Domain, Hostname: n.Name, Firmware: netboot.Firmware(n.Hardware.Boot), ForceUndionly: n.Hardware.Loader == "undionly.kpxe", SecureBoot: n.Hardware.SecureBoot, Signed: install.SignedFor(inv, n), MOK: install.EnrolsMOK(n)}
}

// LoadBoots makes the memory of boot attempts from what the state records of the nodes.
// moved is as for ListClients, tokens of boot attempts are derived from key.
func LoadBoots(ctx context.Context, r state.Reader, inv *inventory.Inventory, moved map[addr.MAC]string, key []byte) (*install.Boots, error) {
	facts, err := state.ReadFactsNamed(ctx, r, string(install.AttemptFact))
	if err != nil {
		return nil, err
	}
	cs, kernel := ListClients(inv, moved)
	boots := install.NewBoots(key, cs, kernel)
	for _, n := range inv.Nodes {
		f, ok := facts[install.AttemptFact.Of(subject.OfNode(n.Name))]
		if !ok {
			continue
		}
		at, err := install.AttemptFact.Get(f)
		if err != nil {
			return nil, err
		}
		boots.Set(at)
	}
	return boots, nil
}
