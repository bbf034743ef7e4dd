// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

func TestPortLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cage, port, lane int
		want             string
	}{{2, 1, 0, "1/1"}, {2, 2, 0, "1/2"}, {2, 33, 0, "17/1"}, {2, 64, 0, "32/2"}, {2, 144, 0, "72/2"}, {2, 34, 2, "17/2/2"}, {1, 17, 0, "17"}, {1, 17, 2, "17/2"}} {
		if got := PortLabel(c.cage, c.port, c.lane); got != c.want {
			t.Errorf("cage of %d, port %d lane %d: got %s, want %s", c.cage, c.port, c.lane, got, c.want)
		}
	}
}

// TestModels: every row of the table is one that can be used.
func TestModels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range models {
		got, ok := FindModel(m.Name)
		if !ok || got.Name != m.Name || seen[m.Name] {
			t.Errorf("%s is found as %q", m.Name, got.Name)
		}
		seen[m.Name] = true
		if m.Ports%m.Cage != 0 || m.Speed <= 0 || m.RackUnits < 1 || m.SourceText == "" || m.Kind != "infiniband" && m.Kind != "roce" {
			t.Errorf("%+v", m)
		}
		for _, a := range m.Aliases {
			if x, ok := FindModel(a); !ok || x.Name != m.Name {
				t.Errorf("alias %s is %q", a, x.Name)
			}
		}
	}
}

// TestDivisor is the rule of spines by hand.
func TestDivisor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ links, total, ports, want int }{
		{32, 8 * 32, 64, 4}, {32, 24 * 32, 64, 16}, {32, 64 * 32, 64, 32}, {32, 65 * 32, 64, 0}, {72, 32 * 72, 144, 18}, {7, 7, 64, 1}, {7, 65, 64, 7}, {0, 1, 1, 0}, {1, 1, 0, 0},
	} {
		if got := largestDivisor(c.links, c.total, c.ports); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// TestRacksSayThePorts: without ports in the fabric those of its switches count.
func TestRacksSayThePorts(t *testing.T) {
	t.Parallel()
	f := quantum2()
	f.Switch, f.UnitSize = inventory.SwitchModel{}, 4
	inv := site(4, f)
	inv.Switches = append(inv.Switches, &inventory.Switch{Name: "r0001/leaf-1", Label: "leaf-1", Rack: inv.Racks[0], Ports: 8, Fabric: f, Rail: -1, Plane: -1})
	if c := build(t, inv, Options{}); c.Leaves != 8 || c.Spines != 4 {
		t.Errorf("%+v", c)
	}
}

func TestCountsInWords(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Counts{
		"32 leaves, 16 spines, 1020 cables to nodes, 1024 between switches, 1:1": {Leaves: 32, Spines: 16, NodeCables: 1020, LeafSpine: 1024, Ratio: 1},
		"1 leaf, 8 cables to nodes": {Leaves: 1, NodeCables: 8},
		"2 leaves, 1 spine, 1 core, 1 cable to nodes, 5 between switches, 2.67:1": {Leaves: 2, Spines: 1, Cores: 1, NodeCables: 1, LeafSpine: 2, SpineCore: 3, Ratio: 8.0 / 3},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
