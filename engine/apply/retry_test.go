// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestRetries: what may pass is tried again after pauses that grow, what does not
// is not.
func TestRetries(t *testing.T) {
	t.Parallel()
	no := errkind.New
	for _, c := range []struct {
		name  string
		fails []error // of the first tries; then it works
		limit time.Duration
		may   plan.EffectSet
		seen  stage.Conformity // by Observe
		blame bool
		tries int
		state string
		kind  errkind.Kind
	}{
		{name: "nobody answers, once", fails: []error{no(errkind.Unreachable, "no route")}, tries: 2, state: "done"},
		{name: "three times", fails: slices.Repeat([]error{no(errkind.Timeout, "no answer")}, 3), tries: 4, state: "done"},
		{name: "forever", fails: slices.Repeat([]error{no(errkind.Unreachable, "no route")}, 9), tries: 4, state: "failed", kind: errkind.Unreachable},
		{name: "by the other side", fails: []error{no(errkind.Interrupted, "connection reset")}, tries: 2, state: "done"},
		{name: "another error in between", fails: []error{no(errkind.Unreachable, "no route"), no(errkind.Auth, "refused")}, tries: 2, state: "failed", kind: errkind.Auth},
		{name: "password", fails: []error{no(errkind.Auth, "refused")}, tries: 1, state: "failed", kind: errkind.Auth},
		{name: "refused", fails: []error{no(errkind.Refused, "protected")}, tries: 1, state: "failed", kind: errkind.Refused},
		{name: "unsupported", fails: []error{no(errkind.Unsupported, "no such thing")}, tries: 1, state: "failed", kind: errkind.Unsupported},
		{name: "mismatch", fails: []error{no(errkind.Mismatch, "another serial")}, tries: 1, state: "failed", kind: errkind.Mismatch},
		{name: "corrupt", fails: []error{no(errkind.Corrupt, "another digest")}, tries: 1, state: "failed", kind: errkind.Corrupt},
		{name: "not classified", fails: []error{errors.New("oops")}, tries: 1, state: "failed", kind: errkind.Internal},
		{name: "somebody is to blame", fails: []error{no(errkind.Unreachable, "no route")}, blame: true, tries: 1, state: "failed", kind: errkind.Unreachable},
		{name: "no room before its deadline", fails: slices.Repeat([]error{no(errkind.Unreachable, "no route")}, 9), limit: 15 * time.Second, tries: 2, state: "failed", kind: errkind.Unreachable},
		{name: "erases, and nobody knows", fails: []error{no(errkind.Timeout, "no answer")}, may: plan.Effects(plan.Erase), seen: stage.Unknown, tries: 1, state: "failed", kind: errkind.Timeout},
		{name: "erases, and did not", fails: []error{no(errkind.Timeout, "no answer")}, may: plan.Effects(plan.Erase), seen: stage.Differs, tries: 2, state: "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, tries, observed := state.NewMemory(), 0, 0
				p := steps("n1/a")
				p.Steps[0].Deadline.Limit, p.Steps[0].May = cmp.Or(c.limit, 10*time.Minute), c.may
				if c.may.Has(plan.Erase) {
					p.Steps[0].Erases, p.Erase.Budget = "disk os", 1
				}
				x := fake{observe: func(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
					observed++
					return stage.Observation{State: c.seen}, nil
				}, apply: func(ctx context.Context, r stage.Run, _ plan.Step) error {
					tries++
					if observed < tries {
						t.Errorf("try %d without a look before it", tries)
					}
					if tries > len(c.fails) {
						return nil
					}
					if c.blame {
						_ = r.Blame(ctx, stage.Finding{Cause: "its BMC is dead"})
					}
					return c.fails[tries-1]
				}}
				cfg := config(t, s, p, map[string]stage.Stage{"x": x})
				r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
				got := stepOf(r, "n1/a")
				if tries != c.tries || got.State != c.state || c.kind != 0 && got.Kind != c.kind {
					t.Errorf("%d tries, step %+v", tries, got)
				}
				if took := got.Ended.Sub(got.Started); took > 110*time.Second || c.tries > 1 && took < 3*time.Second {
					t.Errorf("it took %s", took)
				}
				if n := records(t, s, state.StepRetried); n != c.tries-1 {
					t.Errorf("%d records of %d retries", n, c.tries-1)
				}
			})
		})
	}
}

