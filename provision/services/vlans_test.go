// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"strings"
	"testing"

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
		err := checkVLANs(inv, []vlanInterface{{"eth0.x", c.id, []netip.Addr{netip.MustParseAddr(c.address)}}})
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || errkind.Of(err) != errkind.Mismatch || errkind.Action(err) == "" || !strings.Contains(err.Error(), c.want) || c.want == "" {
			t.Errorf("%d, %s: %v, want %q", c.id, c.address, err, c.want)
		}
	}
	if plain := (&inventory.Inventory{Networks: inv.Networks[2:]}); hasVLANs(plain) || !hasVLANs(inv) {
		t.Error("the kernel is asked for a site without VLANs, or not for one with them")
	}
	if _, err := vlanInterfaces(); err != nil {
		t.Error(err)
	}
}
