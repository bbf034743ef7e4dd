// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

func node(name, address, network string) *inventory.Node {
	return &inventory.Node{Name: name, Address: netip.MustParseAddr(address),
		BootNetwork: &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix(network)}}
}

func TestRailAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cidr     string
		rails          int
		address, boot  string
		rail           int
		want, wantFail string
	}{
		{"lab", "10.77.16.0/24", 1, "10.77.0.11", "10.77.0.0/24", 0, "10.77.16.11/24", ""},
		{"rail 0 of 8", "10.200.0.0/16", 8, "10.0.1.7", "10.0.0.0/20", 0, "10.200.1.7/19", ""},
		{"rail 7 of 8", "10.200.0.0/16", 8, "10.0.1.7", "10.0.0.0/20", 7, "10.200.225.7/19", ""},
		{"5 rails are cut as 8", "10.200.0.0/16", 5, "10.0.0.1", "10.0.0.0/20", 4, "10.200.128.1/19", ""},
		{"IPv6 rails", "fd00:77::/56", 8, "10.0.1.7", "10.0.0.0/20", 3, "fd00:77:0:60::107/59", ""},
		{"too many nodes for the rail", "10.200.0.0/24", 8, "10.0.0.40", "10.0.0.0/20", 2, "", "has no address of that number"},
		{"broadcast", "10.200.0.0/24", 1, "10.0.0.255", "10.0.0.0/16", 0, "", "has no address of that number"},
		{"network itself", "10.200.0.0/24", 1, "10.0.0.0", "10.0.0.0/16", 0, "", "has no address of that number"},
		{"rail out of range", "10.200.0.0/16", 8, "10.0.0.1", "10.0.0.0/20", 8, "", "not among the 8 rails"},
		{"no room for rails", "10.200.0.0/30", 8, "10.0.0.1", "10.0.0.0/20", 1, "", "too small for 8 rails"},
		{"outside its network", "10.200.0.0/16", 1, "10.9.0.1", "10.0.0.0/20", 0, "", "is not in network"},
		{"huge IPv6 position", "10.200.0.0/16", 1, "fd00::ffff:0:0:1", "fd00::/32", 0, "", "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &inventory.Fabric{Rails: c.rails, CIDR: netip.MustParsePrefix(c.cidr)}
			got, err := railAddress(f, node("n1", c.address, c.boot), c.rail)
			if c.wantFail != "" {
				if err == nil || !contains(err.Error(), c.wantFail) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || got.String() != c.want {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestRailSubnetsAreApart: no two rails overlap and all lie in the CIDR.
func TestRailSubnetsAreApart(t *testing.T) {
	t.Parallel()
	for _, cidr := range []string{"10.200.0.0/16", "192.168.4.0/22", "fd00:1:2::/48", "2001:db8::/61"} {
		for rails := 1; rails <= 9; rails++ {
			f := &inventory.Fabric{Rails: rails, CIDR: netip.MustParsePrefix(cidr)}
			var all []netip.Prefix
			for r := range rails {
				p, err := railSubnet(f, r)
				if err != nil {
					t.Fatalf("%s rail %d of %d: %v", cidr, r, rails, err)
				}
				if !f.CIDR.Contains(p.Addr()) || p != p.Masked() {
					t.Errorf("%s rail %d of %d: %s", cidr, r, rails, p)
				}
				for _, q := range all {
					if p.Overlaps(q) {
						t.Errorf("%s: %s overlaps %s", cidr, p, q)
					}
				}
				all = append(all, p)
			}
		}
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a     string
		n     uint64
		shift int
		want  string
	}{
		{"10.0.0.255", 1, 0, "10.0.1.0"},
		{"10.0.0.0", 3, 13, "10.0.96.0"},
		{"255.255.255.255", 1, 0, ""},
		{"10.0.0.0", 1 << 32, 0, ""},
		{"10.0.0.0", 1, 32, ""},
		{"10.0.0.0", 0, 32, "10.0.0.0"},
		{"fd00::", 1 << 40, 0, "fd00::100:0:0"},
		{"fd00::", 5, 70, "fd00:0:0:140::"},
		{"ffff:ffff:ffff:ffff::", 1, 64, ""},
	} {
		got, ok := addHost(netip.MustParseAddr(c.a), c.n, c.shift)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s + %d<<%d: got %s %v, want %s", c.a, c.n, c.shift, got, ok, c.want)
		}
	}
}
