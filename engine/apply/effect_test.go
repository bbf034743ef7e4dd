// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// known stores what an earlier process left of effect n1/power.
func known(t *testing.T, s state.Store, st state.EffectState) {
	t.Helper()
	f := must[state.Fence](t)(s.Claim(t.Context(), "earlier"))
	p := must[state.Put](t)(state.PutOf(state.EffectKey("n1/power"), state.Effect{Key: "n1/power", State: st, Kind: plan.Power, Step: "n1/a"}))
	if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{p}}); err != nil {
		t.Fatal(err)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	probe := func(p stage.Probe, err error) func(context.Context) (stage.Probe, string, error) {
		return func(context.Context) (stage.Probe, string, error) { return p, "power is on", err }
	}
	for _, c := range []struct {
		name   string
		before state.EffectState
		effect stage.Effect
		doErr  error
		done   int // how often Do is called
		kind   errkind.Kind
		say    string // error; "" none
		after  state.EffectState
	}{
		{name: "first time", done: 1, after: state.EffectIsDone},
		{name: "done before", before: state.EffectIsDone, after: state.EffectIsDone},
		{name: "known not done", before: state.EffectNotDone, done: 1, after: state.EffectIsDone},
		{name: "in doubt, done", before: state.EffectIntended, effect: stage.Effect{Probe: probe(stage.Done, nil)}, after: state.EffectIsDone},
		{name: "in doubt, not done", before: state.EffectIntended, effect: stage.Effect{Probe: probe(stage.NotDone, nil)}, done: 1, after: state.EffectIsDone},
		{name: "in doubt forever", before: state.EffectIntended, effect: stage.Effect{Probe: probe(stage.Doubt, nil)},
			kind: errkind.Mismatch, say: "outcome unknown", after: state.EffectIntended},
		{name: "in doubt, no probe", before: state.EffectInDoubt, kind: errkind.Mismatch, say: "no probe", after: state.EffectInDoubt},
		{name: "in doubt, harmless", before: state.EffectInDoubt, effect: stage.Effect{Repeatable: true}, done: 1, after: state.EffectIsDone},
		{name: "in doubt, probe fails", before: state.EffectIntended, effect: stage.Effect{Probe: probe("", errkind.New(errkind.Unreachable, "no answer"))},
			kind: errkind.Unreachable, say: "probe whether it happened", after: state.EffectIntended},
		{name: "refused by the other side", doErr: errkind.New(errkind.Refused, "no"), done: 1, kind: errkind.Refused, say: "no", after: state.EffectNotDone},
		{name: "a mismatch before anything was done", doErr: errkind.New(errkind.Mismatch, "another disk"), done: 1, kind: errkind.Mismatch, say: "another disk", after: state.EffectNotDone},
		{name: "a name that is not there", doErr: errkind.New(errkind.NotFound, "no disk"), done: 1, kind: errkind.NotFound, say: "no disk", after: state.EffectNotDone},
		{name: "corrupt after it had begun", doErr: errkind.Begun(errkind.New(errkind.Corrupt, "chunk 7 came corrupt")), done: 1, kind: errkind.Corrupt,
			say: "chunk 7 came corrupt", after: state.EffectInDoubt},
		{name: "the answer was lost", doErr: errkind.New(errkind.Timeout, "no answer"), done: 1, kind: errkind.Timeout, say: "no answer", after: state.EffectInDoubt},
		{name: "not in the plan", effect: stage.Effect{Kind: plan.Erase}, kind: errkind.Refused, say: "may not erase"},
		{name: "two kinds", effect: stage.Effect{Kind: plan.Power | plan.Erase}, say: "incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, did := state.NewMemory(), 0
				if c.before != "" {
					known(t, s, c.before)
				}
				f := c.effect
				f.Key, f.Does = "n1/power", "switch n1 on"
				if f.Kind == 0 {
					f.Kind = plan.Power
				}
				var intent state.EffectState
				f.Do = func(ctx context.Context) error {
					did++
					e, _, err := state.Get[state.Effect](ctx, s, state.EffectKey(f.Key))
					intent = e.State
					return errors.Join(err, c.doErr)
				}
				r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, steps("n1/a"), only(func(ctx context.Context, r stage.Run, _ plan.Step) error {
					return r.Effect(ctx, f)
				}))))
				a := stepOf(r, "n1/a")
				if did != c.done || (a.Error == "") != (c.say == "") || !strings.Contains(a.Error, c.say) || c.kind != 0 && a.Kind != c.kind {
					t.Errorf("done %d times, step %+v", did, a)
				}
				if did > 0 && intent != state.EffectIntended {
					t.Errorf("begun while its record says %q", intent)
				}
				e, _, err := state.Get[state.Effect](t.Context(), s, state.EffectKey(f.Key))
				if err != nil || e.State != c.after {
					t.Errorf("afterwards %q, want %q (%v)", e.State, c.after, err)
				}
			})
		})
	}
}

func TestConcurrentEffectsOfOneKeyAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld()
	c := config(t, state.NewMemory(), steps("n1/a"), only(func(ctx context.Context, r stage.Run, _ plan.Step) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := r.Effect(ctx, w.effect("n1/power", plan.Power)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return nil
	}))
	if _, err := apply.Run(t.Context(), c); err != nil || w.did["n1/power"] != 1 {
		t.Errorf("done %d times: %v", w.did["n1/power"], err)
	}
}

func TestRunRefusesAfterItsStep(t *testing.T) {
	t.Parallel()
	var kept stage.Run
	c := config(t, state.NewMemory(), steps("n1/a"), only(func(_ context.Context, r stage.Run, _ plan.Step) error { kept = r; return nil }))
	if _, err := apply.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := kept.Effect(t.Context(), newWorld().effect("late", plan.Power)); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("effect after the end: %v", err)
	}
	if err := kept.Blame(t.Context(), stage.Finding{}); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("finding after the end: %v", err)
	}
}
