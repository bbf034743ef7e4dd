// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/subject"
)

// room has three resources of different size.
var room = map[string]int{"pdu/": 3, "streams/head": 5, "session/": 1}

// randomPlan makes steps on nodes of their own with random needs and uses.
func randomPlan(rng *rand.Rand, n int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1"}
	for i := range n {
		s := plan.Step{ID: plan.StepID(fmt.Sprintf("s%d", i)), Stage: "x", Deadline: plan.Budget{Limit: time.Minute},
			Subject: subject.OfNode(fmt.Sprintf("n%d", i)), DepthKey: fmt.Sprint(i % 7)}
		for range min(rng.IntN(4), i) {
			on := plan.Need{Step: p.Steps[rng.IntN(i)].ID, On: plan.Success}
			if rng.IntN(3) == 0 {
				on.On = plan.Settled
			}
			s.Needs = append(s.Needs, on)
		}
		for _, r := range []string{"pdu/a", "pdu/b", "streams/head", "session/x"} {
			if rng.IntN(3) == 0 {
				h := plan.ForStep
				if rng.IntN(2) == 0 {
					h = plan.UntilReleased
				}
				s.Uses = append(s.Uses, plan.Use{Resource: r, Units: 1 + rng.IntN(limitOf(r)), Hold: h})
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// watcher checks from inside the steps what must hold at every moment.
type watcher struct {
	t    *testing.T
	fail map[plan.StepID]bool
	plan *plan.Plan

	mu      sync.Mutex
	used    map[string]int
	running int
	peak    int
	started map[plan.StepID]bool
	ended   map[plan.StepID]bool
	good    map[plan.StepID]bool
}

func (w *watcher) use(s plan.Step, sign int, which plan.HoldKind) {
	for _, u := range s.Uses {
		if which == "" || u.Hold == which {
			if w.used[u.Resource] += sign * u.Units; w.used[u.Resource] > limitOf(u.Resource) {
				w.t.Errorf("%s: %d units of %s in use, there are %d", s.ID, w.used[u.Resource], u.Resource, limitOf(u.Resource))
			}
		}
	}
}

func limitOf(r string) int {
	switch r {
	case "streams/head":
		return 5
	case "session/x":
		return 1
	}
	return 3
}

func (w *watcher) step(_ context.Context, r stage.Run, s plan.Step) error {
	w.mu.Lock()
	w.running++
	w.peak = max(w.peak, w.running)
	if w.started[s.ID] {
		w.t.Errorf("%s started twice", s.ID)
	}
	w.started[s.ID] = true
	for _, n := range s.Needs {
		failedBefore := n.On == plan.Settled && !w.started[n.Step] // skipped: settled too
		if n.On == plan.Success && !w.good[n.Step] || n.On == plan.Settled && !w.ended[n.Step] && !failedBefore {
			w.t.Errorf("%s started before its need %s", s.ID, n.Step)
		}
	}
	w.use(s, 1, "")
	w.mu.Unlock()
	runtime.Gosched()
	w.mu.Lock()
	w.use(s, -1, plan.UntilReleased)
	w.mu.Unlock()
	for _, u := range s.Uses {
		if u.Hold == plan.UntilReleased {
			r.Release(u.Resource)
			r.Release(u.Resource) // twice is harmless
		}
	}
	runtime.Gosched()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.use(s, -1, plan.ForStep)
	w.running--
	w.ended[s.ID] = true
	if w.fail[s.ID] {
		return errors.New("broken")
	}
	w.good[s.ID] = true
	return nil
}

// TestRandomPlans: no resource is ever overcommitted, no step is lost, started
// twice or before its needs, and exactly those that depend on a failure are
// skipped.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := randomPlan(rng, 120)
		w := &watcher{t: t, plan: p, fail: map[plan.StepID]bool{}, used: map[string]int{}, started: map[plan.StepID]bool{},
			ended: map[plan.StepID]bool{}, good: map[plan.StepID]bool{}}
		if seed%2 == 1 {
			for range 5 {
				w.fail[p.Steps[rng.IntN(len(p.Steps))].ID] = true
			}
		}
		c := config(t, state.NewMemory(), p, only(w.step))
		c.Capacity, c.Parallel = room, 1+int(seed%20)
		r := must[apply.Result](t)(apply.Run(t.Context(), c))
		want := expected(p, w.fail)
		for _, s := range r.Steps {
			if s.State != want[s.ID] {
				t.Errorf("seed %d: %s is %s, want %s", seed, s.ID, s.State, want[s.ID])
			}
			if s.State == "skipped" && !w.fail[s.Cause.Step] {
				t.Errorf("seed %d: %s is skipped because of %s, which did not fail", seed, s.ID, s.Cause.Step)
			}
		}
		if w.peak > c.Parallel {
			t.Errorf("seed %d: %d steps at once, %d are allowed", seed, w.peak, c.Parallel)
		}
		if t.Failed() {
			return
		}
	}
}

// expected works the final states out one step after another.
func expected(p *plan.Plan, fail map[plan.StepID]bool) map[plan.StepID]string {
	out := map[plan.StepID]string{}
	for _, s := range p.Steps { // needs come first
		switch {
		case slices.ContainsFunc(s.Needs, func(n plan.Need) bool { return n.On == plan.Success && out[n.Step] != "done" }):
			out[s.ID] = "skipped"
		case fail[s.ID]:
			out[s.ID] = "failed"
		default:
			out[s.ID] = "done"
		}
	}
	return out
}

// TestDepthFirst: with room for one step, the first node is brought to its end
// before the second is begun.
func TestDepthFirst(t *testing.T) {
	t.Parallel()
	var order []plan.StepID
	p := steps("n1/a", "n2/a", "n10/a", "n1/b", "n2/b", "n10/b")
	c := config(t, state.NewMemory(), p, only(func(_ context.Context, _ stage.Run, s plan.Step) error {
		order = append(order, s.ID)
		return nil
	}))
	c.Parallel = 1
	if _, err := apply.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := []plan.StepID{"n1/a", "n1/b", "n2/a", "n2/b", "n10/a", "n10/b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// TestLargeClaimIsNotStarved: a step that needs all of a resource is not passed
// forever by small ones.
func TestLargeClaimIsNotStarved(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Format: plan.Format, ID: "p1"}
	for i := range 50 {
		units := 1
		if i == 3 {
			units = 3
		}
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(fmt.Sprint("s", i)), Stage: "x", Subject: subject.OfNode(fmt.Sprint(i)),
			Deadline: plan.Budget{Limit: time.Minute}, Uses: []plan.Use{{Resource: "pdu/a", Units: units, Hold: plan.ForStep}}})
	}
	var mu sync.Mutex
	var order []plan.StepID
	c := config(t, state.NewMemory(), p, only(func(_ context.Context, _ stage.Run, s plan.Step) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s.ID)
		return nil
	}))
	c.Capacity = room
	if _, err := apply.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(order, "s3"); i != 3 {
		t.Errorf("the large step came %d., want right after the three before it", i+1)
	}
}

