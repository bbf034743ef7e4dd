// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	paper "github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
)

// anyRack is a rack of two or three PDUs of any kind, one for each feed, and nodes
// whose supplies are in any free outlets.
func anyRack(r *rand.Rand) *inventory.Inventory {
	rack := &inventory.Rack{Name: "r01", Units: 48}
	free := map[*inventory.PDU][]int{}
	for i := range 2 + r.IntN(2) {
		name := string(rune('a' + i))
		p := &inventory.PDU{Name: "r01/" + name, Label: name, Rack: rack, Feed: name, Phases: 1 + 2*r.IntN(2), Voltage: unit.Volts([]int{208, 230, 400, 415}[r.IntN(4)]), Current: 10_000, Derate: 0.8, Outlets: 60, Wiring: "rotating"}
		rack.PDUs, free[p] = append(rack.PDUs, p), r.Perm(60)
	}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{rack}}
	for i := range 1 + r.IntN(8) {
		supplies := 1 + r.IntN(6)
		h := &inventory.Hardware{Power: inventory.Power{Max: unit.Watts(1 + r.IntN(12_000)), Supplies: supplies, Required: 1}}
		n := &inventory.Node{Name: fmt.Sprintf("n%d", i), Rack: rack, Unit: 1 + 6*i, Hardware: h}
		for j := range supplies {
			p := rack.PDUs[r.IntN(len(rack.PDUs))]
			n.Feeds = append(n.Feeds, inventory.Feed{Supply: fmt.Sprintf("psu%d", j+1), PDU: p, Outlet: free[p][0] + 1})
			free[p] = free[p][1:]
		}
		rack.Nodes, inv.Nodes = append(rack.Nodes, n), append(inv.Nodes, n)
	}
	return inv
}

func newGrid(t *testing.T, inv *inventory.Inventory) *power.Grid {
	t.Helper()
	c := power.Config{PDUs: inv.Racks[0].PDUs}
	for _, n := range inv.Nodes {
		c.Loads = append(c.Loads, power.Load{Name: n.Name, Feeds: n.Feeds, Max: float64(n.Hardware.Power.Max)})
	}
	g, err := power.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMetersAgreeWithPaper: what the meters of virtual PDUs show is what was
// computed from the inventory, by PDU and by line, with all feeds and when the
// worst one is really cut.
func TestMetersAgreeWithPaper(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(300) {
		inv := anyRack(rand.New(rand.NewPCG(seed, 1)))
		for _, want := range paper.New(inv).Racks[0].PDUs {
			g := newGrid(t, inv)
			lines := make([]unit.Amps, len(want.Phases))
			for i, ph := range want.Phases {
				lines[i] = ph.Amps
			}
			meter(t, seed, g, want.PDU.Name, want.Load.Max, lines)
			if want.Lost == "" {
				continue
			}
			if err := g.Input("r01/"+want.Lost, false); err != nil {
				t.Fatal(err)
			}
			for i, ph := range want.Phases {
				lines[i] = ph.WorstAmps
			}
			meter(t, seed, g, want.PDU.Name, want.Worst.Max, lines)
			cuts++
		}
	}
	if cuts < 100 {
		t.Errorf("only %d feeds were cut", cuts)
	}
}

func meter(t *testing.T, seed uint64, g *power.Grid, name string, watts unit.Watts, lines []unit.Amps) {
	t.Helper()
	p, _ := g.PDU(name)
	got := p.Read()
	if math.Abs(got.Watts-float64(watts)) > 1e-6*(1+got.Watts) {
		t.Fatalf("seed %d: PDU %s shows %g W, on paper %v", seed, name, got.Watts, watts)
	}
	for i, amps := range lines {
		if math.Abs(got.Lines[i]-float64(amps)) > 1e-6*(1+got.Lines[i]) {
			t.Fatalf("seed %d: line %d of PDU %s shows %g A, on paper %v", seed, i+1, name, got.Lines[i], amps)
		}
	}
}
