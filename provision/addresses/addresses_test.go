// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// site has an address of every kind: networks of /20, /26 and IPv6, a fabric with
// a subnet for each rail and one of links.
func site() *inventory.Inventory {
	boot := &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.20.0.0/20"), CIDR6: netip.MustParsePrefix("fd20::/64"), Gateway6: netip.MustParseAddr("fd20::1")}
	oob := &inventory.Network{Name: "oob", CIDR: netip.MustParsePrefix("192.0.2.64/26"), Gateway: netip.MustParseAddr("192.0.2.65")}
	ai := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "ai"}, Rails: 2, Addressing: "subnet", CIDR: netip.MustParsePrefix("10.30.0.0/16")}
	links := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "links"}, Rails: 1, Addressing: "point-to-point", CIDR: netip.MustParsePrefix("fd30::/116")}
	hw := &inventory.Hardware{NICs: []inventory.NIC{
		{Name: "g", Fabric: ai, Ports: []inventory.NICPort{{Rail: 0}, {Rail: 1}}},
		{Name: "s", Fabric: links, Ports: []inventory.NICPort{{Rail: 0}}},
	}}
	inv := &inventory.Inventory{
		Site: inventory.Site{Domain: "dc1.example"}, Networks: []*inventory.Network{boot, oob}, Fabrics: []*inventory.Fabric{ai, links},
		Controllers: []*inventory.Controller{{Name: "head1", Address: netip.MustParseAddr("10.20.0.2")}},
	}
	rack := &inventory.Rack{Name: "R_1", PDUs: []*inventory.PDU{{Name: "R_1/a", Control: &inventory.PDUControl{Address: netip.MustParseAddr("192.0.2.66")}}, {Name: "R_1/b"}},
		Shelves: []*inventory.Shelf{{Name: "R_1/ps1", Control: &inventory.ShelfControl{Address: netip.MustParseAddr("192.0.2.67")}}, {Name: "R_1/ps2"}}}
	leaf := &inventory.Switch{Name: "R_1/leaf.1", Rack: rack, Fabric: links, Tier: inventory.Leaf, Address: netip.MustParseAddr("203.0.113.7")}
	inv.Racks, inv.Switches = []*inventory.Rack{rack}, []*inventory.Switch{leaf}
	for i, name := range []string{"n1", "n2"} {
		n := &inventory.Node{Name: name, Rack: rack, Hardware: hw, BootNetwork: boot, Address: netip.AddrFrom4([4]byte{10, 20, byte(i), 73}), Address6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x20, 14: byte(i), 15: 73})}
		n.BMC = inventory.BMCTarget{Network: oob, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(70 + i)})}
		inv.Nodes = append(inv.Nodes, n)
		inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: links, From: inventory.CableEnd{Node: n, NIC: &hw.NICs[1]}, To: inventory.CableEnd{Switch: leaf, Port: i + 1}})
	}
	return inv
}

func list(inv *inventory.Inventory) []Entry { return List(inv, roce.Addresses(inv)) }

func TestEveryAddressIsListed(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range list(site()) {
		got = append(got, strings.TrimSpace(strings.Join([]string{e.Network, e.Address.String(), e.Name, string(e.Kind), e.Node, e.Port}, " ")))
	}
	want := []string{
		"203.0.113.7/32 r-1-leaf-1 switch",
		"ai 10.30.0.73/17 n1-ai-r0 rail n1 n1/g/0",
		"ai 10.30.1.73/17 n2-ai-r0 rail n2 n2/g/0",
		"ai 10.30.128.73/17 n1-ai-r1 rail n1 n1/g/1",
		"ai 10.30.129.73/17 n2-ai-r1 rail n2 n2/g/1",
		"boot 10.20.0.2/20 head1 controller",
		"boot 10.20.0.73/20 n1 node n1",
		"boot 10.20.1.73/20 n2 node n2",
		"boot fd20::1/64 gw-boot gateway",
		"boot fd20::49/64 n1 node n1",
		"boot fd20::149/64 n2 node n2",
		"links fd30::/127 r-1-leaf-1-1 link  R_1/leaf.1/1",
		"links fd30::1/127 n1-links-r0 rail n1 n1/s/0",
		"links fd30::2/127 r-1-leaf-1-2 link  R_1/leaf.1/2",
		"links fd30::3/127 n2-links-r0 rail n2 n2/s/0",
		"links fd30::f00/128 r-1-leaf-1-lo loopback",
		"oob 192.0.2.65/26 gw-oob gateway",
		"oob 192.0.2.66/26 r-1-a-pdu pdu",
		"oob 192.0.2.67/26 r-1-ps1-shelf shelf",
		"oob 192.0.2.70/26 n1-bmc bmc n1",
		"oob 192.0.2.71/26 n2-bmc bmc n2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Hosts(&b, list(site())[5:7], "dc1.example"); err != nil || b.String() != "10.20.0.2\thead1.dc1.example head1\n10.20.0.73\tn1.dc1.example n1\n" {
		t.Errorf("%v\n%s", err, &b)
	}
	b.Reset()
	if err := Hosts(&b, list(site())[6:7], ""); err != nil || b.String() != "10.20.0.73\tn1\n" {
		t.Errorf("%v\n%s", err, &b)
	}
}

