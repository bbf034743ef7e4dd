// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestLeaseEnds: when the lease ends, the call under way is cancelled, no effect begins, nothing
// is recorded, and the run says why it ended; the next owner probes what was begun.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	below := state.NewMemory()
	s := statetest.NewLeasedStore(below)
	begun, done := 0, 0
	stages := only(func(ctx context.Context, run stage.Run, st plan.Step) error {
		for i := range 2 {
			err := run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/%d", st.ID, i), Kind: plan.Power, Does: "switch it on",
				Do: func(ctx context.Context) error {
					begun++
					s.EndLease()
					<-ctx.Done()
					return errkind.New(errkind.Timeout, "%w", context.Cause(ctx))
				}})
			if err == nil {
				done++
			}
			if i == 1 && !errors.Is(err, state.ErrLeaseEnded) {
				t.Errorf("the second effect: %v", err)
			}
		}
		return nil
	})
	r, err := apply.Run(t.Context(), config(t, s, steps("n1/a", "n1/b"), stages))
	if !errors.Is(err, state.ErrLeaseEnded) || errkind.Of(err) != errkind.Refused || errkind.Action(err) == "" || r.Outcome != state.RunInterrupted {
		t.Errorf("the run ended as %s: %v", r.Outcome, err)
	}
	if begun != 1 || done != 0 {
		t.Errorf("%d effects were begun and %d were done", begun, done)
	}
	e, _, err := state.Get[state.Effect](t.Context(), below, state.EffectKey("n1/a/0"))
	if err != nil || e.State != state.EffectIntended {
		t.Errorf("the effect under way is left as %s: %v", e.State, err)
	}
	if run, _, err := state.Get[state.Run](t.Context(), below, state.LastRun); err != nil || !run.Resumable() {
		t.Errorf("the run: %+v, %v", run, err)
	}
}

// lateLease is a lease whose time has passed and whose keeper has not noticed: the process
// was stopped meanwhile.
type lateLease struct {
	state.Store
	passed atomic.Bool
}

func (s *lateLease) Lease(state.Fence) state.Lease { return s }

func (s *lateLease) Until() (time.Time, bool) {
	if s.passed.Load() {
		return time.Now().Add(-time.Second), true
	}
	return time.Now().Add(time.Hour), true
}

func (s *lateLease) Ended() <-chan struct{} { return nil }

// Append lets the lease pass with the intent of an effect.
func (s *lateLease) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	n, err := s.Store.Append(ctx, f, b)
	for _, r := range b.Records {
		if r.Kind == state.EffectIntent {
			s.passed.Store(true)
		}
	}
	return n, err
}

// TestLeasePasses: a process that was stopped until its lease had passed begins no effect,
// although nothing has said yet that the lease has ended.
func TestLeasePasses(t *testing.T) {
	t.Parallel()
	s := &lateLease{Store: state.NewMemory()}
	var begun atomic.Bool
	stages := only(func(ctx context.Context, run stage.Run, st plan.Step) error {
		return run.Effect(ctx, stage.Effect{Key: string(st.ID), Kind: plan.Power, Does: "switch it on",
			Do: func(context.Context) error { begun.Store(true); return nil }})
	})
	_, err := apply.Run(t.Context(), config(t, s, steps("n1/a"), stages))
	if !errors.Is(err, state.ErrLeaseEnded) || begun.Load() {
		t.Errorf("the effect was begun: %v; the run ended with %v", begun.Load(), err)
	}
}

