// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestModulePutRight: a memory module that the others do not have takes its node out, and once it is
// exchanged the next apply accepts the node, without installing it again.
func TestModulePutRight(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/hgx-h100", inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	slow, err := fault.Parse("kind=slow-dimm,node=r01-u17")
	if err != nil {
		t.Fatal(err)
	}
	var results []apply.Result
	var steps []string
	playThen(t, inv, []fault.Fault{slow}, func(ctx context.Context, r *Rehearsal, w *virtual.World, _ state.Reader) {
		node, _ := w.Node("r01-u17")
		if err := node.Metal().PutDIMM(3, "NEW"); err != nil {
			t.Error(err)
		}
		res, planned := applyAgain(ctx, t, r)
		for _, st := range planned {
			steps = append(steps, string(st.ID))
		}
		results = append(results, res)
	})
	if len(results) != 1 {
		t.Fatal("not applied again")
	}
	for _, n := range results[0].Nodes {
		if n.Name == "r01-u17" && !n.Accepted {
			t.Errorf("%+v, findings %+v", n, results[0].Findings)
		}
	}
	if all := strings.Join(steps, " "); strings.Contains(all, "install.") || !strings.Contains(all, "r01-u17/validate.gates") {
		t.Errorf("planned: %s", all)
	}
}

// TestRoleUnlikeItsBlock: when no node of a role has the CPUs that their hardware block says, it
// is one finding about the block or the delivery; no node is blamed, and none accepted.
func TestRoleUnlikeItsBlock(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/hgx-h100", inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var faults []fault.Fault
	for _, n := range inv.Nodes {
		faults = append(faults, fault.Fault{Kind: fault.WrongCPU, Node: n.Name})
	}
	sum, err := Run(context.Background(), inv, Options{Seed: 7, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Quarantined) != 0 || len(sum.Accepted) != 0 || len(sum.Findings) != 1 || len(sum.Waiting) != len(faults) {
		t.Fatalf("accepted %v, quarantined %+v, findings %+v, waiting %+v", sum.Accepted, sum.Quarantined, sum.Findings, sum.Waiting)
	}
	f := sum.Findings[0]
	if f.Part != "hardware.hgx-h100 CPU" || !strings.Contains(f.Cause, "CPU of 4 of 4 nodes of role worker: it is Intel(R) Xeon(R) Gold 6548N, and hardware.hgx-h100 says Xeon Platinum 8480C") || !strings.Contains(f.Action, "site.hcl:") {
		t.Errorf("%+v", f)
	}
}
