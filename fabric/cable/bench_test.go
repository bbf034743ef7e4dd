// SPDX-License-Identifier: Apache-2.0

package cable_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/inventory"
)

// bigHall is a site of so many nodes of 8 rails, four a rack, with leaves of 32
// ports down in racks of their own, and twice as many cables above the leaves.
func bigHall(nodes int) *inventory.Inventory {
	inv := &inventory.Inventory{}
	f := &inventory.Fabric{Block: inventory.Block{Name: "compute", Kind: "roce"}, Link: 400e9}
	inv.Fabrics = append(inv.Fabrics, f)
	hw := &inventory.Hardware{RackUnits: 8, NICs: []inventory.NIC{{Name: "rail", HCA: true, Fabric: f, Speed: 400e9, Ports: make([]inventory.NICPort, 8)}}}
	rack := func(i int) *inventory.Rack {
		r := &inventory.Rack{Name: fmt.Sprintf("r%04d", i), Number: i, Row: fmt.Sprintf("row %d", i/40), Units: 48}
		inv.Racks = append(inv.Racks, r)
		return r
	}
	for i := range nodes {
		if i%4 == 0 {
			rack(len(inv.Racks) + 1)
		}
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%05d", i), Rack: inv.Racks[len(inv.Racks)-1], Unit: 1 + i%4*8, Hardware: hw})
	}
	leaves := (nodes + 31) / 32 * 8
	for i := range leaves + leaves/2 {
		if i%20 == 0 {
			rack(len(inv.Racks) + 1)
		}
		s := &inventory.Switch{Name: fmt.Sprintf("s%05d", i), Rack: inv.Racks[len(inv.Racks)-1], Unit: 1 + i%20*2, Height: 2, Fabric: f, Tier: inventory.Leaf}
		if i >= leaves {
			s.Tier = inventory.Spine
		}
		inv.Switches = append(inv.Switches, s)
	}
	for i, n := range inv.Nodes {
		for r := range 8 {
			inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, Rail: r, Speed: f.Link, From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0], Port: r},
				To: inventory.CableEnd{Switch: inv.Switches[i/32*8+r], Port: 1 + i%32}})
		}
	}
	for i := range 2 * len(inv.Cables) {
		inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, Rail: -1, Speed: f.Link, From: inventory.CableEnd{Switch: inv.Switches[i%leaves], Port: 33 + i/leaves},
			To: inventory.CableEnd{Switch: inv.Switches[leaves+i%(leaves/2)], Port: 1 + i/leaves}})
	}
	return inv
}

// BenchmarkRuns is linear: the time of a cable stays.
func BenchmarkRuns(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 12_500} {
		inv := bigHall(nodes)
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cable.ListRuns(inv)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(inv.Cables)), "ns/cable")
		})
	}
}

// BenchmarkTwinPorts has two links a transceiver, and ways too long for multimode
// among them.
func BenchmarkTwinPorts(b *testing.B) {
	inv := bigHall(12_500)
	inv.Fabrics[0].Kind, inv.Fabrics[0].Switch.Model = "infiniband", "QM9700"
	b.ReportAllocs()
	for b.Loop() {
		cable.ListRuns(inv)
	}
}

func BenchmarkCheck(b *testing.B) {
	inv := bigHall(12_500)
	b.ReportAllocs()
	for b.Loop() {
		if found := cable.Check(inv); len(found) > 0 {
			b.Fatalf("%d findings: %+v", len(found), found[0])
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	runs := cable.ListRuns(bigHall(12_500))
	for name, write := range map[string]func(io.Writer, []cable.Run) error{"schedule": cable.WriteSchedule, "labels": cable.WriteLabels,
		"bill": func(w io.Writer, runs []cable.Run) error { return cable.WriteBill(w, cable.CountBill(runs)) }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := write(io.Discard, runs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
