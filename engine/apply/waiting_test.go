// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// TestWaiting stops a run in the middle and asks each node what it waits for.
func TestWaiting(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	started := make(chan struct{}, 8)
	p := steps("n1/a", "n2/a", "n3/b", "n4/c")
	use := []plan.Use{{Resource: "inrush/r1", Units: 1, Hold: plan.ForStep}}
	p.Steps[0].Uses, p.Steps[1].Uses = use, use
	p.Steps[2].Needs = []plan.Need{{Step: "n1/a", On: plan.Success}}
	p.Steps[3].Needs = []plan.Need{{Step: "n3/b", On: plan.Settled}}
	c := config(t, state.NewMemory(), p, only(func(_ context.Context, _ stage.Run, s plan.Step) error {
		if s.ID == "n1/a" {
			started <- struct{}{}
			<-hold
		}
		return nil
	}))
	c.Capacity = map[string]int{"inrush/": 1}
	e := must[*apply.Executor](t)(apply.New(t.Context(), c))
	done := make(chan error, 1)
	go func() { _, err := e.Run(context.Background()); done <- err }()
	<-started
	if _, ok := e.Waiting("n1"); ok {
		t.Error("n1 runs and is said to wait")
	}
	two := eventually(t, func() (apply.Waiting, bool) { w, ok := e.Waiting("n2"); return w, ok && w.Resource != "" })
	if two.Resource != "inrush/r1" || two.InUse != "1 of 1 in use" || two.HoldersAll != 1 || len(two.Holders) != 1 || two.Holders[0].Node != "n1" || two.Holders[0].Since.IsZero() {
		t.Errorf("n2: %+v", two)
	}
	if w, ok := e.Waiting("n4"); !ok || len(w.Needs) != 1 || w.Needs[0] != "n3/b" || w.BehindAll != 1 || w.Behind[0].Step != "n1/a" {
		t.Errorf("n4: %v %+v", ok, w)
	}
	if all := e.Waits(); len(all) != 3 || all["n3"].Needs[0] != "n1/a" || all["n2"].Resource != "inrush/r1" {
		t.Errorf("all: %+v", all)
	}
	if b := e.Budgets("n1/a", "n9/a"); len(b) != 1 || b["n1/a"].Limit <= 0 {
		t.Errorf("budgets: %+v", b)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, ok := e.Waiting("n4"); ok {
		t.Error("n4 waits after the end")
	}
}

func eventually[T any](t *testing.T, look func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		v, ok := look()
		if ok || time.Now().After(end) {
			return v
		}
	}
}
