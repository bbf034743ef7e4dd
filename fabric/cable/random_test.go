// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// tangle is a hall with cables of any kind between any ends.
func tangle(r *rand.Rand) *inventory.Inventory {
	inv := hall(r)
	speeds := []unit.BitRate{0, g1, g25, g100, g200, g400, g800, 7e9}
	pick := func() unit.BitRate { return speeds[r.IntN(len(speeds))] }
	for i := range 1 + r.IntN(3) {
		inv.Fabrics = append(inv.Fabrics, &inventory.Fabric{Block: inventory.Block{Name: string(rune('f' + i)), Kind: []string{"infiniband", "roce", "nvlink"}[r.IntN(3)]}, Link: pick(), Planes: r.IntN(3),
			Switch: inventory.SwitchModel{Model: []string{"", "QM9700", "SN5600"}[r.IntN(3)], Speed: pick(), Split: r.IntN(3)}})
	}
	fabric := func() *inventory.Fabric { return inv.Fabrics[r.IntN(len(inv.Fabrics))] }
	for i := range 1 + r.IntN(9) {
		s := &inventory.Switch{Name: "s" + string(rune('a'+i)), Fabric: fabric(), Unit: r.IntN(40), Tier: []inventory.Tier{"", inventory.Leaf, inventory.Spine, inventory.Core}[r.IntN(4)]}
		if r.IntN(4) > 0 {
			s.Rack = inv.Racks[r.IntN(len(inv.Racks))]
		}
		if r.IntN(4) == 0 {
			s.Fabric = nil
		}
		inv.Switches = append(inv.Switches, s)
	}
	hw := inv.Nodes[0].Hardware
	for i := range 3 {
		nic := inventory.NIC{Name: string(rune('x' + i)), Speed: pick()}
		if i > 0 {
			nic.Fabric = fabric()
		}
		for p := range 4 {
			nic.Ports = append(nic.Ports, inventory.NICPort{Rail: p - r.IntN(2), Panel: []string{"", "P 1/1", "P 1/2", "P 2/1"}[r.IntN(4)]})
		}
		hw.NICs = append(hw.NICs, nic)
	}
	for i, n := range inv.Nodes {
		n.Name = "n" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	end := func() inventory.CableEnd {
		switch r.IntN(9) {
		case 0:
			return inventory.CableEnd{Text: "somewhere/else/" + string(rune('a'+r.IntN(26)))}
		case 1, 2, 3:
			return inventory.CableEnd{Switch: inv.Switches[r.IntN(len(inv.Switches))], Port: r.IntN(65), Lane: r.IntN(3)}
		}
		return inventory.CableEnd{Node: inv.Nodes[r.IntN(len(inv.Nodes))], NIC: &hw.NICs[r.IntN(3)], Port: r.IntN(4)}
	}
	for range 60 {
		c := &inventory.Cable{From: end(), To: end(), Rail: -1}
		if r.IntN(2) == 0 {
			c.Fabric, c.Rail, c.Speed = fabric(), r.IntN(5)-1, pick()
		} else {
			c.Type, c.Length = []string{"", "DAC", "ACC", "AEC", "AOC", "fibre", "copper"}[r.IntN(7)], unit.Length(r.IntN(3)*r.IntN(40))
		}
		if n := len(inv.Cables); n > 0 && r.IntN(4) == 0 && inv.Cables[n-1].Splitter == nil {
			c.Splitter = inv.Cables[n-1]
		}
		inv.Cables = append(inv.Cables, c)
	}
	return inv
}

// TestWhateverTheCables wants every cable once, what is ordered long enough and
// sold, labels unique, and no panic.
func TestWhateverTheCables(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		inv := tangle(rand.New(rand.NewPCG(seed, 2)))
		runs := ListRuns(inv)
		seen := map[*inventory.Cable]bool{}
		labels := map[string]bool{}
		for _, r := range runs {
			for _, c := range r.Cables {
				if seen[c] {
					t.Fatalf("seed %d: a cable is in two runs", seed)
				}
				seen[c] = true
			}
			given := r.Cables[0].Length
			if labels[r.Label] || r.Label == "" {
				t.Fatalf("seed %d: label %q is not unique", seed, r.Label)
			}
			labels[r.Label] = true
			if given == 0 && r.Length > 0 && (r.Length < r.Route || r.Part == "") || given > 0 && r.Length != given {
				t.Fatalf("seed %d: %s of %v for a way of %v, given %v", seed, r.Part, r.Length, r.Route, given)
			}
			if given == 0 && r.Length > 0 && !sold(r.Type, r.Length) {
				t.Fatalf("seed %d: no %s of %v is sold", seed, r.Type, r.Length)
			}
		}
		if len(seen) != len(inv.Cables) {
			t.Fatalf("seed %d: %d of %d cables are in runs", seed, len(seen), len(inv.Cables))
		}
		b := newBuilder(inv)
		single := map[cage]bool{}
		for _, r := range runs {
			for _, k := range b.cages.shared(&r, nil) {
				single[k] = single[k] || r.medium == singleMode
			}
		}
		for _, r := range runs {
			for _, k := range b.cages.shared(&r, nil) {
				w := b.cableOf(&r)
				w.typ, w.medium = "fibre", singleMode
				if p, _ := b.shelf(&r).choose(w); single[k] && r.medium == multimode && p != nil {
					t.Fatalf("seed %d: one transceiver for both media", seed)
				}
			}
		}
		cables := 0
		for _, i := range CountBill(runs) {
			if i.Count < 1 || i.Spares < 1 {
				t.Fatalf("seed %d: %+v", seed, i)
			}
			if i.Type != optic {
				cables += i.Count
			}
		}
		if cables > len(runs) {
			t.Fatalf("seed %d: the bill has %d cables, the site %d", seed, cables, len(runs))
		}
		for _, d := range Check(inv) {
			if len(d.Summary) == 0 || len(d.Detail) == 0 || d.Subject == nil {
				t.Fatalf("seed %d: %+v", seed, d)
			}
		}
	}
}

func sold(typ string, l unit.Length) bool {
	return slices.ContainsFunc(products, func(p product) bool {
		return p.typ == typ && (slices.Contains(p.sold, l) || slices.Contains(p.split, l))
	})
}

// TestSameOrder wants the same rows whatever the order in which cables without
// a common end come.
func TestSameOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		inv := tangle(r)
		byFrom := map[string]bool{}
		inv.Cables = slices.DeleteFunc(inv.Cables, func(c *inventory.Cable) bool {
			again := byFrom[c.From.String()]
			byFrom[c.From.String()] = true
			c.Splitter = nil
			return again || c.From.Node == nil && c.From.Switch == nil
		})
		var want []string
		for _, x := range ListRuns(inv) {
			want = append(want, x.Label)
		}
		r.Shuffle(len(inv.Cables), func(i, j int) { inv.Cables[i], inv.Cables[j] = inv.Cables[j], inv.Cables[i] })
		var got []string
		for _, x := range ListRuns(inv) {
			got = append(got, x.Label)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %q, want %q", seed, got, want)
		}
	}
}
