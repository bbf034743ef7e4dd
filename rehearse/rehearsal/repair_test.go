// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/bubble"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// playThen rehearses a site with faults, and calls then when all of the plan is done. It
// may plan and apply again, on the same rack and state.
func playThen(t *testing.T, inv *inventory.Inventory, faults []fault.Fault, then func(context.Context, *Rehearsal, *virtual.World, state.Reader)) {
	t.Helper()
	bubble.Run(func() {
		ctx := context.Background()
		r := &Rehearsal{inv: inv, Planned: inv, dir: t.TempDir(), Clock: clock.Wall{}, Board: network.NewMemory()}
		r.opt = Options{Seed: 7, Faults: faults, OnEnd: func(w *virtual.World, s state.Reader) { then(ctx, r, w, s) }}
		if err := r.play(ctx); err != nil {
			t.Error(err)
		}
	})
}

// applyAgain plans and applies once more, and returns the steps of the plan.
func applyAgain(ctx context.Context, t *testing.T, r *Rehearsal) (apply.Result, []plan.Step) {
	t.Helper()
	p, err := r.plan(ctx)
	if err != nil {
		t.Error(err)
		return apply.Result{}, nil
	}
	res, err := r.Apply(ctx, p)
	if err != nil {
		t.Error(err)
	}
	return res, p.Steps
}

// TestCablesPutRight: a technician exchanges two plugs back, and the next apply
// accepts the two nodes without installing them again. Before, it takes them out
// again.
func TestCablesPutRight(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	swap, err := fault.Parse("kind=cable-swap,node=r01-u09,with=r02-u01,port=rail/3")
	if err != nil {
		t.Fatal(err)
	}
	var results []apply.Result
	var titles []string
	playThen(t, inv, []fault.Fault{swap}, func(ctx context.Context, r *Rehearsal, w *virtual.World, _ state.Reader) {
		again := func() {
			res, steps := applyAgain(ctx, t, r)
			for _, st := range steps {
				titles = append(titles, string(st.ID))
			}
			results = append(results, res)
		}
		again()
		if err := w.Plant(swap); err != nil { // and so back
			t.Error(err)
		}
		again()
	})
	if len(results) != 2 {
		t.Fatal("not applied twice")
	}
	for i, want := range []int{2, 4} { // with the two partners that they are tested with
		accepted := 0
		for _, n := range results[i].Nodes {
			if n.Accepted && n.Outcome == apply.NodeDone {
				accepted++
			}
		}
		if accepted != want {
			t.Errorf("apply %d: %d accepted, want %d: %+v", i+1, accepted, want, results[i].Findings)
		}
	}
	if all := strings.Join(titles, " "); strings.Contains(all, "install.") || !strings.Contains(all, "site/cabling.check") {
		t.Errorf("planned: %s", all)
	}
}
