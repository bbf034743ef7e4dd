// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/command"
)

// TestLastNodeLeaves: a hand-over whose last node is decommissioned, or was only
// forgotten, is done once more; one that never had a node is not.
func TestLastNodeLeaves(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		edit      func(*inventory.Inventory)
		forgotten bool
		planned   bool
		inputs    int
	}{
		{"all are there", func(*inventory.Inventory) {}, false, true, 0},
		{"all are there, one was forgotten", func(*inventory.Inventory) {}, true, true, 1},
		{"the last one leaves", func(inv *inventory.Inventory) { inv.Nodes = inv.Nodes[:1]; inv.Nodes[0].Retired = true }, false, true, 0},
		{"the last one was forgotten", func(inv *inventory.Inventory) { inv.Nodes = nil }, true, true, 1},
		{"there was none", func(inv *inventory.Inventory) { inv.Nodes = nil }, false, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv, run := site(block("exec", map[string]cty.Value{"command": cty.TupleVal([]cty.Value{cty.StringVal("/bin/true")})})), onnodetest.NewRun()
			c.edit(inv)
			if c.forgotten {
				f, err := handover.ForgottenFact.New(handover.SubjectOf("lab"), at, "")
				if err != nil {
					t.Fatal(err)
				}
				if err := run.Learn(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			list, diags := handover.New(inv, map[string]handover.Kind{"exec": command.Command{}}, &statuses{}).Plan(run)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			i := slices.IndexFunc(list, func(s plan.Step) bool { return s.ID == "site/handover.lab" })
			if (i >= 0) != c.planned {
				t.Fatalf("planned %v, want %v", i >= 0, c.planned)
			}
			if i < 0 {
				return
			}
			if got := len(list[i].Inputs); got != c.inputs {
				t.Errorf("%d inputs, want %d: %+v", got, c.inputs, list[i].Inputs)
			}
			if len(inv.Nodes) == 1 && !slices.ContainsFunc(list[i].Needs, func(n plan.Need) bool { return n.Step == "n1/install.off" && n.Triggers }) {
				t.Errorf("it does not follow the end of the node: %+v", list[i].Needs)
			}
		})
	}
}
