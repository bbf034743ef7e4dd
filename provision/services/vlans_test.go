// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// TestCheckVLANs: another VLAN than the network's is refused, whichever network it is; who has no
// VLAN interface on a network, or a network without vlan, is not judged.
func TestCheckVLANs(t *testing.T) {
	t.Parallel()
	inv := &inventory.Inventory{Networks: []*inventory.Network{
		{Name: "boot", CIDR: netip.MustParsePrefix("10.30.0.0/20"), CIDR6: netip.MustParsePrefix("fd30::/64"), VLAN: 30},
		{Name: "oob", CIDR: netip.MustParsePrefix("10.40.0.0/20"), VLAN: 40},
		{Name: "plain", CIDR: netip.MustParsePrefix("10.50.0.0/20")},
	}}
	for _, c := range []struct {
		id            int
		address, want string
	}{
		{30, "10.30.0.2", ""}, {31, "10.30.0.2", "network boot has vlan = 30, and this controller has its address 10.30.0.2 on eth0.x, which has VLAN 31"},
		{30, "10.40.0.2", "network oob has vlan = 40"}, {31, "fd30::2", "network boot has vlan = 30"}, {31, "10.50.0.2", ""}, {31, "192.0.2.1", ""},
	} {
		err := checkVLANs(inv, []vlanInterface{{"eth0.x", []int{c.id}, []netip.Addr{netip.MustParseAddr(c.address)}}})
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || errkind.Of(err) != errkind.Mismatch || errkind.Action(err) == "" || !strings.Contains(err.Error(), c.want) || c.want == "" {
			t.Errorf("%d, %s: %v, want %q", c.id, c.address, err, c.want)
		}
	}
	bridge := vlanInterface{"br0", []int{31, 32}, []netip.Addr{netip.MustParseAddr("10.30.0.2")}}
	if err := checkVLANs(inv, []vlanInterface{bridge}); err == nil || !strings.Contains(err.Error(), "on br0, which has VLANs 31, 32") {
		t.Error(err)
	}
	if plain := (&inventory.Inventory{Networks: inv.Networks[2:]}); hasVLANs(plain) || !hasVLANs(inv) {
		t.Error("the kernel is asked for a site without VLANs, or not for one with them")
	}
	if _, err := vlanInterfaces(); err != nil {
		t.Error(err)
	}
}

// TestVLANsOfBridges: a bridge has the VLANs of its ports, where all that leave this machine have one.
func TestVLANsOfBridges(t *testing.T) {
	t.Parallel()
	attrs := func(name string, index, master int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Name: name, Index: index, MasterIndex: master}
	}
	yes, no := true, false
	bridge := &netlink.Bridge{LinkAttrs: attrs("br0", 1, 0), VlanFiltering: &no}
	tagged, other := &netlink.Vlan{LinkAttrs: attrs("eth0.30", 2, 1), VlanId: 30}, &netlink.Vlan{LinkAttrs: attrs("eth0.31", 3, 1), VlanId: 31}
	vm, nic := &netlink.Tuntap{LinkAttrs: attrs("tap0", 4, 1)}, &netlink.Device{LinkAttrs: attrs("eth1", 5, 1)}
	elsewhere := &netlink.Vlan{LinkAttrs: attrs("eth0.40", 6, 7), VlanId: 40}
	for name, c := range map[string]struct {
		of    netlink.Link
		links []netlink.Link
		want  string
	}{
		"a VLAN interface":      {tagged, nil, "[30]"},
		"a NIC":                 {nic, nil, "[]"},
		"a bridge over one":     {bridge, []netlink.Link{bridge, tagged, vm, elsewhere}, "[30]"},
		"over two":              {bridge, []netlink.Link{other, tagged}, "[30 31]"},
		"over a NIC too":        {bridge, []netlink.Link{tagged, nic}, "[]"},
		"over virtual machines": {bridge, []netlink.Link{vm}, "[]"},
		"with a table":          {&netlink.Bridge{LinkAttrs: attrs("br0", 1, 0), VlanFiltering: &yes}, []netlink.Link{tagged}, "[]"},
	} {
		if got := fmt.Sprint(vlansOf(c.of, c.links)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
