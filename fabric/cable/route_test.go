// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"math/rand/v2"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// hall is a site of racks, each with a switch and nodes at random units.
func hall(r *rand.Rand) *inventory.Inventory {
	inv := &inventory.Inventory{Site: inventory.Site{Geometry: inventory.Geometry{RackWidth: unit.Length(0.4 + r.Float64()), TrayHeight: unit.Length(2.2 + r.Float64()), Slack: unit.Length(r.Float64())}}}
	hw := &inventory.Hardware{RackUnits: 1 + r.IntN(8)}
	for i := range 2 + r.IntN(20) {
		rack := &inventory.Rack{Name: string(rune('a' + i)), Number: i, Row: []string{"", "A", "B", "row 10", "row 9"}[r.IntN(5)], Units: 48, Orientation: []string{"front", "front", "rear"}[r.IntN(3)], Position: r.IntN(3) * r.IntN(30)}
		for range 1 + r.IntN(4) {
			inv.Nodes = append(inv.Nodes, &inventory.Node{Rack: rack, Hardware: hw, Unit: 1 + r.IntN(40)})
		}
		inv.Racks = append(inv.Racks, rack)
	}
	return inv
}

func TestRouteProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		inv := hall(r)
		room := newRoom(inv)
		end := func() inventory.CableEnd { return inventory.CableEnd{Node: inv.Nodes[r.IntN(len(inv.Nodes))]} }
		for range 20 {
			a, b, c := end(), end(), end()
			ab := room.route(&inventory.Cable{From: a, To: b})
			if ba := room.route(&inventory.Cable{From: b, To: a}); ab != ba {
				t.Fatalf("seed %d: %v there and %v back", seed, ab, ba)
			}
			if ab < unit.Length(2*room.slack) {
				t.Fatalf("seed %d: %v is shorter than the slack of both ends", seed, ab)
			}
			// A way by a third port is never shorter, by more than the rounding.
			if ac, cb := room.route(&inventory.Cable{From: a, To: c}), room.route(&inventory.Cable{From: c, To: b}); ac+cb < ab-0.02 {
				t.Fatalf("seed %d: %v, but %v by a third port", seed, ab, ac+cb)
			}
		}
	}
}

// TestFartherIsLonger moves one end along the row, and across the rows.
func TestFartherIsLonger(t *testing.T) {
	t.Parallel()
	var inv inventory.Inventory
	for _, row := range []string{"A", "B", "C"} {
		for p := 1; p <= 10; p++ {
			rack := &inventory.Rack{Name: row, Row: row, Position: p, Units: 42}
			inv.Racks = append(inv.Racks, rack)
			inv.Nodes = append(inv.Nodes, &inventory.Node{Rack: rack, Unit: 20})
		}
	}
	room := newRoom(&inv)
	way := func(i int) unit.Length {
		return room.route(&inventory.Cable{From: inventory.CableEnd{Node: inv.Nodes[0]}, To: inventory.CableEnd{Node: inv.Nodes[i]}})
	}
	for i := range inv.Nodes {
		if i%10 > 0 && way(i) <= way(i-1) {
			t.Errorf("position %d: %v is not longer than %v", i%10+1, way(i), way(i-1))
		}
		if i >= 10 && way(i) <= way(i-10) {
			t.Errorf("row %d: %v is not longer than %v", i/10+1, way(i), way(i-10))
		}
	}
	// Facts by hand: same place, then 9 racks of 0.6 m: up and down 2.7 m less
	// 19.5 units of 44.45 mm, half a rack to the sides, a metre of slack.
	if got, want := way(0), unit.Length(1.3); got != want {
		t.Errorf("same port height: got %v, want %v", got, want)
	}
	if got, want := way(9), unit.Length(10.37); got != want {
		t.Errorf("nine racks on: got %v, want %v", got, want)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	rack := func(name, row string, number, position int) *inventory.Rack {
		return &inventory.Rack{Name: name, Row: row, Number: number, Position: position}
	}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{rack("a", "10", 1, 0), rack("b", "9", 7, 0), rack("c", "9", 3, 0), rack("d", "9", 1, 2), rack("e", "", 5, 0), rack("f", "9", 9, 0)}}
	want := map[string]Slot{"a": {3, 1}, "b": {2, 3}, "c": {2, 1}, "d": {2, 2}, "e": {1, 1}, "f": {2, 4}}
	got := PlaceRacks(inv)
	for _, r := range inv.Racks {
		if got[r] != want[r.Name] {
			t.Errorf("rack %s: got %v, want %v", r.Name, got[r], want[r.Name])
		}
	}
}

