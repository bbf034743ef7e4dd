// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// vlansOf are the VLAN interfaces of a node as the files say.
func vlansOf(n *inventory.Node) (list []wire.NetworkVLAN) {
	all := n.Tagged
	boot, tagged := n.BootVLAN()
	if tagged {
		all = append([]inventory.TaggedNetwork{boot}, all...)
	}
	for i, t := range all {
		v := wire.NetworkVLAN{Name: t.Interface(), ID: t.Network.VLAN, Over: t.Over, Addresses: []netip.Prefix{netip.PrefixFrom(t.Address, t.Network.CIDR.Bits())}, Boot: tagged && i == 0}
		if t.Address6.IsValid() && !v.Boot { // that of the boot network is of NetworkParams
			v.Addresses = append(v.Addresses, netip.PrefixFrom(t.Address6, t.Network.CIDR6.Bits()))
		}
		if v.Over == "" {
			v.MAC = n.BootMAC
		}
		list = append(list, v)
	}
	return withMTUs(n, list)
}

// withMTUs are VLAN interfaces with the MTUs that the files give their networks now; that of one
// whose network is no longer the node's stays.
func withMTUs(n *inventory.Node, vlans []wire.NetworkVLAN) []wire.NetworkVLAN {
	vlans = slices.Clone(vlans)
	for i := range vlans {
		v := &vlans[i]
		if v.Boot && n.BootNetwork != nil {
			v.MTU = cmp.Or(n.BootNetwork.MTU, usualMTU)
			continue
		}
		at := slices.IndexFunc(n.Tagged, func(t inventory.TaggedNetwork) bool { return t.Network.VLAN == v.ID })
		if at >= 0 {
			v.MTU = cmp.Or(n.Tagged[at].Network.MTU, usualMTU)
		}
	}
	return vlans
}