func TestZones(t *testing.T) {
	t.Parallel()
	inv := site()
	zones := Zones(inv, list(inv), Options{Domain: "dc1.example", NS: "head1", Serial: 2026112101})
	holds := map[string]string{
		"dc1.example":                              "n1\tIN\tAAAA\tfd20::49\n",
		"0.20.10.in-addr.arpa":                     "73\tIN\tPTR\tn1.dc1.example.\n",
		"1.20.10.in-addr.arpa":                     "73\tIN\tPTR\tn2.dc1.example.\n",
		"30.10.in-addr.arpa":                       "73.129\tIN\tPTR\tn2-ai-r1.dc1.example.\n",
		"64/26.2.0.192.in-addr.arpa":               "$GENERATE 64-127 $ IN CNAME $.64/26\n",
		"113.0.203.in-addr.arpa":                   "7\tIN\tPTR\tr-1-leaf-1.dc1.example.\n",
		"0.0.0.0.0.0.0.0.0.0.0.0.0.2.d.f.ip6.arpa": "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0\tIN\tPTR\tgw-boot.dc1.example.\n",
		"0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.3.d.f.ip6.arpa": "0.0.f\tIN\tPTR\tr-1-leaf-1-lo.dc1.example.\n",
	}
	if len(zones) != len(holds) {
		t.Errorf("%d zones, not %d", len(zones), len(holds))
	}
	for _, z := range zones {
		text, known := holds[z.Name]
		if !known || !strings.Contains(string(z.Text), text) || !strings.Contains(string(z.Text), " 2026112101 ") {
			t.Errorf("zone %s (want %q)\n%s", z.Name, text, z.Text)
		}
	}
}

// TestSerialIsOfTheRecords: the same records have the same serial number.
func TestSerialIsOfTheRecords(t *testing.T) {
	t.Parallel()
	inv := site()
	o := Options{Domain: "dc1.example.", NS: "ns.example"}
	one, two := Zones(inv, list(inv), o), Zones(inv, list(inv), o)
	if !bytes.Equal(one[0].Text, two[0].Text) || !strings.Contains(string(one[0].Text), "\tns.example. hostmaster.dc1.example. ") {
		t.Errorf("%s", one[0].Text)
	}
	inv.Nodes[0].Address = netip.MustParseAddr("10.20.0.74")
	if other := Zones(inv, list(inv), o); bytes.Equal(other[0].Text[:120], one[0].Text[:120]) {
		t.Error("another address, and the same serial number")
	}
}

// TestPeerBINDReadsTheZones: named-checkzone of BIND is the judge.
func TestPeerBINDReadsTheZones(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "named-checkzone")
	inv := site()
	dir := t.TempDir()
	for _, z := range Zones(inv, list(inv), Options{Domain: "dc1.example", NS: "head1"}) {
		path := filepath.Join(dir, "zone")
		if err := os.WriteFile(path, z.Text, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("named-checkzone", "-k", "fail", "-i", "local", z.Name, path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s%s", z.Name, err, out, z.Text)
		}
	}
	path := filepath.Join(dir, "broken")
	if err := os.WriteFile(path, []byte("@ IN SOA nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if exec.Command("named-checkzone", "dc1.example", path).Run() == nil {
		t.Error("the judge takes everything")
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"r01/leaf-1/17": "r01-leaf-1-17", "R_1/a-pdu": "r-1-a-pdu", "-x.y-": "x-y",
		strings.Repeat("n", 60) + "-storage-r0": strings.Repeat("n", 54) + "-4e5ec209",
	} {
		if got := label(name); got != want || len(got) > longest {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestReverseNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ network, address, zone, owner string }{
		{"10.0.0.0/8", "10.1.2.3", "10.in-addr.arpa", "3.2.1"},
		{"10.200.0.0/14", "10.201.2.3", "201.10.in-addr.arpa", "3.2"},
		{"10.20.0.0/20", "10.20.15.3", "15.20.10.in-addr.arpa", "3"},
		{"192.0.2.0/24", "192.0.2.9", "2.0.192.in-addr.arpa", "9"},
		{"192.0.2.128/25", "192.0.2.129", "128/25.2.0.192.in-addr.arpa", "129"},
		{"192.0.2.4/31", "192.0.2.5", "4/31.2.0.192.in-addr.arpa", "5"},
		{"2001:db8::/33", "2001:db8::1", "0.8.b.d.0.1.0.0.2.ip6.arpa", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0"},
		{"2001:db8::/127", "2001:db8::1", "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "1"},
	} {
		a := netip.MustParseAddr(c.address)
		zone := cut(netip.MustParsePrefix(c.network), a)
		if got := reverseName(zone); got != c.zone || owner(zone, a) != c.owner {
			t.Errorf("%s in %s: zone %s owner %s, want %s %s", c.address, c.network, got, owner(zone, a), c.zone, c.owner)
		}
	}
}

// TestTaggedName: a node on a network that is called as what BMCs are has another name
// there than its BMC.
func TestTaggedName(t *testing.T) {
	t.Parallel()
	n := &inventory.Node{Name: "n1"}
	for network, want := range map[string]string{"storage": "n1-storage", "bmc": "n1-bmc-vlan30", "BMC": "n1-BMC-vlan30"} {
		if got := taggedName(n, inventory.TaggedNetwork{Network: &inventory.Network{Name: network, VLAN: 30}}); got != want {
			t.Errorf("network %s: %s, want %s", network, got, want)
		}
	}
}
