// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
)

// linked is a fabric of point-to-point links: two nodes with two rails, a leaf for
// each rail, one spine.
func linked() *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: Name, Name: "storage", Decl: line(10), Ranges: map[string]hcl.Range{"cidr": line(14), "addressing": line(13)}},
		Rails: 2, Topology: "rail-optimized", Addressing: pointToPoint, CIDR: netip.MustParsePrefix("10.200.0.0/22"), MTU: 9000}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{{Name: "s", Fabric: f, Decl: line(20),
		Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:00:04.0"}, {Rail: 1, PCI: "0000:00:05.0"}}}}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}, Lock: &lock.Lock{}}
	spine := &inventory.Switch{Name: "storage/spine-1", Fabric: f, Tier: inventory.Spine}
	for r := range 2 {
		leaf := &inventory.Switch{Name: fmt.Sprintf("storage/leaf-%d", r), Fabric: f, Tier: inventory.Leaf, Rail: r}
		inv.Switches = append(inv.Switches, leaf)
		inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, Rail: -1, From: inventory.CableEnd{Switch: leaf, Port: 33}, To: inventory.CableEnd{Switch: spine, Port: r + 1}})
	}
	inv.Switches = append(inv.Switches, spine)
	for i, name := range []string{"n1", "n2"} {
		n := node(name, fmt.Sprintf("10.0.0.%d", i+1), "10.0.0.0/24")
		n.Hardware = hw
		inv.Nodes = append(inv.Nodes, n)
		for r := range 2 {
			inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, Rail: r, From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0], Port: r}, To: inventory.CableEnd{Switch: inv.Switches[r], Port: i + 1}})
		}
	}
	return inv
}

