// SPDX-License-Identifier: Apache-2.0

package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// vlanInterface is a VLAN interface of this controller, or a bridge over such.
type vlanInterface struct {
	name      string
	ids       []int // of a bridge all that its ports have
	addresses []netip.Addr
}

// hasVLANs reports whether a network of the site has a VLAN. Of a site without, nothing is asked of
// the kernel.
func hasVLANs(inv *inventory.Inventory) bool {
	return slices.ContainsFunc(inv.Networks, func(n *inventory.Network) bool { return n.VLAN != 0 })
}

// vlans are its VLANs in words.
func (v vlanInterface) vlans() string {
	if len(v.ids) == 1 {
		return fmt.Sprintf("VLAN %d", v.ids[0])
	}
	return "VLANs " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v.ids)), ", "), "[]")
}

// checkVLANs refuses a controller whose VLAN interface with an address of a network has another
// VLAN than the network has by the files. An interface that is none is at a port that is an untagged
// member, of a VLAN that only its switch knows.
func checkVLANs(inv *inventory.Inventory, have []vlanInterface) error {
	for _, n := range inv.Networks {
		for _, v := range have {
			for _, a := range v.addresses {
				if n.VLAN == 0 || slices.Contains(v.ids, n.VLAN) || !n.CIDR.Contains(a) && !n.CIDR6.Contains(a) {
					continue
				}
				return errkind.New(errkind.Mismatch, "network %s has vlan = %d, and this controller has its address %s on %s, which has %s", n.Name, n.VLAN, a, v.name, v.vlans()).
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
		v := vlanInterface{name: l.Attrs().Name, ids: vlansOf(l, links)}
		if len(v.ids) == 0 {
			continue
		}
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

// vlansOf are the VLANs whose frames an interface sends tagged: that of a VLAN interface, and those of the
// ports of a bridge; none where that is not known, as of a bridge that has a NIC, a bond or a bridge among its ports,
// whose switch may give any VLAN untagged. Ports of virtual machines and containers lead to no switch.
func vlansOf(l netlink.Link, links []netlink.Link) (ids []int) {
	switch l := l.(type) {
	case *netlink.Vlan:
		return []int{l.VlanId}
	case *netlink.Bridge:
		if l.VlanFiltering != nil && *l.VlanFiltering {
			return nil // its own table says what is tagged
		}
		for _, port := range links {
			if port.Attrs().MasterIndex != l.Attrs().Index {
				continue
			}
			switch port := port.(type) {
			case *netlink.Vlan:
				ids = append(ids, port.VlanId)
			case *netlink.Veth, *netlink.Tuntap, *netlink.Dummy:
			default:
				return nil
			}
		}
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}
