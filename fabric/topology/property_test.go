// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// draw makes a fabric and a site of what numbers say: any of them may be
// impossible.
func draw(r *rand.Rand) (*inventory.Inventory, *inventory.Fabric, Options) {
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce"}, Rails: 1 + r.IntN(10), Planes: pick(1, 1, 1, 2, 4), Levels: pick(0, 0, 0, 1, 2, 3), UnitSize: pick(0, 0, r.IntN(40)),
		Link: unit.BitRate(pick(0, 100, 200, 400, 800)) * gbps, Oversubscription: []float64{1, 1, 1.5, 2, 3, 7}[r.IntN(6)],
		Topology: []string{"rail-optimized", "rail-optimized", "fat-tree", "top-of-rack"}[r.IntN(4)]}
	f.Switch = inventory.SwitchModel{Ports: 1 + r.IntN(70), Split: pick(0, 0, 2, 3, 4, 8), Speed: unit.BitRate(pick(0, 0, 400, 800)) * gbps}
	if r.IntN(4) == 0 {
		f.Spine = inventory.SwitchModel{Ports: 1 + r.IntN(140), Split: pick(0, 2, 4)}
	}
	if r.IntN(4) == 0 {
		f.Core = inventory.SwitchModel{Ports: 1 + r.IntN(140)}
	}
	inv := site(1+r.IntN(300), f)
	if r.IntN(3) == 0 {
		for _, n := range inv.Nodes {
			n.ScalableUnit = n.Rack.Number/(1+r.IntN(2)) + 1
		}
	}
	for _, rack := range inv.Racks {
		for i := range r.IntN(3) {
			s := &inventory.Switch{Name: fmt.Sprintf("%s/s%d", rack.Name, i), Label: []string{"leaf-1", "spine-1", "core-1", "x"}[r.IntN(4)], Rack: rack, Unit: 40 + i, Fabric: f, Rail: -1, Plane: -1, Ports: f.Switch.Ports * pick(0, 1, 1, 2)}
			if r.IntN(4) == 0 {
				s.Rail, s.Plane, s.ScalableUnit = r.IntN(12)-1, r.IntN(3)-1, r.IntN(3)
			}
			rack.Switches = append(rack.Switches, s)
			inv.Switches = append(inv.Switches, s)
		}
	}
	if r.IntN(4) == 0 && len(inv.Switches) > 0 {
		n, s := inv.Nodes[r.IntN(len(inv.Nodes))], inv.Switches[r.IntN(len(inv.Switches))]
		inv.Cables = append(inv.Cables, &inventory.Cable{Rail: -1, From: inventory.CableEnd{Node: n, NIC: &n.Hardware.NICs[0], Port: r.IntN(f.Rails)}, To: inventory.CableEnd{Switch: s, Port: 1 + r.IntN(40)}})
	}
	return inv, f, Options{ManagerPorts: pick(0, 0, r.IntN(9)), Managers: []string{"head1"}}
}

// try builds a site and checks what must hold of whatever comes out.
func try(t testing.TB, seed uint64) bool {
	t.Helper()
	inv, f, opt := draw(rand.New(rand.NewPCG(seed, 1)))
	given := len(inv.Cables)
	switches, cables, found := Build(inv, f, opt)
	if len(cables) == 0 {
		if !found.HasErrors() {
			t.Fatalf("seed %d: neither cables nor an error", seed)
		}
		return false
	}
	inv.Switches = append(inv.Switches, switches...)
	inv.Cables = append(inv.Cables, cables...)
	c := CountFabric(inv, f)
	if c.Ratio > f.Oversubscription+1e-9 && given == 0 {
		t.Fatalf("seed %d: ratio %v, allowed %v: %+v %+v", seed, c.Ratio, f.Oversubscription, f, c)
	}
	if want := len(inv.Nodes) * f.Rails * f.Planes; c.Links < want-f.Planes || c.Links > want {
		t.Fatalf("seed %d: %d links of nodes, want %d", seed, c.Links, want)
	}
	if given == 0 {
		sound(t, inv)
	}
	return true
}

// TestWhateverComes builds hundreds of random fabrics: each is sound or refused.
func TestWhateverComes(t *testing.T) {
	t.Parallel()
	built := 0
	for seed := range uint64(300) {
		if try(t, seed) {
			built++
		}
	}
	if built < 60 {
		t.Errorf("only %d of 300 could be built: this test sees too little", built)
	}
}