// TestProducts checks the table itself, and that what is chosen reaches.
func TestProducts(t *testing.T) {
	t.Parallel()
	for _, p := range products {
		if p.source == "" || (p.typ == "fibre") != (p.medium != "") || len(p.sold)+len(p.split) == 0 {
			t.Errorf("%s %s %s: no source, no lengths, or no medium", p.kind, p.speed, p.typ)
		}
		for _, l := range []lengths{p.sold, p.split} {
			for i := 1; i < len(l); i++ {
				if l[i] <= l[i-1] {
					t.Errorf("%s %s %s: lengths are not ascending", p.kind, p.speed, p.typ)
				}
			}
		}
		s := shelfOf(p.kind, p.speed)
		for _, typ := range []string{"", p.typ} {
			for need := unit.Length(0.1); need < 700; need *= 1.3 {
				w := want{typ: typ, need: need}
				got, l := s.choose(w)
				if reaches := need <= s.reach(w); reaches != (got != nil) || got != nil && (l < need || typ != "" && got.typ != typ) {
					t.Errorf("%s %s %q for %v: got %+v of %v", p.kind, p.speed, typ, need, got, l)
				}
			}
		}
	}
}

// TestFacts are the reaches that designs rest on.
func TestFacts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		kind      string
		speed     unit.BitRate
		w         want
		wantType  string
		wantMedia string
		wantLen   unit.Length
	}{
		{"NDR in the rack", infiniband, g400, want{need: 1.8}, "DAC", "", 2},
		{"NDR to the next rack", infiniband, g400, want{need: 4.2}, "ACC", "", 5},
		{"NDR in the row", infiniband, g400, want{need: 31}, "fibre", multimode, 35},
		{"NDR in the hall", infiniband, g400, want{need: 51}, "fibre", singleMode, 60},
		{"NDR to 2 km", infiniband, g400, want{need: 800}, "fibre", singleMode, 1000},
		{"NDR splitter", infiniband, g400, want{need: 2.6, splitter: true}, "DAC", "", 3},
		{"NDR twin port", infiniband, g400, want{need: 1.2, shared: true}, "fibre", multimode, 3},
		{"NDR has no AOC", infiniband, g400, want{need: 10, typ: "AOC"}, "", "", 0},
		{"NDR DAC too far", infiniband, g400, want{need: 2.1, typ: "DAC"}, "", "", 0},
		{"XDR has no DAC", infiniband, g800, want{need: 1}, "fibre", singleMode, 1},
		{"HDR to 100 m", infiniband, g200, want{need: 61}, "AOC", "", 100},
		{"HDR in a shared cage", infiniband, g200, want{need: 12, shared: true}, "fibre", multimode, 15},
		{"EDR in a shared cage", infiniband, g100, want{need: 12, shared: true}, "fibre", multimode, 15},
		{"100GbE in a shared cage", ethernet, g100, want{need: 12, shared: true}, "fibre", singleMode, 15},
		{"HDR splitter past AOC", infiniband, g200, want{need: 41, splitter: true}, "fibre", multimode, 50},
		{"HDR past 100 m", infiniband, g200, want{need: 101}, "", "", 0},
		{"400GbE in the rack", ethernet, g400, want{need: 2.4}, "DAC", "", 2.5},
		{"800GbE past copper", ethernet, g800, want{need: 2.4}, "fibre", multimode, 3},
		{"25GbE in the row", ethernet, g25, want{need: 6}, "fibre", multimode, 7},
		{"BMC", ethernet, g1, want{need: 2.1}, "copper", "", 3},
	}
	for _, tt := range tests {
		p, l := shelfOf(tt.kind, tt.speed).choose(tt.w)
		if p == nil {
			p = &product{}
		}
		if p.typ != tt.wantType || p.medium != tt.wantMedia || l != tt.wantLen {
			t.Errorf("%s: got %s %s of %v, want %s %s of %v", tt.name, p.typ, p.medium, l, tt.wantType, tt.wantMedia, tt.wantLen)
		}
	}
}

