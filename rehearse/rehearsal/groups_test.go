// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestTwoGroups: when every other node of a role has a slow memory, or a slow network, it is one finding about the role that
// names both groups. No node is blamed, and none accepted: but provisionally where the site allows it, and
// by a limit of the site where it has one.
func TestTwoGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                           string
		kind                           fault.Kind
		validation                     string // beside the quorum
		accepted, provisional, waiting int
		found                          bool
	}{
		{"undecided", fault.SlowMemory, "", 0, 0, 8, true},
		{"network", fault.SlowNetwork, "", 0, 0, 8, true},
		{"provisional", fault.SlowMemory, "\n  provisional = true\n", 8, 8, 0, true},
		{"limit", fault.SlowMemory, "\n  limit \"host.memory\" {\n    at_least = \"100GB/s\"\n  }\n", 8, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../examples/demo")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "site.hcl")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), "  quorum = \"75%\"\n", "  quorum = \"75%\"\n"+c.validation, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			inv, diags, _ := inventory.Load(dir, inventory.Options{Now: time.Now()})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			var faults []fault.Fault
			for i, n := range inv.Nodes {
				if i%2 == 0 {
					faults = append(faults, fault.Fault{Kind: c.kind, Node: n.Name})
				}
			}
			provisional := 0
			sum, err := Run(t.Context(), inv, Options{Seed: 7, Faults: faults, OnEnd: func(_ *virtual.World, read state.Reader) {
				provisional = countProvisional(context.Background(), t, inv, read)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.Quarantined) != 0 || len(sum.Accepted) != c.accepted || provisional != c.provisional || len(sum.Waiting) != c.waiting || (len(sum.Findings) == 1) != c.found {
				t.Fatalf("accepted %v, %d provisionally, quarantined %+v, findings %+v, waiting %+v", sum.Accepted, provisional, sum.Quarantined, sum.Findings, sum.Waiting)
			}
			for _, f := range sum.Findings {
				if !strings.Contains(f.Cause, " of role worker is in two groups: 4 nodes (r01-u01, ") || !strings.Contains(f.Action, "no node is blamed") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