func FuzzBuild(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed + 1_000_000)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { try(t, seed) })
}

// TestNodeInAFreePlace: a node in a free place moves no other cable, wherever in
// the site the place is.
func TestNodeInAFreePlace(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"rail-optimized", "top-of-rack"} {
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 2))
			f := quantum2()
			f.Topology = topology
			if topology == "top-of-rack" {
				f.UnitSize = 8
				f.Oversubscription = 8
			}
			inv := site(64+r.IntN(60), f)
			for _, n := range inv.Nodes {
				n.ScalableUnit = (n.Rack.Number-1)/4 + 1
			}
			hole := r.IntN(56)
			all := inv.Nodes
			inv.Nodes = append(append([]*inventory.Node{}, all[:hole]...), all[hole+1:]...)
			before := ends(t, inv, f)
			inv.Nodes = all
			after := ends(t, inv, f)
			for from, to := range before {
				if after[from] != to {
					t.Fatalf("%s, seed %d: with %s added, %s moves from %s to %s", topology, seed, all[hole].Name, from, to, after[from])
				}
			}
			if len(after) != len(before)+8 {
				t.Fatalf("%d cables and then %d", len(before), len(after))
			}
		}
	}
}

// TestNodeBehindTheLast: without units of its own a node that comes last moves
// nobody either.
func TestNodeBehindTheLast(t *testing.T) {
	t.Parallel()
	for n := 33; n < 64; n++ {
		f := quantum2()
		before, after := ends(t, site(n, f), f), map[string]string(nil)
		f = quantum2()
		after = ends(t, site(n+1, f), f)
		for from, to := range before {
			if after[from] != to {
				t.Fatalf("%d nodes: %s moves from %s to %s", n, from, to, after[from])
			}
		}
	}
}

// ends are the two ends of each cable of the nodes and between switches.
func ends(t *testing.T, inv *inventory.Inventory, f *inventory.Fabric) map[string]string {
	t.Helper()
	_, cables, found := Build(inv, f, Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	out := map[string]string{}
	for _, c := range cables {
		out[c.From.String()] = c.To.String()
	}
	return out
}

// TestSameAgain: the same site has the same cables.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		list := func() (out []string) {
			inv, f, opt := draw(rand.New(rand.NewPCG(seed, 1)))
			switches, cables, found := Build(inv, f, opt)
			for _, s := range switches {
				out = append(out, fmt.Sprint(s.Name, s.Rail, s.Pod, s.Plane))
			}
			for _, c := range cables {
				out = append(out, c.From.String()+" "+c.To.String())
			}
			return append(out, fmt.Sprint(found))
		}
		if a, b := list(), list(); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("seed %d: two answers", seed)
		}
	}
}

// TestLimits: the largest numbers that the language takes are answered at once.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, f := range []inventory.Fabric{
		{Rails: 64, UnitSize: 1, Levels: 3, Switch: inventory.SwitchModel{Ports: 2048, Split: 8}},
		{Rails: 64, UnitSize: 1, Planes: 8, Switch: inventory.SwitchModel{Ports: 2048, Split: 8}},
		{Rails: 64, UnitSize: 100_000, Topology: "fat-tree", Switch: inventory.SwitchModel{Ports: 2048}},
		{Rails: 64, UnitSize: 100_000, Topology: "top-of-rack", Switch: inventory.SwitchModel{Ports: 2048}},
		{Rails: 1, UnitSize: 100_000, Topology: "fat-tree", Switch: inventory.SwitchModel{Ports: 2}},
	} {
		f.Kind = "roce"
		inv := site(300, &f)
		for i, n := range inv.Nodes {
			if f.Topology != "top-of-rack" {
				n.ScalableUnit = i + 1
			}
		}
		start := time.Now()
		_, cables, found := Build(inv, &f, Options{})
		if len(cables) > maxCables || len(cables) == 0 && !found.HasErrors() {
			t.Errorf("%+v: %d cables, %v", f, len(cables), found)
		}
		t.Logf("%s: %d cables, %v", f.Topology, len(cables), time.Since(start))
	}
}