// records counts the lines of a kind in the journal.
func records(t *testing.T, s state.Store, kind state.RecordKind) (n int) {
	t.Helper()
	if err := s.Read(t.Context(), 1, func(r state.Record) error {
		if r.Kind == kind {
			n++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRetryDoesNotRepeatAnEffect: what was done in a try whose answer was lost is
// probed in the next one, and not done again.
func TestRetryDoesNotRepeatAnEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		x := w.effect("n1/power", plan.Power)
		do := x.Do
		x.Do = func(ctx context.Context) error {
			if err := do(ctx); err != nil {
				return err
			}
			return errkind.New(errkind.Timeout, "the answer was lost")
		}
		c := config(t, state.NewMemory(), steps("n1/a"), only(func(ctx context.Context, r stage.Run, _ plan.Step) error { return r.Effect(ctx, x) }))
		r := must[apply.Result](t)(apply.Run(t.Context(), c))
		if stepOf(r, "n1/a").State != "done" || w.did["n1/power"] != 1 {
			t.Errorf("done %d times, step %+v", w.did["n1/power"], stepOf(r, "n1/a"))
		}
	})
}

// TestHoldEndsARetry: a step that waits for its next try is stopped at once.
func TestHoldEndsARetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := steps("n1/a")
		p.Steps[0].Deadline.Limit = time.Hour
		c := config(t, state.NewMemory(), p, only(func(context.Context, stage.Run, plan.Step) error {
			return errkind.New(errkind.Unreachable, "no route")
		}))
		e := must[*apply.Executor](t)(apply.New(t.Context(), c))
		go func() {
			time.Sleep(2 * time.Second)
			if a := e.Status().Active; len(a) != 1 || a[0].Tries != 1 || !strings.Contains(a[0].Text, "try 2 of 4 in ") {
				t.Errorf("while it waits: %+v", a)
			}
			if err := e.Hold("n1", "ann", ""); err != nil {
				t.Error(err)
			}
		}()
		a := stepOf(must[apply.Result](t)(e.Run(t.Context())), "n1/a")
		if a.State != "interrupted" || a.Ended.Sub(a.Started) != 2*time.Second {
			t.Errorf("%+v", a)
		}
	})
}

// TestSlowStepSaysSoOnce: past its P95, and again never.
func TestSlowStepSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := steps("n1/a", "n2/a")
		for i := range p.Steps {
			p.Steps[i].Deadline = plan.Budget{Limit: time.Hour, Slow: 9 * time.Minute, Samples: 240}
		}
		bus := event.NewBus(100)
		c := config(t, state.NewMemory(), p, only(func(_ context.Context, r stage.Run, s plan.Step) error {
			r.Emit(event.Event{Type: event.StepProgress, Text: "trains memory"})
			if s.ID == "n1/a" {
				time.Sleep(30 * time.Minute)
			}
			return nil
		}))
		c.Bus = bus
		e := must[*apply.Executor](t)(apply.New(t.Context(), c))
		go func() {
			time.Sleep(10 * time.Minute)
			if a := e.Status().Active; len(a) != 1 || !a[0].Slow {
				t.Errorf("after ten minutes: %+v", a)
			}
		}()
		if r := must[apply.Result](t)(e.Run(t.Context())); r.Outcome != state.RunDone {
			t.Errorf("a slow step is no failed one: %+v", r)
		}
		var slow []event.Event
		for sub := bus.Subscribe(0); ; {
			v, ok := sub.Ready()
			if !ok {
				break
			}
			if v.Type == event.StepSlow {
				slow = append(slow, v)
			}
		}
		if len(slow) != 1 || slow[0].Node != "n1" || slow[0].Text != "slower than the P95 of 240 earlier runs on this site: 9m0s; now: trains memory" {
			t.Errorf("%+v", slow)
		}
	})
}
