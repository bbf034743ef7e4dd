// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// anySite is a site of any racks, PDUs, shelves, switches and nodes on any feeds.
func anySite(r *rand.Rand) *inventory.Inventory {
	inv := &inventory.Inventory{}
	for i := range 1 + r.IntN(3) {
		most := unit.Watts(r.IntN(12_000))
		supplies := 1 + r.IntN(6)
		h := &inventory.Hardware{Name: fmt.Sprintf("h%d", i), RackUnits: 1, Weight: unit.Mass(r.IntN(100))}
		h.Power = inventory.Power{Max: most, Typical: most * unit.Watts(r.Float64()), Supplies: supplies, Required: 1 + r.IntN(supplies), Liquid: unit.Percent(r.IntN(120))}
		inv.Hardware = append(inv.Hardware, h)
	}
	feeds := []string{"A", "B", "C", "D"}[:1+r.IntN(4)]
	for i := range 1 + r.IntN(5) {
		inv.Racks = append(inv.Racks, anyRack(r, inv, i, feeds))
	}
	for _, f := range feeds {
		inv.Feeds = append(inv.Feeds, &inventory.BuildingFeed{Name: f, Capacity: unit.Watts(r.IntN(100_000)), Derate: 1})
	}
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return cmpNames(a.Name, b.Name) })
	return inv
}

func cmpNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func anyRack(r *rand.Rand, inv *inventory.Inventory, i int, feeds []string) *inventory.Rack {
	rack := &inventory.Rack{Name: fmt.Sprintf("r%d", i), Number: i, Units: 60, MaxPower: unit.Watts(r.IntN(50_000)), Cooling: unit.Watts(r.IntN(50_000)), LiquidCooling: unit.Watts(r.IntN(50_000)), MaxWeight: unit.Mass(r.IntN(500))}
	for j := range r.IntN(5) {
		rack.PDUs = append(rack.PDUs, &inventory.PDU{Name: fmt.Sprintf("%s/p%d", rack.Name, j), Label: fmt.Sprintf("p%d", j), Rack: rack, Feed: feeds[r.IntN(len(feeds))], Phases: 1 + 2*r.IntN(2),
			Voltage: unit.Volts([]int{208, 230, 400, 415}[r.IntN(4)]), Current: unit.Amps(16 + r.IntN(100)), Derate: 0.8, Outlets: 6 * r.IntN(6), Wiring: []string{"rotating", "banked"}[r.IntN(2)]})
	}
	plugs := func(n int) (out []inventory.Feed) {
		for range n {
			if len(rack.PDUs) > 0 {
				p := rack.PDUs[r.IntN(len(rack.PDUs))]
				out = append(out, inventory.Feed{PDU: p, Outlet: r.IntN(p.Outlets + 1)})
			}
		}
		return out
	}
	for j := range r.IntN(3) {
		rack.Shelves = append(rack.Shelves, &inventory.Shelf{Name: fmt.Sprintf("%s/s%d", rack.Name, j), Rack: rack, Count: 1 + r.IntN(6), Capacity: unit.Watts(r.IntN(6_000)), Redundancy: []string{"", "n", "n+1", "n+2", "n+n"}[r.IntN(5)], Feeds: plugs(r.IntN(7))})
	}
	for j := range r.IntN(4) {
		s := &inventory.Switch{Name: fmt.Sprintf("%s/sw%d", rack.Name, j), Rack: rack, Unit: 40 + j, Power: unit.Watts(r.IntN(2) * r.IntN(3_000)), Feeds: plugs(r.IntN(3)), Liquid: unit.Percent(r.IntN(100))}
		rack.Switches, inv.Switches = append(rack.Switches, s), append(inv.Switches, s)
	}
	for j := range r.IntN(8) {
		h := inv.Hardware[r.IntN(len(inv.Hardware))]
		n := &inventory.Node{Name: fmt.Sprintf("%s-n%d", rack.Name, j), Rack: rack, Unit: 1 + j, Hardware: h, Feeds: plugs(r.IntN(h.Power.Supplies + 1))}
		rack.Nodes, inv.Nodes = append(rack.Nodes, n), append(inv.Nodes, n)
	}
	return rack
}

