// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory/power"
)

// TestInrush: what a node claims of its circuits while it is switched on, and
// what these have room for. The rack is that of TestDGXH100: four nodes, each
// with one supply on each phase of each PDU; a breaker carries 415 V / √3 x 100 A
// = 23,960 W.
func TestInrush(t *testing.T) {
	t.Parallel()
	capped := fmt.Sprintf(dgx, 3)
	steep := strings.Replace(capped, "supplies", "inrush = \"40kW\"\n supplies", 1)
	oneFeed := strings.Replace(dgxRack, `["a", "b"]`, `["a"]`, 1)
	small := strings.ReplaceAll(dgxRack, `"100A"`, `"40A"`)
	flat := strings.Replace(capped, "supplies", "inrush = \"10kW\"\n supplies", 1)
	for _, c := range []struct {
		name, hardware, rack string
		circuits             string // of n1
		watts, room          int    // of the first circuit
	}{
		// A third of 1.5 x 10.2 kW - 10.2 kW, as the other feed may be lost; the four
		// nodes then draw 13,600 W of each phase.
		{"two feeds", capped, dgxRack, "r01/a/L1 r01/a/L2 r01/a/L3 r01/b/L1 r01/b/L2 r01/b/L3", 1700, 10360},
		{"its hardware says its inrush", steep, dgxRack, "r01/a/L1 r01/a/L2 r01/a/L3 r01/b/L1 r01/b/L2 r01/b/L3", 9934, 10360},
		// Six supplies on three phases: the same watts without any loss.
		{"one feed", capped, oneFeed, "r01/a/L1 r01/a/L2 r01/a/L3", 1700, 10360},
		// 9,584 W a breaker: overfull, and one node at a time all the same.
		{"alone it may always", capped, small, "r01/a/L1 r01/a/L2 r01/a/L3 r01/b/L1 r01/b/L2 r01/b/L3", 1700, 1700},
		{"it draws no more than at work", flat, dgxRack, "r01/a/L1 r01/a/L2 r01/a/L3 r01/b/L1 r01/b/L2 r01/b/L3", 1, 10360},
		{"between two phases", capped, strings.ReplaceAll(dgxRack, `"415V"`, `"208V"`),
			"r01/a/L1-L2 r01/a/L2-L3 r01/a/L3-L1 r01/b/L1-L2 r01/b/L2-L3 r01/b/L3-L1", 1700, 1700}, // 12,009 W a breaker
		{"one phase", capped, strings.ReplaceAll(dgxRack, "phases  = 3", "phases  = 1"), "r01/a/L r01/b/L", 5100, 5100},
		{"no feeds", capped, strings.Replace(dgxRack, `feeds = ["a", "b"]`, "", 1), "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := power.NewInrush(site(t, c.hardware, c.rack))
			var circuits []string
			for _, x := range in.Of("n1") {
				circuits = append(circuits, x.Circuit)
			}
			if got := strings.Join(circuits, " "); got != c.circuits {
				t.Fatalf("n1 claims of %q, want %q", got, c.circuits)
			}
			if c.circuits == "" {
				if len(in.Room) > 0 {
					t.Errorf("room: %v", in.Room)
				}
				return
			}
			first := in.Of("n1")[0]
			if first.Watts != c.watts || in.Room[first.Circuit] != c.room {
				t.Errorf("n1 claims %d W of %d W, want %d of %d", first.Watts, in.Room[first.Circuit], c.watts, c.room)
			}
			if got := slices.Sorted(maps.Keys(in.Room)); strings.Join(got, " ") != strings.Join(slices.Sorted(slices.Values(circuits)), " ") {
				t.Errorf("room of %v", got)
			}
		})
	}
}

// TestInrushOfShelves: trays claim of the shelves of their rack. 48 supplies of
// 5.5 kW carry 264 kW, 18 trays and 9
// switches draw 131.4 kW.
func TestInrushOfShelves(t *testing.T) {
	t.Parallel()
	in := power.NewInrush(site(t, tray, nvl72("n+n")))
	for node, claims := range map[string][]power.Claim{"t01": in.Of("t01"), "t18": in.Of("t18")} {
		if len(claims) != 1 || claims[0] != (power.Claim{Circuit: "nvl/shelves", Watts: 3150}) {
			t.Errorf("%s claims %+v", node, claims)
		}
	}
	if len(in.Room) != 1 || in.Room["nvl/shelves"] != 132_600 {
		t.Errorf("room: %v", in.Room)
	}
}
