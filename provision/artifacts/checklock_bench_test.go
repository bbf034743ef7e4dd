// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
)

// linkedHall is a fabric of eight rails with a leaf for each 32 nodes and rail,
// and as many links up as down.
func linkedHall(nodes int) *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}, Rails: 8, Topology: "rail-optimized", Addressing: "point-to-point", CIDR: netip.MustParsePrefix("10.0.0.0/8")}
	nic := inventory.NIC{Name: "rail", HCA: true, Fabric: f}
	for r := range 8 {
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: r, PCI: "0000:00:04.0"})
	}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{nic}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}, Lock: &lock.Lock{}}
	spine := &inventory.Switch{Name: "compute/spine", Fabric: f, Tier: inventory.Spine}
	var leaves []*inventory.Switch
	for i := range nodes {
		n := &inventory.Node{Name: fmt.Sprintf("n%05d", i), Hardware: hw}
		inv.Nodes = append(inv.Nodes, n)
		for r := range 8 {
			at := i/32*8 + r
			if at == len(leaves) {
				leaves = append(leaves, &inventory.Switch{Name: fmt.Sprintf("compute/leaf-u%d-r%d", i/32+1, r), Fabric: f, Tier: inventory.Leaf})
			}
			inv.Cables = append(inv.Cables,
				&inventory.Cable{Fabric: f, Rail: r, From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0], Port: r}, To: inventory.CableEnd{Switch: leaves[at], Port: i%32 + 1}},
				&inventory.Cable{Fabric: f, Rail: -1, From: inventory.CableEnd{Switch: leaves[at], Port: i%32 + 33}, To: inventory.CableEnd{Switch: spine, Port: 1}})
		}
	}
	inv.Switches = append(leaves, spine)
	return inv
}

// BenchmarkCheckLock is what the addresses of a fabric add to a check, once the
// lock file is read: all of them locked, and none.
func BenchmarkCheckLock(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 12_500} {
		inv := linkedHall(nodes)
		run := func(b *testing.B, want int) {
			b.ReportAllocs()
			for b.Loop() {
				if found := CheckLock(inv); len(found) != want {
					b.Fatal(found)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(inv.Cables)), "ns/cable")
		}
		b.Run(fmt.Sprintf("none/%d", nodes), func(b *testing.B) { run(b, 1) })
		u := LockUpdate{Lock: &lock.Lock{}}
		u.addresses(inv, roce.Addresses(inv), LockOptions{})
		back, found := lock.Parse(u.Lock.Bytes())
		if len(found) > 0 {
			b.Fatal(found)
		}
		inv.Lock = back
		b.Run(fmt.Sprintf("all/%d", nodes), func(b *testing.B) { run(b, 0) })
	}
}
