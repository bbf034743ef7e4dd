// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"net/netip"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
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

// ListClients lists the nodes that may netboot, as the boot services know them, and
// the kernel's console argument of each. A chassis that moved to another node is
// that node's only, whatever the site's files still say of where it was.
func ListClients(inv *inventory.Inventory, moved map[addr.MAC]string) (cs []netboot.Client, console map[string]string) {
	console = map[string]string{}
	for _, n := range inv.Nodes {
		if to, ok := moved[n.BootMAC]; ok && to != n.Name {
			continue
		}
		if n.BootMAC.IsZero() || !n.Address.IsValid() || n.BootNetwork == nil || n.Hardware == nil {
			continue
		}
		cs = append(cs, newClient(inv, n))
		if c := n.Hardware.Console; c.Port != "" {
			console[n.Name] = install.ConsoleArg(c)
		}
	}
	return cs, console
}

func newClient(inv *inventory.Inventory, n *inventory.Node) netboot.Client {
	return netboot.Client{Node: n.Name, MACs: []addr.MAC{n.BootMAC}, UUID: n.UUID,
		Address: netip.PrefixFrom(n.Address, n.BootNetwork.CIDR.Bits()), Gateway: n.BootNetwork.Gateway, DNS: n.BootNetwork.DNS,
		Domain: inv.Site.Domain, Hostname: n.Name, Firmware: netboot.Firmware(n.Hardware.Boot), ForceUndionly: n.Hardware.Loader == "undionly.kpxe"}
}

// LoadBoots makes the memory of boot attempts from what the state records of the nodes.
// moved is as for ListClients, tokens of boot attempts are derived from key.
func LoadBoots(ctx context.Context, r state.Reader, inv *inventory.Inventory, moved map[addr.MAC]string, key []byte) (*install.Boots, error) {
	facts, err := state.ReadFactsNamed(ctx, r, string(install.AttemptFact))
	if err != nil {
		return nil, err
	}
	cs, console := ListClients(inv, moved)
	boots := install.NewBoots(key, cs, console)
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
