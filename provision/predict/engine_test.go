// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// sleeper is a stage whose steps last as long as it is told.
type sleeper struct {
	name string
	took func(plan.Step) time.Duration
}

func (s sleeper) Name() string                                 { return s.name }
func (sleeper) Version() int                                   { return 1 }
func (sleeper) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) { return nil, nil }

func (sleeper) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

func (s sleeper) Apply(ctx context.Context, r stage.Run, st plan.Step) error {
	timer := time.NewTimer(s.took(st))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// engine runs a plan by the real engine, in virtual time, and returns its result.
func engine(t *testing.T, store state.Store, p *plan.Plan, o Options, took func(plan.Step) time.Duration) apply.Result {
	t.Helper()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	c := apply.Config{Plan: p, Store: store, Fence: fence, Capacity: o.Capacity, Parallel: o.Parallel, Stages: map[string]stage.Stage{}}
	for _, s := range p.Steps {
		c.Stages[s.Stage] = sleeper{s.Stage, took}
	}
	r, err := apply.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTheEngineDoesTheSame runs random plans by the engine itself: every step
// starts when it was predicted to.
func TestTheEngineDoesTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			p, rows, capacity := randomPlan(r, 2+r.IntN(50), 1)
			took := map[plan.StepID]time.Duration{}
			store := state.NewMemory()
			p.Format, p.ID, p.Lineage = plan.Format, fmt.Sprint("p", seed), store.Info().Lineage
			for i := range p.Steps {
				p.Steps[i].Deadline.Limit, p.Steps[i].Action = time.Hour, plan.Read
				took[p.Steps[i].ID] = rows[i].Mid
			}
			o := Options{Capacity: capacity, Parallel: 2 + r.IntN(8), Table: rows}
			e := &estimate{plan: p, opt: o}
			g, err := newGraph(p, o)
			if err != nil {
				t.Fatal(err)
			}
			e.graph = g
			e.measure()
			want := g.run(e.costs(0), 0, "")
			got := engine(t, store, p, o, func(s plan.Step) time.Duration { return took[s.ID] })
			for i, s := range got.Steps {
				if at := s.Started.Sub(got.Started); at.Round(time.Millisecond) != toDuration(want.start[i]) {
					t.Fatalf("seed %d: %s starts after %s, predicted %s", seed, s.ID, at, toDuration(want.start[i]))
				}
			}
		})
	}
}