// TestManyAreAffected: a finding that takes many nodes out of service is not kept with all
// their names at each of them.
func TestManyAreAffected(t *testing.T) {
	t.Parallel()
	const nodes = 400
	s := state.NewMemory()
	stages := only(func(ctx context.Context, run stage.Run, _ plan.Step) error {
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Site, Name: "role.worker"}}}, Cause: "two kinds of nodes", Action: "compare them"}
		for i := range nodes {
			f.Affected = append(f.Affected, subject.OfNode(fmt.Sprintf("n%d", i)))
			f.About = append(f.About, subject.OfNode(fmt.Sprintf("other%d", i)))
		}
		return run.Blame(ctx, f)
	})
	if _, err := apply.Run(t.Context(), config(t, s, steps("n0/a"), stages)); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		o, ok, err := s.Object(t.Context(), state.NodeKey(name))
		if err != nil || !ok || len(o.Value) > 1000 {
			t.Fatalf("node %s: %v, %d bytes: %v", name, ok, len(o.Value), err)
		}
		n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))[name]
		if n.Quarantine == nil || !slices.Equal(n.Quarantine.Finding.Affected, []subject.ID{subject.OfNode(name)}) {
			t.Fatalf("node %s: %+v", name, n.Quarantine)
		}
	}
	whole := 0
	if err := s.Read(t.Context(), 1, func(r state.Record) error {
		var f stage.Finding
		if r.Kind == state.FindingMade && json.Unmarshal(r.Data, &f) == nil && len(f.Affected) == nodes && len(f.About) == nodes {
			whole++
		}
		return nil
	}); err != nil || whole != 1 {
		t.Errorf("%d records have the whole finding: %v", whole, err)
	}
}

// TestManyQuarantinesAreLifted: a run that lifts more quarantines than one append holds
// lifts all of them, wherever it dies in between.
func TestManyQuarantinesAreLifted(t *testing.T) {
	t.Parallel()
	const nodes = 260
	var ids []string
	for i := range nodes {
		ids = append(ids, fmt.Sprintf("n%d/a", i))
	}
	for at := 0; at < 12; at++ {
		s, bad := state.NewMemory(), true
		stages := only(func(context.Context, stage.Run, plan.Step) error {
			if bad {
				return errkind.New(errkind.Mismatch, "the wrong disk")
			}
			return nil
		})
		must[apply.Result](t)(apply.Run(t.Context(), config(t, s, steps(ids...), stages)))
		bad = false
		next := steps(ids...)
		next.ID = "p2"
		crash := &statetest.CrashStore{Store: s, At: at, When: statetest.AfterCommit}
		if _, err := apply.Run(t.Context(), config(t, crash, next, stages)); (err != nil) != (at > 0) {
			t.Fatalf("a run that dies at append %d: %v", at, err)
		}
		if at > 0 {
			alive := s.Reopen()
			c := config(t, alive, next, stages)
			run, _, err := state.Get[state.Run](t.Context(), alive, state.LastRun)
			c.Resume = err == nil && run.Plan == next.ID
			must[apply.Result](t)(apply.Run(t.Context(), c))
		}
		for i := range nodes {
			if isOut(t, s, fmt.Sprintf("n%d", i)) {
				t.Fatalf("after a death at append %d node %d is in quarantine", at, i)
			}
		}
		if r := must[state.Run](t)(lastOf(t.Context(), s)); r.Clearing || r.Outcome != state.RunDone {
			t.Errorf("the last run: %+v", r)
		}
	}
}

func lastOf(ctx context.Context, s state.Reader) (state.Run, error) {
	r, _, err := state.Get[state.Run](ctx, s, state.LastRun)
	return r, err
}

// TestALargeFact is kept whole; the journal says that it was learned, without its value.
func TestALargeFact(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	huge := hugeFact(t, subject.OfNode("n1"))
	stages := only(func(ctx context.Context, run stage.Run, st plan.Step) error {
		return run.Learn(ctx, huge)
	})
	r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, steps("n1/a"), stages)))
	if a := stepOf(r, "n1/a"); a.State != "done" {
		t.Errorf("the step of the large fact: %+v", a)
	}
	if f, _, err := state.Get[fact.Fact](t.Context(), s, state.FactKey(huge.Key)); err != nil || string(f.Value) != string(huge.Value) {
		t.Errorf("the fact has %d bytes of %d: %v", len(f.Value), len(huge.Value), err)
	}
	learned := 0
	err := s.Read(t.Context(), 0, func(r state.Record) error {
		if r.Kind == state.FactLearned {
			learned++
			if len(r.Data) > 1000 {
				t.Errorf("its record has %d bytes", len(r.Data))
			}
		}
		return nil
	})
	if err != nil || learned != 1 {
		t.Errorf("%d records of the fact: %v", learned, err)
	}
}

func hugeFact(t *testing.T, of subject.ID) fact.Fact {
	t.Helper()
	return fact.Fact{Key: fact.Key{Subject: of, Name: "node.hardware"}, Value: []byte(`"` + strings.Repeat("x", state.MaxValue) + `"`)}
}