func TestLinksOfAFabric(t *testing.T) {
	t.Parallel()
	inv := linked()
	all := Addresses(inv)
	if len(all) != 1 {
		t.Fatalf("%d fabrics", len(all))
	}
	l := all[0]
	var got []string
	for i, k := range l.Links {
		lower, upper := l.Link(i)
		got = append(got, fmt.Sprintf("%s %s -> %s %s", k.Lower(), lower, k.Upper(), upper))
	}
	for i, s := range l.Switches {
		got = append(got, fmt.Sprintf("%s %s", s.Name, l.Loopback(i)))
	}
	slices.Sort(got)
	want := []string{
		"n1/s/0 10.200.0.1/31 -> storage/leaf-0/1 10.200.0.0/31",
		"n1/s/1 10.200.1.1/31 -> storage/leaf-1/1 10.200.1.0/31",
		"n2/s/0 10.200.0.3/31 -> storage/leaf-0/2 10.200.0.2/31",
		"n2/s/1 10.200.1.3/31 -> storage/leaf-1/2 10.200.1.2/31",
		"storage/leaf-0 10.200.3.192/32",
		"storage/leaf-0/33 10.200.2.1/31 -> storage/spine-1/1 10.200.2.0/31",
		"storage/leaf-1 10.200.3.193/32",
		"storage/leaf-1/33 10.200.2.3/31 -> storage/spine-1/2 10.200.2.2/31",
		"storage/spine-1 10.200.3.194/32",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if a, leaf, ok := l.Port(inv.Nodes[1], &inv.Nodes[1].Hardware.NICs[0], 1); !ok || a.String() != "10.200.1.3/31" || leaf.String() != "10.200.1.2" {
		t.Errorf("port: %v %v %v", a, leaf, ok)
	}
	if found := CheckLinks(inv, all); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestNodesOfPointToPoint: a node is told its address and, as gateway, its leaf's.
func TestNodesOfPointToPoint(t *testing.T) {
	t.Parallel()
	inv := linked()
	k := New(nil, Addresses(inv)...)
	if d := k.Check(inv.Fabrics[0], inv.Nodes); len(d) > 0 {
		t.Fatal(d)
	}
	got := k.params(inv.Fabrics[0], inv.Nodes[1])
	if len(got.Ports) != 2 || got.Ports[1].Address != "10.200.1.3/31" || got.Ports[1].Gateway != "10.200.1.2" || got.Ports[1].Table != 101 {
		t.Errorf("%+v", got)
	}
	in := k.Inputs(inv.Fabrics[0], inv.Nodes[0])
	if len(in) != 3 || in[1].Value != "0000:00:04.0 10.200.0.1/31 via 10.200.0.0" {
		t.Errorf("%+v", in)
	}
}

// TestSplitPortsAreRefused: each half has an address, and a node is told one.
func TestSplitPortsAreRefused(t *testing.T) {
	t.Parallel()
	inv := linked()
	half := *inv.Cables[2]
	inv.Cables[2].From.Lane, half.From.Lane, half.To.Port = 1, 2, 9
	inv.Cables = append(inv.Cables, &half)
	links := Addresses(inv)
	if got := owners(inv); !slices.Contains(got, "n1/s/0/1") || !slices.Contains(got, "n1/s/0/2") {
		t.Errorf("%v", got)
	}
	d := New(nil, links...).Check(inv.Fabrics[0], inv.Nodes)
	if len(d) != 1 || d[0].Summary != "Split port is not supported" {
		t.Errorf("%v", d)
	}
	inv.Nodes[0].Hardware.NICs[0].Ports[0].PCI = ""
	if d = New(nil, links...).Check(inv.Fabrics[0], inv.Nodes); len(d) < 2 {
		t.Errorf("%v: a mistake beside it is one to fix", d)
	}
	if found := CheckLinks(inv, links); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestCableBlocksSayNoDirection: of a given cable the node, or the lower tier, is
// the lower end, however it is written.
func TestCableBlocksSayNoDirection(t *testing.T) {
	t.Parallel()
	inv := linked()
	want := owners(inv)
	for _, c := range inv.Cables {
		c.Fabric = nil
		c.From, c.To = c.To, c.From
	}
	if got := owners(inv); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func owners(inv *inventory.Inventory) (names []string) {
	for _, w := range Addresses(inv)[0].Wants {
		names = append(names, w.Owner)
	}
	slices.Sort(names)
	return names
}

func TestPools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cidr                       string
		rails                      int
		last, switches, most, loop string
	}{
		{"10.200.0.0/14", 8, "10.201.192.0/18", "10.202.0.0/15", "57344", "10.203.192.0/18"},
		{"10.200.0.0/14", 2, "10.201.0.0/16", "10.202.0.0/15", "57344", "10.203.192.0/18"},
		{"10.0.0.0/16", 1, "10.0.0.0/17", "10.0.128.0/17", "14336", "10.0.240.0/20"},
		{"10.0.0.0/16", 3, "10.0.128.0/18", "10.0.192.0/18", "7168", "10.0.248.0/21"},
		{"10.0.0.0/16", 5, "10.0.128.0/19", "10.0.192.0/18", "7168", "10.0.248.0/21"},
		{"fd00::/48", 8, "fd00:0:0:7000::/52", "fd00:0:0:8000::/49", "3848290697216", "fd00:0:0:f000::/52"},
		{"10.0.0.0/30", 8, "", "", "", ""},
	} {
		f := &inventory.Fabric{Rails: c.rails, CIDR: netip.MustParsePrefix(c.cidr)}
		list := cutPools(f, f.CIDR.Bits())
		if list == nil || c.last == "" {
			if list != nil || c.last != "" {
				t.Errorf("%s for %d rails: %v", c.cidr, c.rails, list)
			}
			continue
		}
		got := []string{list[c.rails-1].Prefix.String(), list[c.rails].Prefix.String(), fmt.Sprint(list[c.rails].Most), list[c.rails+1].Prefix.String()}
		if want := []string{c.last, c.switches, c.most, c.loop}; !slices.Equal(got, want) {
			t.Errorf("%s for %d rails: %v, want %v", c.cidr, c.rails, got, want)
		}
		for i, p := range list[:c.rails+1] {
			for _, q := range list[:i] {
				if p.Prefix.Overlaps(q.Prefix) || !f.CIDR.Contains(p.Prefix.Addr()) {
					t.Errorf("%s for %d rails: %s and %s", c.cidr, c.rails, p.Prefix, q.Prefix)
				}
			}
		}
	}
}

func TestCheckLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fix   func(*inventory.Inventory)
		check string
		says  string
		line  int
	}{
		{"no CIDR", func(i *inventory.Inventory) { i.Fabrics[0].CIDR = netip.Prefix{} }, "roce.cidr", "no cidr to take", 13},
		{"subnets of no CIDR", func(i *inventory.Inventory) {
			i.Fabrics[0].CIDR, i.Fabrics[0].Addressing = netip.Prefix{}, "subnet"
		}, "roce.cidr", `"subnet" and no cidr to take`, 13},
		{"nothing to cut", func(i *inventory.Inventory) { i.Fabrics[0].CIDR = netip.MustParsePrefix("10.0.0.0/30") }, "roce.cidr", "one for links between switches. A CIDR of /26 has room for all.", 14},
		{"too small", func(i *inventory.Inventory) { i.Fabrics[0].CIDR = netip.MustParsePrefix("10.0.0.0/28") }, "roce.cidr", "A CIDR of /26 has room for all.", 14},
		{"no cable", func(i *inventory.Inventory) { i.Cables = i.Cables[:3] }, "roce.link", "n1/s/1, n2/s/0, n2/s/1 of fabric", 20},
	} {
		inv := linked()
		c.fix(inv)
		found := CheckLinks(inv, Addresses(inv))
		if len(found) != 1 || found[0].Check != c.check || !strings.Contains(found[0].Detail, c.says) || found[0].Subject.Start.Line != c.line {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// TestAllowedPortsAreFoundApart: an override of one node does not lower what is
// found about others.
func TestAllowedPortsAreFoundApart(t *testing.T) {
	t.Parallel()
	inv := linked()
	inv.Cables = inv.Cables[:3]
	inv.Nodes[0].Override = &inventory.Override{Node: "n1", Allow: []string{"roce.link"}}
	found := CheckLinks(inv, Addresses(inv))
	if len(found) != 2 || !slices.Equal(found[0].About, []string{"n2"}) || !slices.Equal(found[1].About, []string{"n1"}) {
		t.Errorf("%+v", found)
	}
}
