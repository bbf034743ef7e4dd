// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestNetworks: nodes with a bond over the port that they boot from, a large MTU, an IPv6
// address and a tagged network come up; a member without a link and a port that keeps another MTU are each found on their
// node, with the port.
func TestNetworks(t *testing.T) {
	t.Parallel()
	const debian = "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n"
	for name, image := range map[string]string{
		"networkd": debian,
		"netplan":  "image \"ubuntu\" \"os\" {\n  release  = \"24.04\"\n  kernel   = \"linux-image-generic\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := otherExample(t, "demo", debian, image, "  gateway = \"10.20.0.1\"\n", "  gateway = \"10.20.0.1\"\n  mtu     = 9000\n  cidr6 = \"fd20::/64\"\n  gateway6 = \"fe80::1\"\n",
				"pci     = [\"0000:29:00.0\"]", "pci     = [\"0000:29:00.0\", \"0000:29:00.1\"]\n    tagged = [network.storage]",
				"\nnetwork \"boot\" {", "\nnetwork \"storage\" {\n  cidr = \"10.30.0.0/20\"\n  cidr6 = \"fd30::/64\"\n  vlan = 30\n  mtu = 4200\n}\n\nnetwork \"boot\" {",
				"  kernel_args = [\"iommu=pt\"]\n", "  kernel_args = [\"iommu=pt\"]\n  bond \"bond0\" { members = [\"mgmt/0\", \"mgmt/1\"] }\n")
			sum := rehearsed(t, inv, "kind=link-down,node=r01-u09,port=mgmt/1", "kind=wrong-mtu,node=r01-u17,port=mgmt/0")
			if len(sum.Accepted) != 6 || len(sum.Quarantined) != 2 || len(sum.Unexpected) != 0 {
				t.Fatalf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
			}
			for _, q := range sum.Quarantined {
				want, known := map[string]string{"r01-u09": "no link in bond0", "r01-u17": "is 1400, not 9000"}[q.Node]
				if !known || !strings.Contains(q.Cause, want) || q.Action == "" {
					t.Errorf("%+v", q)
				}
			}
		})
	}
}

// TestTaggedBoot: nodes whose own addresses lie on the VLAN interface over their boot NIC, or over a bond
// of it, come up; a port that keeps another MTU than its VLAN is to have is found, and nodes of which
// nothing is heard, or whose ramdisk never calls, as at a port that is no tagged member, are pointed to the VLAN.
func TestTaggedBoot(t *testing.T) {
	t.Parallel()
	const lost, hung = "Look whether the firmware has VLAN 20 for the NIC", "Look whether the switch port is a tagged member of VLAN 20"
	for name, c := range map[string]struct {
		host   string
		faults []string
		want   map[string][2]string // cause and how the action begins, by node
	}{
		"port": {"", []string{"kind=wrong-mtu,node=r01-u17,port=mgmt/0", "kind=dhcp-loss,node=r01-u09"},
			map[string][2]string{"r01-u17": {"is 1400, not 9000", ""}, "r01-u09": {"never asked for an address", lost}}},
		"bond": {"  bond \"bond0\" { members = [\"mgmt/0\", \"mgmt/1\"] }\n", []string{"kind=kernel-hang,node=r01-u17", "kind=dhcp-loss,node=r01-u09"},
			map[string][2]string{"r01-u17": {"its agent never called", hung}, "r01-u09": {"never asked for an address", lost}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := otherExample(t, "demo", "  gateway = \"10.20.0.1\"\n", "  gateway = \"10.20.0.1\"\n  vlan = 20\n  mtu = 9000\n  cidr6 = \"fd20::/64\"\n",
				"pci     = [\"0000:29:00.0\"]", "pci     = [\"0000:29:00.0\", \"0000:29:00.1\"]",
				"  kernel_args = [\"iommu=pt\"]\n", "  kernel_args = [\"iommu=pt\"]\n"+c.host)
			sum := rehearsed(t, inv, c.faults...)
			if len(sum.Accepted) != 6 || len(sum.Quarantined) != 2 || len(sum.Unexpected) != 0 {
				t.Fatalf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
			}
			for _, q := range sum.Quarantined {
				if want := c.want[q.Node]; want[0] == "" || !strings.Contains(q.Cause, want[0]) || !strings.HasPrefix(q.Action, want[1]) {
					t.Errorf("%+v", q)
				}
			}
		})
	}
}

// TestUntaggedPort: a port that gives the VLAN of the boot network untagged, before firmware that sets no tag,
// is named by the ramdisk, which is heard without the tag, and nothing is erased. Where the network has no
// VLAN there is no such fault.
func TestUntaggedPort(t *testing.T) {
	t.Parallel()
	const out = "r01-u09"
	words := []string{"  gateway = \"10.20.0.1\"\n", "  gateway = \"10.20.0.1\"\n  vlan = 20\n"}
	f, err := fault.Parse("kind=untagged-port,node=" + out)
	if err != nil {
		t.Fatal(err)
	}
	w := &witnessed{t: t, nodes: concerned(f)}
	sum, err := rehearsal.Run(t.Context(), roomy(otherExample(t, "demo", words...)), w.asked(rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}, whyTimes[f.Kind]))
	if err != nil {
		t.Fatal(err)
	}
	check(t, sum, f, []string{out}, "boot NIC", "its switch port gives VLAN 20 untagged")
	if len(sum.Quarantined) != 1 || !strings.HasPrefix(sum.Quarantined[0].Action, "Make the switch port of "+out+" a tagged member of VLAN 20") {
		t.Errorf("%+v", sum.Quarantined)
	}
	w.golden(string(f.Kind))
	if _, err := rehearsal.Run(t.Context(), load(t, demo, nil), rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}); err == nil || !strings.Contains(err.Error(), "has no vlan") {
		t.Errorf("without a VLAN: %v", err)
	}
}

// TestProxyDHCP: beside a DHCP server of the site's own all nodes come up, by its addresses
// and our boot files; one more server of boot files is a finding.
func TestProxyDHCP(t *testing.T) {
	t.Parallel()
	inv := otherExample(t, "demo", "mode   = \"authoritative\"", "mode   = \"proxy\"")
	sum := rehearsed(t, inv)
	if len(sum.Accepted) != 8 || len(sum.Quarantined) != 0 || len(sum.Unexpected) != 0 {
		t.Fatalf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}
