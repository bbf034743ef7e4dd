// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/rail"
)

// fleet is transfers between healthy nodes over eight rails, whose figures lie up to 4 % to
// either side of the usual one: a part of that is of the rack, of the slot, of the time
// and of each transfer. One rail of one node carries a share of the rest.
func fleet(lot *rand.Rand, nodes int, slow float64) (list []*Transfer) {
	const wire = 48.9e9
	off := func(share float64) float64 { return share * (2*lot.Float64() - 1) }
	block := &inventory.Hardware{Name: "hgx"}
	all := make([]*inventory.Node, nodes)
	rack, slot := make([]float64, nodes), make([]float64, 8)
	for i := range all {
		all[i] = &inventory.Node{Name: fmt.Sprintf("n%d", i), Hardware: block}
		if rack[i] = off(0.01); i%4 > 0 {
			rack[i] = rack[i-1]
		}
	}
	for i := range slot {
		slot[i] = off(0.01)
	}
	for turn := 1; turn < nodes; turn++ {
		time := off(0.01)
		for i := range nodes {
			j := (i + turn) % nodes
			for r := range 8 {
				end := func(n int) rail.End {
					return rail.End{Node: all[n], Fabric: "compute", Port: fabric.Port{Rail: r}, Need: rail.Need{Least: 30e9, Limit: ">= 30 GB/s"}}
				}
				t := &Transfer{From: end(i), To: end(j), Bw: wire * (1 + rack[i]/2 + rack[j]/2 + slot[r] + time + off(0.01))}
				if r == 3 && (i == 0 || j == 0) {
					t.Bw *= slow
				}
				list = append(list, t)
			}
		}
	}
	return list
}

// TestScatter: in 1,000 runs of healthy nodes that lie up to 4 % to either side nobody is
// lost, and a rail that is a tenth slow is found, though the site's own limit lets it pass.
func TestScatter(t *testing.T) {
	t.Parallel()
	lot := rand.New(rand.NewPCG(11, 12))
	for run := range 125 { // of eight nodes
		all := fleet(lot, 8, 1)
		Compare(all)
		for _, x := range all {
			if x.Bad() {
				t.Fatalf("run %d: %s is bad with %.1f GB/s, want %s", run, x.Name(), x.Bw/1e9, x.Need().Limit)
			}
		}
		all = fleet(lot, 8, 0.9)
		Compare(all)
		for _, x := range all {
			if of := x.From.Port.Rail == 3 && (x.From.Node.Name == "n0" || x.To.Node.Name == "n0"); of && x.Bw < 0.92*48.9e9 && !x.Bad() {
				t.Errorf("run %d: %s carries %.1f GB/s and is good: %s", run, x.Name(), x.Bw/1e9, x.Need().Limit)
			} else if !of && x.Bad() {
				t.Errorf("run %d: %s is healthy and bad: %s", run, x.Name(), x.Need().Limit)
			}
		}
	}
}

// TestFewAreNotCompared: a handful of transfers, and those of another path or of other
// nodes, make no median.
func TestFewAreNotCompared(t *testing.T) {
	t.Parallel()
	lot := rand.New(rand.NewPCG(13, 14))
	two := fleet(lot, 2, 0.7)[:7]
	Compare(two)
	for _, x := range two {
		if x.Usual.Least > 0 {
			t.Errorf("%s is compared with %d: %s", x.Name(), len(two), x.Usual.Limit)
		}
	}
	all := fleet(lot, 8, 1)
	for _, x := range all {
		x.FromLeaf, x.ToLeaf = "leaf-1", "leaf-1"
		if x.From.Node.Name == "n1" || x.To.Node.Name == "n1" { // behind another leaf, over half of the uplinks
			x.ToLeaf, x.Bw = "leaf-2", x.Bw/1.5
		}
	}
	Compare(all)
	for _, x := range all {
		if x.Bad() {
			t.Errorf("%s is bad: %s", x.Name(), x.Need().Limit)
		}
	}
}
