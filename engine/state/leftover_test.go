// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestLeftOver: n1 was changed and not tested when the run died. n2 was only looked
// at; what is left of it shows by itself. A run with an end left nothing.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	fence, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{ID: "p2"}
	var b state.Batch
	put := func(k state.Key, v any) {
		t.Helper()
		x, err := state.PutOf(k, v)
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, x)
	}
	for _, n := range []string{"n1", "n2"} {
		for step, may := range map[string]plan.EffectSet{"bmc": 0, "drivers.d": plan.Effects(plan.Config), "validate.burn": plan.Effects(plan.Load)} {
			id, by := plan.StepID(n+"/"+step), "p1"
			if step == "bmc" || n == "n1" && step == "drivers.d" {
				by = p.ID
			}
			p.Steps = append(p.Steps, plan.Step{ID: id, Subject: subject.OfNode(n), May: may})
			put(state.StepKey(id), state.Step{ID: id, State: state.StepIsDone, Plan: by})
		}
	}
	put(state.PlanKey(p.ID), p)
	for _, c := range []struct {
		outcome string
		want    []plan.StepID
	}{{"", []plan.StepID{"n1/validate.burn"}}, {state.RunDone, nil}} {
		put(state.LastRun, state.Run{ID: "r", Plan: p.ID, Outcome: c.outcome})
		if _, err := s.Append(t.Context(), fence, b); err != nil {
			t.Fatal(err)
		}
		b = state.Batch{}
		if got, err := state.ReadUnreachedSteps(t.Context(), s); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("outcome %q: %v %v, want %v", c.outcome, got, err, c.want)
		}
	}
}
