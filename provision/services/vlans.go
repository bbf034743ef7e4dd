// SPDX-License-Identifier: Apache-2.0

package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// vlanInterface is a VLAN interface of this controller.
type vlanInterface struct {
	name      string
	id        int
	addresses []netip.Addr
}

// hasVLANs reports whether a network of the site has a VLAN. Of a site without, nothing is asked of
// the kernel.
func hasVLANs(inv *inventory.Inventory) bool {
	return slices.ContainsFunc(inv.Networks, func(n *inventory.Network) bool { return n.VLAN != 0 })
}

// checkVLANs refuses a controller whose VLAN interface with an address of a network has another
// VLAN than the network has by the files. An interface that is none is at a port that is an untagged
// member, of a VLAN that only its switch knows.
func checkVLANs(inv *inventory.Inventory, have []vlanInterface) error {
	for _, n := range inv.Networks {
		for _, v := range have {
			for _, a := range v.addresses {
				if n.VLAN == 0 || v.id == n.VLAN || !n.CIDR.Contains(a) && !n.CIDR6.Contains(a) {
					continue
				}
				return errkind.New(errkind.Mismatch, "network %s has vlan = %d, and this controller has its address %s on %s, which has VLAN %d", n.Name, n.VLAN, a, v.name, v.id).
					Do("Correct vlan of the network, or the interface of this controller (`ip -d link show " + v.name + "`).")
			}
		}
	}
	return nil
}

// vlanInterfaces are those that the kernel has. Interfaces that come and go meanwhile, as those of
// containers do, are in the list or not.
func vlanInterfaces() (list []vlanInterface, err error) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("interfaces of this controller: %w", err)
	}
	for _, l := range links {
		vlan, is := l.(*netlink.Vlan)
		if !is {
			continue
		}
		v := vlanInterface{name: vlan.Name, id: vlan.VlanId}
		addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("addresses of %s: %w", v.name, err)
		}
		for _, a := range addresses {
			if ip, ok := netip.AddrFromSlice(a.IP); ok {
				v.addresses = append(v.addresses, ip.Unmap())
			}
		}
		list = append(list, v)
	}
	return list, nil
}