// large is a plan of nodes with eight steps each, of which one loads a resource,
// and a group that tests all of them.
func large(nodes int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1", Steps: make([]plan.Step, 0, 8*nodes)}
	for i := range nodes {
		node := fmt.Sprintf("n%05d", i)
		for k := range 8 {
			s := plan.Step{ID: plan.StepID(fmt.Sprintf("%s/%d", node, k)), Stage: "x", DepthKey: node, Subject: subject.OfNode(node), Deadline: plan.Budget{Limit: time.Minute}}
			if k == 2 {
				s.Uses = []plan.Use{{Resource: "streams/head", Units: 1, Hold: plan.ForStep}}
			}
			if k > 0 {
				s.Needs = []plan.Need{{Step: p.Steps[len(p.Steps)-1].ID, On: plan.Success}}
			}
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}

// nothing is a store that takes every append and keeps none.
type nothing struct{ *state.Memory }

func (nothing) Append(context.Context, state.Fence, state.Batch) (uint64, error) { return 1, nil }

// encoding is the processor time of making the objects that a run of p writes: the
// plan, and for each step its start and end with its node.
func encoding(b *testing.B, p *plan.Plan) time.Duration {
	began := cputime.Used()
	put := func(k state.Key, v any) { must[state.Put](b)(state.PutOf(k, v)) }
	put(state.PlanKey(p.ID), p)
	now := time.Now().UTC()
	for _, s := range p.Steps {
		put(state.StepKey(s.ID), state.Step{ID: s.ID, State: state.StepRunning, Plan: p.ID, Run: "20260102T150405-ABCDEF", Started: now})
		put(state.StepKey(s.ID), state.Step{ID: s.ID, State: state.StepIsDone, Plan: p.ID, Run: "20260102T150405-ABCDEF", Started: now, Ended: now})
		for range 2 {
			put(state.NodeKey(s.Subject.Name), state.Node{Name: s.Subject.Name, Run: "20260102T150405-ABCDEF"})
		}
	}
	return cputime.Used() - began
}

// BenchmarkSchedule runs plans of steps that take no time, on a store in memory, and
// on one that keeps nothing. cpu-us/step is the processor time of all goroutines and
// of the garbage collector, which a busy machine does not falsify; encode-us/step is
// that of the JSON of its objects alone, measured apart; sched-us/step is the rest:
// the graph, the resources, the goroutines, the calls.
func BenchmarkSchedule(b *testing.B) {
	stores := map[string]func() state.Store{
		"memory":  func() state.Store { return state.NewMemory() },
		"nothing": func() state.Store { return nothing{state.NewMemory()} },
	}
	for _, nodes := range []int{1_250, 12_500} {
		for _, name := range []string{"memory", "nothing"} {
			b.Run(fmt.Sprintf("%d-steps/%s", 8*nodes, name), func(b *testing.B) {
				p := large(nodes)
				b.ReportAllocs()
				var used time.Duration
				for b.Loop() {
					c := config(b, stores[name](), p, only(nil))
					c.Capacity = map[string]int{"streams/head": 64}
					began := cputime.Used()
					r, err := apply.Run(context.Background(), c)
					used += cputime.Used() - began
					if err != nil || r.Outcome != state.RunDone {
						b.Fatalf("%s %v", r.Outcome, err)
					}
				}
				steps := float64(len(p.Steps))
				total := used.Seconds() * 1e6 / steps / float64(b.N)
				b.ReportMetric(b.Elapsed().Seconds()*1e6/steps/float64(b.N), "us/step")
				b.ReportMetric(total, "cpu-us/step")
				if name == "nothing" {
					encode := encoding(b, p).Seconds() * 1e6 / steps
					b.ReportMetric(encode, "encode-us/step")
					b.ReportMetric(total-encode, "sched-us/step")
				}
			})
		}
	}
}

// BenchmarkStatus asks a run of 12,500 nodes how it stands.
func BenchmarkStatus(b *testing.B) {
	c := config(b, state.NewMemory(), large(12_500), only(nil))
	c.Capacity = map[string]int{"streams/head": 64}
	e := must[*apply.Executor](b)(apply.New(context.Background(), c))
	b.ReportAllocs()
	for b.Loop() {
		if s := e.Status(); len(s.Nodes) != 12_500 {
			b.Fatal("nodes are missing")
		}
	}
}