// same compares sums of the same numbers in another order.
func same(a, b unit.Watts) bool {
	return math.Abs(float64(a-b)) <= 1e-6*math.Max(1, math.Abs(float64(b)))
}

func sameLoad(a, b power.Load) bool { return same(a.Typical, b.Typical) && same(a.Max, b.Max) }

func plus(a, b power.Load) power.Load {
	return power.Load{Typical: a.Typical + b.Typical, Max: a.Max + b.Max}
}

// TestSums: phases add up to their PDU, with all feeds and after the loss; PDUs
// to their feed; heat to what is drawn; a loss lowers nothing.
func TestSums(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2_000) {
		p := power.New(anySite(rand.New(rand.NewPCG(seed, 1))))
		byFeed := map[string]power.Load{}
		for _, r := range p.Racks {
			if !same(r.Air+r.Liquid, r.Load.Max) || r.Air < -1e-6 || r.Liquid < 0 {
				t.Fatalf("seed %d: rack %s draws %v and gives %v to air, %v to liquid", seed, r.Rack.Name, r.Load.Max, r.Air, r.Liquid)
			}
			for _, pdu := range r.PDUs {
				checkPDU(t, seed, pdu, len(p.Feeds) > 1)
				byFeed[pdu.PDU.Feed] = plus(byFeed[pdu.PDU.Feed], pdu.Load)
			}
		}
		for _, f := range p.Feeds {
			if !sameLoad(byFeed[f.Name], f.Load) {
				t.Fatalf("seed %d: feed %s carries %+v, its PDUs %+v", seed, f.Name, f.Load, byFeed[f.Name])
			}
			if len(p.Feeds) > 1 && (f.Worst.Max < f.Load.Max || f.Worst.Typical < f.Load.Typical || f.Lost == f.Name) {
				t.Fatalf("seed %d: feed %s carries %+v, and %+v when feed %q is lost", seed, f.Name, f.Load, f.Worst, f.Lost)
			}
		}
	}
}

func checkPDU(t *testing.T, seed uint64, p power.PDU, losses bool) {
	t.Helper()
	var load, worst power.Load
	for _, ph := range p.Phases {
		load, worst = plus(load, ph.Load), plus(worst, ph.Worst)
	}
	if !sameLoad(load, p.Load) || !sameLoad(worst, p.Worst) {
		t.Fatalf("seed %d: PDU %s carries %+v and %+v after a loss, its phases %+v and %+v", seed, p.PDU.Name, p.Load, p.Worst, load, worst)
	}
	if losses && (p.Worst.Max < p.Load.Max || p.Worst.Typical < p.Load.Typical || p.Lost == p.PDU.Feed) {
		t.Fatalf("seed %d: PDU %s carries %+v, and %+v when feed %q is lost", seed, p.PDU.Name, p.Load, p.Worst, p.Lost)
	}
}

