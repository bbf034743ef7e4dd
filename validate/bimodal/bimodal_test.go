// SPDX-License-Identifier: Apache-2.0

package bimodal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// figures are those of nodes n0, n1, and so on.
func figures(values ...float64) (list []Figure) {
	for i, v := range values {
		list = append(list, Figure{fmt.Sprintf("n%d", i), v})
	}
	return list
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		low    string // nodes of the slower group; empty: there are no groups
	}{
		{"alike", []float64{100, 101, 99, 100, 100, 102, 98, 100}, ""},
		{"four of eight", []float64{80, 100, 81, 101, 80, 100, 82, 99}, "n0 n2 n4 n6"},
		{"five of eight", []float64{80, 100, 81, 101, 80, 100, 82, 80}, "n0 n2 n4 n6 n7"},
		{"six of eight", []float64{80, 80, 81, 101, 80, 100, 82, 80}, "n0 n1 n2 n4 n6 n7"},
		{"three of eight are outliers", []float64{80, 100, 81, 101, 80, 100, 100, 99}, ""},
		{"one that is faster", []float64{80, 80, 81, 101, 80, 80, 82, 80}, ""},
		{"two of four", []float64{80, 100, 80, 100}, "n0 n2"},
		{"two of four by little", []float64{90, 100, 90, 100}, ""},
		{"two of three", []float64{80, 80, 100}, ""},
		{"all scatter", []float64{50, 60, 70, 80, 90, 100, 110, 120}, ""},
		{"one group scatters", []float64{50, 60, 70, 80, 100, 100, 100, 100}, ""},
		{"nothing", nil, ""},
		{"all stand still", []float64{0, 0, 0, 0}, ""},
		{"half stands still", []float64{0, 0, 100, 100}, "n0 n1"},
	} {
		g, ok := Find(figures(c.values...), 0.9)
		if got := strings.Join(g.Low.Nodes, " "); ok != (c.low != "") || ok && got != c.low {
			t.Errorf("%s: %v, %+v", c.name, ok, g)
		}
		if ok && (len(g.Low.Nodes)+len(g.High.Nodes) != len(c.values) || g.Low.Most >= g.High.Least || g.Low.Median > g.Low.Most || !g.Has("n0") || g.Has("x")) {
			t.Errorf("%s: %+v", c.name, g)
		}
	}
}

// TestHealthy: figures of healthy nodes that scatter by 4 %, be it by racks, are of one group in each of
// 1,000 draws; and groups that differ by 15 % and scatter by 2 % are found in each.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		within := func(share float64) float64 { return 1 + share*(2*r.Float64()-1) }
		for _, n := range []int{4, 5, 8, 16, 64} {
			even, racks, normal, groups := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
			rack := [2]float64{within(0.02), within(0.02)}
			for i := range n {
				even[i], racks[i], normal[i], groups[i] = within(0.04), rack[2*i/n]*within(0.02), 1+0.03*r.NormFloat64(), within(0.01)
				if 2*i < n {
					groups[i] *= 0.82
				}
			}
			for _, share := range []float64{0.95, 0.9, 0.85} {
				for name, values := range map[string][]float64{"evenly": even, "by racks": racks, "normally": normal} {
					if g, ok := Find(figures(values...), share); ok {
						t.Errorf("seed %d: %d nodes that scatter %s, share %g: %+v", seed, n, name, share, g)
					}
				}
				if _, ok := Find(figures(groups...), share); !ok {
					t.Errorf("seed %d: %d nodes, share %g: groups that differ by 18%% are not found: %v", seed, n, share, groups)
				}
			}
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	g, _ := Find(figures(80, 100, 80, 100, 80, 100, 80, 100), 0.9)
	traits := Traits{}
	for i := range 8 {
		traits[fmt.Sprintf("n%d", i)] = []Trait{{"rack", fmt.Sprint("r", i%2)}, {"BIOS", fmt.Sprint("1.", i%4)}, {"serial", fmt.Sprint(i)}, {"kernel", "6.1"}, {"NIC firmware", fmt.Sprint(i / 4)}}
	}
	of := Of{Role: "gpu", Part: "memory", Does: "reach", Limit: "host.memory", Format: func(v float64) string { return fmt.Sprint(v) }}
	nodes := []*inventory.Node{{Name: "n0"}, {Name: "n1", Validation: &inventory.Validation{Provisional: true}}, {Name: "n2", Validation: &inventory.Validation{}}, {Name: "n9"}}
	f := g.Finding(of, traits, nodes)
	want := "memory of role gpu is in two groups: 4 nodes (n0, n2, n4, n6) reach 80 to 80, and 4 nodes (n1, n3, n5, n7) reach 100 to 100; the two differ in rack: r0 of the slower, r1 of the faster, and in BIOS: 1.0, 1.2 of the slower, 1.1, 1.3 of the faster"
	if f.Cause != want || len(f.Evidence) != 2 || len(f.About) != 6 || len(f.Affected) != 2 || f.Affected[1].Name != "n2" || f.Suspects[0].Subject.String() != "site/role.gpu" || !strings.Contains(f.Action, "host.memory") {
		t.Errorf("%+v", f)
	}
	delete(traits, "n3")
	if f := g.Finding(of, traits, nil); !strings.HasSuffix(f.Cause, "nothing that was read of them distinguishes the two: no rack, model, firmware or setting") {
		t.Error(f.Cause)
	}
}
