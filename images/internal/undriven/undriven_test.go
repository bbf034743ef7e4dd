// SPDX-License-Identifier: Apache-2.0

package undriven

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// TestCheckSystem: nodes whose system gets no driver stack, and that have one, are found with both
// places; rails are set up on all systems.
func TestCheckSystem(t *testing.T) {
	t.Parallel()
	at := func(line int) hcl.Range {
		return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: line, Column: 1}}
	}
	for name, c := range map[string]struct {
		os      string
		drivers []*inventory.Driver
		fabric  string
		v       *inventory.Validation
		want    []string
	}{
		"nothing":        {"rhel", nil, "", &inventory.Validation{Name: "v"}, nil},
		"tests":          {"rhel", nil, "", &inventory.Validation{Name: "v", Pair: &inventory.PairTest{}, Decl: at(9)}, []string{`Validation "v" of node "n1" has tests between nodes`}},
		"driver":         {"rhel", []*inventory.Driver{{Block: inventory.Block{Name: "tools"}}}, "infiniband", nil, []string{`node "n1", which it is for, has driver.tools`}},
		"rails":          {"rhel", nil, "roce", nil, nil},
		"both":           {"rhel", []*inventory.Driver{{}}, "roce", nil, []string{"driver."}},
		"infiniband":     {"rhel", nil, "infiniband", nil, nil},
		"another system": {"ubuntu", []*inventory.Driver{{}}, "roce", nil, nil},
		"made here":      {"", []*inventory.Driver{{}}, "roce", &inventory.Validation{Name: "v", Pair: &inventory.PairTest{}}, nil},
		"not said":       {"", []*inventory.Driver{{}}, "roce", nil, nil},
	} {
		i := &inventory.Image{Block: inventory.Block{Kind: "raw", Name: "os", Decl: at(1), Ranges: map[string]hcl.Range{"os": at(4)}}, OS: c.os}
		if name == "made here" {
			i.Kind, i.Release, i.Ranges = "rhel", "9", map[string]hcl.Range{"release": at(4)}
		}
		h := &inventory.Hardware{}
		if c.fabric != "" {
			h.NICs = []inventory.NIC{{Fabric: &inventory.Fabric{Block: inventory.Block{Kind: c.fabric, Name: "f"}}, Ports: []inventory.NICPort{{}}}}
		}
		inv := &inventory.Inventory{Images: []*inventory.Image{i}, Nodes: []*inventory.Node{
			{Name: "other", Drivers: c.drivers, Hardware: h}, {Name: "n1", Image: i, Drivers: c.drivers, Hardware: h, Validation: c.v, Decl: at(9)}, {Name: "n2", Image: i, Drivers: c.drivers, Hardware: h},
		}}
		var found diag.List
		Check(inv, i, &found)
		if len(found) != len(c.want) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		for n, want := range c.want {
			d := found[n]
			if d.Check != systemCheck || (d.Severity == diag.Warning) != strings.Contains(want, "tests between") || d.Subject.Start.Line != 4 || len(d.Related) != 1 || d.Related[0].Range.Start.Line != 9 || !strings.Contains(d.Detail, want) {
				t.Errorf("%s: %+v, want %q", name, d, want)
			}
		}
	}
}