func TestPortLabels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model      string
		port, lane int
		want       string
	}{
		{"QM9700", 33, 0, "17/1"}, {"mqm9790", 64, 0, "32/2"}, {"Q3400-RA", 144, 0, "72/2"}, {"SN5600", 17, 0, "17"}, {"SN5600", 17, 2, "17/2"}, {"", 17, 0, "17"}, {"unheard-of", 3, 1, "3/1"},
	} {
		c := newCages()
		for range 2 { // the second time from what is remembered
			if got := c.label(&inventory.Switch{Model: tt.model}, tt.port, tt.lane); got != tt.want {
				t.Errorf("%s port %d lane %d: got %s, want %s", tt.model, tt.port, tt.lane, got, tt.want)
			}
		}
	}
}

// TestNoDeadEnds wants a cable of 10 m for every kind, speed and sort of cage, or
// a site could not be built that the tables allow.
func TestNoDeadEnds(t *testing.T) {
	t.Parallel()
	for _, p := range products {
		for _, w := range []want{{need: 10}, {need: 10, shared: true}, {need: 10, splitter: true}, {need: 10, splitter: true, shared: true}} {
			if w.splitter && (p.speed < g200 || p.typ != "fibre") {
				continue // slower ports are split rarely
			}
			if got, _ := shelfOf(p.kind, p.speed).choose(w); got == nil {
				t.Errorf("%s %s: nothing for %+v", p.kind, p.speed, w)
			}
		}
	}
}

// TestOneMediumACage puts two links into one cage, one of which is too long for
// multimode: both are single-mode, and what hangs on neither stays.
func TestOneMediumACage(t *testing.T) {
	t.Parallel()
	f := &inventory.Fabric{Block: inventory.Block{Name: "compute", Kind: "infiniband"}, Link: g400, Switch: inventory.SwitchModel{Model: "QM9700"}}
	at := func(name string, position int) *inventory.Switch {
		return &inventory.Switch{Name: name, Rack: &inventory.Rack{Name: name, Row: "A", Position: position, Units: 42}, Unit: 20, Fabric: f}
	}
	leaf, near, far, other := at("leaf", 1), at("near", 5), at("far", 100), at("other", 6)
	cable := func(from *inventory.Switch, port int, to *inventory.Switch, toPort int) *inventory.Cable {
		return &inventory.Cable{Fabric: f, Rail: -1, Speed: g400, From: inventory.CableEnd{Switch: from, Port: port}, To: inventory.CableEnd{Switch: to, Port: toPort}}
	}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}, Switches: []*inventory.Switch{far, leaf, near, other}, Cables: []*inventory.Cable{
		cable(leaf, 1, near, 1), cable(leaf, 2, far, 1), // one cage
		cable(other, 1, near, 2), // hangs on the other port of near's cage
		cable(leaf, 3, other, 3), // a cage of its own at both ends
	}}
	for _, r := range inv.Switches {
		inv.Racks = append(inv.Racks, r.Rack)
	}
	want := map[string]string{"leaf/1": singleMode, "leaf/2": singleMode, "other/1": singleMode, "leaf/3": multimode}
	for _, r := range ListRuns(inv) {
		if from := r.Cables[0].From.String(); r.medium != want[from] || r.Part != "fibre "+want[from]+" 400Gbps" {
			t.Errorf("%s: got %s %q, want %s", from, r.medium, r.Part, want[from])
		}
	}
}