// TestPermutation: in whatever order nodes, racks and switches are listed, the
// sums of racks, PDUs and feeds are the same.
func TestPermutation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		inv := anySite(rand.New(rand.NewPCG(seed, 2)))
		before := power.New(inv)
		r := rand.New(rand.NewPCG(seed, 3))
		for _, rack := range inv.Racks {
			r.Shuffle(len(rack.Nodes), func(i, j int) { rack.Nodes[i], rack.Nodes[j] = rack.Nodes[j], rack.Nodes[i] })
			r.Shuffle(len(rack.Switches), func(i, j int) { rack.Switches[i], rack.Switches[j] = rack.Switches[j], rack.Switches[i] })
		}
		r.Shuffle(len(inv.Nodes), func(i, j int) { inv.Nodes[i], inv.Nodes[j] = inv.Nodes[j], inv.Nodes[i] })
		after := power.New(inv)
		for i, f := range before.Feeds {
			if g := after.Feeds[i]; !sameLoad(f.Load, g.Load) || !sameLoad(f.Worst, g.Worst) {
				t.Fatalf("seed %d: feed %s carried %+v and carries %+v", seed, f.Name, f, g)
			}
		}
		for i, a := range before.Racks {
			b := after.Racks[i]
			if !sameLoad(a.Load, b.Load) || !same(a.Air, b.Air) {
				t.Fatalf("seed %d: rack %s drew %+v and draws %+v", seed, a.Rack.Name, a.Load, b.Load)
			}
			for j := range a.PDUs {
				if !sameLoad(a.PDUs[j].Load, b.PDUs[j].Load) || !sameLoad(a.PDUs[j].Worst, b.PDUs[j].Worst) {
					t.Fatalf("seed %d: PDU %s carried %+v and carries %+v", seed, a.PDUs[j].PDU.Name, a.PDUs[j].Load, b.PDUs[j].Load)
				}
			}
		}
	}
}

// TestWorstIsFound: what a PDU is said to carry after the worst loss is what it
// carries in a site where that feed's supplies are not there, for nodes that have
// enough left.
func TestWorstIsFound(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range uint64(2_000) {
		inv := anySite(rand.New(rand.NewPCG(seed, 4)))
		for _, rack := range inv.Racks {
			rack.Shelves = nil
		}
		for _, h := range inv.Hardware {
			h.Power.Required = 1
		}
		p := power.New(inv)
		for _, f := range p.Feeds {
			if f.Lost == "" {
				continue
			}
			without := power.New(cut(inv, f.Lost))
			if got, _ := without.Feed(f.Name); !sameLoad(got.Load, f.Worst) {
				t.Fatalf("seed %d: feed %s: said %+v when %s is lost, and carries %+v without it", seed, f.Name, f.Worst, f.Lost, got.Load)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("only %d losses were compared", compared)
	}
}

// cut is the site without the supplies of one feed.
func cut(inv *inventory.Inventory, feed string) *inventory.Inventory {
	out := *inv
	out.Racks = nil
	left := func(feeds []inventory.Feed) []inventory.Feed {
		return slices.DeleteFunc(slices.Clone(feeds), func(f inventory.Feed) bool { return f.PDU.Feed == feed })
	}
	for _, r := range inv.Racks {
		rack := *r
		rack.Nodes, rack.Switches = nil, nil
		for _, n := range r.Nodes {
			node := *n
			node.Feeds = left(n.Feeds)
			rack.Nodes = append(rack.Nodes, &node)
		}
		for _, s := range r.Switches {
			sw := *s
			sw.Feeds = left(s.Feeds)
			rack.Switches = append(rack.Switches, &sw)
		}
		out.Racks = append(out.Racks, &rack)
	}
	return &out
}

// TestCheckHolds runs the checks over any site, twice: the same is found.
func TestCheckHolds(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for seed := range uint64(2_000) {
		inv := anySite(rand.New(rand.NewPCG(seed, 5)))
		first, again := power.Check(inv), power.Check(inv)
		if fmt.Sprint(first) != fmt.Sprint(again) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		for _, d := range first {
			found[d.Check]++
			if d.Detail == "" || d.Summary == "" {
				t.Fatalf("seed %d: %+v", seed, d)
			}
		}
	}
	for _, check := range []string{"power.pdu", "power.phase", "power.feed", "power.feed-loss", "power.one-feed", "power.rack", "power.shelf", "power.imbalance", "power.unknown", "power.outlets", "power.no-feed", "power.supplies", "cooling.rack", "weight.rack", "weight.unknown"} {
		if found[check] == 0 {
			t.Errorf("%s was never found: the sites are too tame", check)
		}
	}
}
