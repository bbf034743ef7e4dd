// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// chaos is a random run: what its steps do, and what must hold at every moment of
// it. Times are virtual.
type chaos struct {
	t     *testing.T
	seed  uint64
	plan  *plan.Plan
	bus   *event.Bus // nil: nobody listens
	takes map[plan.StepID]time.Duration
	fails map[plan.StepID]errkind.Kind // its kind; those that pass fail once

	mu      sync.Mutex
	used    map[string]int
	running int
	peak    int
	starts  map[plan.StepID]int
	tries   map[plan.StepID]int
}

func newChaos(t *testing.T, seed uint64, rng *rand.Rand, steps int) *chaos {
	c := &chaos{t: t, seed: seed, plan: randomPlan(rng, steps), takes: map[plan.StepID]time.Duration{}, fails: map[plan.StepID]errkind.Kind{},
		used: map[string]int{}, starts: map[plan.StepID]int{}, tries: map[plan.StepID]int{}}
	for i := range c.plan.Steps {
		s := &c.plan.Steps[i]
		s.Deadline.Limit = time.Hour
		s.Subject = subject.OfNode(fmt.Sprintf("n%d", i%(steps/4))) // four steps a node
		c.takes[s.ID] = time.Duration(1+rng.IntN(90)) * time.Second
	}
	return c
}

// gates puts two gates into the plan, that let fewer and fewer failures pass.
func (c *chaos) gates(rng *rand.Rand) {
	for k := range 2 {
		at := len(c.plan.Steps) * (k + 1) / 3
		g := plan.Step{ID: plan.StepID(fmt.Sprintf("gate%d", k)), Stage: plan.GateStage, Subject: subject.ID{Kind: subject.Site, Name: "rollout"},
			Deadline: plan.Budget{Limit: time.Minute}, Gate: &plan.Gate{Of: "w", Wave: "canary", Most: 2 - 2*k}}
		for range 4 {
			on := c.plan.Steps[rng.IntN(at)]
			if on.Gate != nil || slices.Contains(g.Gate.Ends, on.ID) {
				continue
			}
			g.Gate.Ends = append(g.Gate.Ends, on.ID)
			g.Gate.Nodes = append(g.Gate.Nodes, on.Subject.Name)
			g.Needs = append(g.Needs, plan.Need{Step: on.ID, On: plan.Settled})
		}
		c.plan.Steps = slices.Insert(c.plan.Steps, at, g)
		for i := at + 1; i < len(c.plan.Steps); i += 5 {
			s := &c.plan.Steps[i]
			s.Needs = append(s.Needs, plan.Need{Step: g.ID, On: plan.Success})
		}
	}
}

func (c *chaos) use(s plan.Step, sign int, which plan.HoldKind) {
	for _, u := range s.Uses {
		if which == "" || u.Hold == which {
			if c.used[u.Resource] += sign * u.Units; c.used[u.Resource] > limitOf(u.Resource) {
				c.t.Errorf("seed %d: %s: %d units of %s in use, there are %d", c.seed, s.ID, c.used[u.Resource], u.Resource, limitOf(u.Resource))
			}
		}
	}
}

// step takes its time, gives back early what it may, and fails if it is to.
func (c *chaos) step(ctx context.Context, r stage.Run, s plan.Step) error {
	c.mu.Lock()
	c.tries[s.ID]++
	first := c.tries[s.ID] == 1
	if first && c.fails[s.ID] == errkind.Unreachable {
		c.starts[s.ID]++
		c.mu.Unlock()
		return errkind.New(errkind.Unreachable, "no route")
	}
	c.starts[s.ID]++
	c.running++
	c.peak = max(c.peak, c.running)
	c.use(s, 1, "")
	c.mu.Unlock()
	err := r.Clock().Sleep(ctx, c.takes[s.ID]/2)
	c.mu.Lock()
	c.use(s, -1, plan.UntilReleased)
	c.mu.Unlock()
	for _, u := range s.Uses {
		if u.Hold == plan.UntilReleased {
			r.Release(u.Resource)
		}
	}
	if err == nil {
		err = r.Clock().Sleep(ctx, c.takes[s.ID]/2)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use(s, -1, plan.ForStep)
	c.running--
	switch kind, bad := c.fails[s.ID]; {
	case err != nil:
		return err
	case bad && kind != errkind.Unreachable:
		return errkind.New(kind, "broken")
	}
	return nil
}

// run applies the plan; meanwhile is what operators do.
func (c *chaos) run(parallel int, meanwhile func(*apply.Executor)) apply.Result {
	cfg := config(c.t, state.NewMemory(), c.plan, only(c.step))
	cfg.Capacity, cfg.Parallel, cfg.Bus = room, parallel, c.bus
	e := must[*apply.Executor](c.t)(apply.New(c.t.Context(), cfg))
	var wg sync.WaitGroup
	defer wg.Wait()
	if meanwhile != nil {
		wg.Go(func() { meanwhile(e) })
	}
	r := must[apply.Result](c.t)(e.Run(c.t.Context()))
	if c.peak > parallel {
		c.t.Errorf("seed %d: %d steps at once, %d are allowed", c.seed, c.peak, parallel)
	}
	return r
}

// seeds is how many random runs each property is tried on; IRONRAIL_SEEDS asks for
// more.
const seeds = 12

// eachSeed runs a property on random plans.
func eachSeed(t *testing.T, steps int, property func(t *testing.T, rng *rand.Rand, c *chaos)) {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("IRONRAIL_SEEDS"), 10, 32)
	if err != nil {
		n = seeds
	}
	for seed := range n {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			property(t, rng, newChaos(t, seed, rng, steps))
		})
		if t.Failed() {
			return
		}
	}
}

// TestNoReadyStepStarves is the comment at resources: while a step is parked on a
// resource no less urgent step starts on it, and it is not sent from one to the
// next without end. Among very many small claims on two resources are a few that
// need all of both.
func TestNoReadyStepStarves(t *testing.T) {
	t.Parallel()
	most := 0
	eachSeed(t, 200, func(t *testing.T, rng *rand.Rand, c *chaos) {
		for i := range c.plan.Steps {
			s := &c.plan.Steps[i]
			s.Needs, s.DepthKey, s.Uses = nil, "", []plan.Use{{Resource: []string{"pdu/a", "pdu/b"}[rng.IntN(2)], Units: 1, Hold: plan.ForStep}}
			if i > 10 && i < 70 && i%20 == 0 {
				s.Uses = []plan.Use{{Resource: "pdu/a", Units: 3, Hold: plan.ForStep}, {Resource: "pdu/b", Units: 3, Hold: plan.ForStep}}
			}
		}
		c.bus = event.NewBus(1 << 14)
		r := c.run(4+rng.IntN(30), nil)
		waits := map[plan.StepID][]event.Event{}
		for sub := c.bus.Subscribe(0); ; {
			v, ok := sub.Ready()
			if !ok {
				break
			}
			if v.Type == event.StepReady && !strings.Contains(v.Text, "its turn") {
				waits[plan.StepID(v.Step)] = append(waits[plan.StepID(v.Step)], v)
			}
		}
		for i, s := range c.plan.Steps {
			most = max(most, c.starves(r, i, waits[s.ID]))
		}
	})
	if most < 3 {
		t.Errorf("no step was sent elsewhere more than %d times: the property proves nothing", most)
	}
}

// starves checks the waits of one step and returns how many they were. The plan has
// no needs and no depth: a step is more urgent than those after it.
func (c *chaos) starves(r apply.Result, i int, waits []event.Event) int {
	const patience = 4
	s := c.plan.Steps[i]
	for k, v := range waits {
		until := r.Steps[i].Started
		if k+1 < len(waits) {
			until = waits[k+1].Time
		}
		on, _, _ := strings.Cut(strings.TrimPrefix(v.Text, "waits for "), ":")
		for j := i + 1; j < len(r.Steps); j++ {
			if uses(c.plan.Steps[j], on) && r.Steps[j].Started.After(v.Time) && r.Steps[j].Started.Before(until) {
				c.t.Errorf("seed %d: %s passed %s, which was parked on %s", c.seed, r.Steps[j].ID, s.ID, on)
			}
		}
	}
	urgent := 0
	for j := range i {
		if len(waits) > 0 && r.Steps[j].Started.After(waits[0].Time) && slices.ContainsFunc(s.Uses, func(u plan.Use) bool { return uses(c.plan.Steps[j], u.Resource) }) {
			urgent++
		}
	}
	if bound := 1 + patience + 1 + len(s.Uses)*(1+urgent); len(waits) > bound {
		c.t.Errorf("seed %d: %s was parked %d times, at most %d are allowed", c.seed, s.ID, len(waits), bound)
	}
	return len(waits)
}

func uses(s plan.Step, resource string) bool {
	return slices.ContainsFunc(s.Uses, func(u plan.Use) bool { return u.Resource == resource })
}

// TestFailureStopsExactlyItsDependants, of its node those that follow included:
// the state of every step is what going through the plan by hand gives.
func TestFailureStopsExactlyItsDependants(t *testing.T) {
	t.Parallel()
	retried := 0
	eachSeed(t, 80, func(t *testing.T, rng *rand.Rand, c *chaos) {
		for i := range c.plan.Steps { // a node of its own for each: no failure is another's by its node
			c.plan.Steps[i].Subject = subject.OfNode(fmt.Sprintf("own%d", i))
		}
		bad := map[plan.StepID]bool{}
		for range 4 {
			id := c.plan.Steps[rng.IntN(len(c.plan.Steps))].ID
			c.fails[id] = []errkind.Kind{errkind.Mismatch, errkind.Auth, errkind.Unreachable}[rng.IntN(3)]
			bad[id] = c.fails[id] != errkind.Unreachable // that passes at the second try
		}
		r := c.run(20, nil)
		want := expected(c.plan, bad)
		for _, s := range r.Steps {
			if s.State != want[s.ID] {
				t.Errorf("seed %d: %s is %s, want %s", c.seed, s.ID, s.State, want[s.ID])
			}
			most := 1
			if c.fails[s.ID] == errkind.Unreachable && s.State == "done" {
				most, retried = 2, retried+1
			}
			if c.starts[s.ID] > most || (c.starts[s.ID] > 0) != (s.State == "done" || s.State == "failed") {
				t.Errorf("seed %d: %s, which is %s, was started %d times", c.seed, s.ID, s.State, c.starts[s.ID])
			}
		}
	})
	if retried == 0 {
		t.Error("nothing was tried again: the property proves less than it says")
	}
}

// TestNothingIsLost, whatever operators do meanwhile: every step settles, none is
// done twice, and who is neither held nor taken out, nor behind a gate, a failure
// or what went on without it, is done.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	outcomes := map[apply.NodeOutcome]int{}
	eachSeed(t, 80, func(t *testing.T, rng *rand.Rand, c *chaos) {
		c.gates(rng)
		for range 3 {
			c.fails[c.plan.Steps[rng.IntN(len(c.plan.Steps))].ID] = errkind.Mismatch
		}
		holds := map[string]int{}
		r := c.run(10, func(e *apply.Executor) {
			for range 8 {
				time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
				node := fmt.Sprintf("n%d", rng.IntN(20))
				holds[node]++
				if err := e.Hold(node, "ann", ""); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if rng.IntN(4) > 0 {
					time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
					if err := e.Release(node, "ann"); err != nil {
						t.Error(err)
					}
				}
			}
		})
		for _, s := range r.Steps {
			i := slices.IndexFunc(c.plan.Steps, func(p plan.Step) bool { return p.ID == s.ID })
			node := c.plan.Steps[i].Subject.Name
			switch {
			case !slices.Contains([]string{"done", "failed", "skipped", "interrupted"}, s.State):
				t.Errorf("seed %d: %s is lost: %s", c.seed, s.ID, s.State)
			case c.starts[s.ID] > 1+holds[node]:
				t.Errorf("seed %d: %s was started %d times, its node held %d times", c.seed, s.ID, c.starts[s.ID], holds[node])
			case s.State != "done" && s.State != "failed" && s.Cause == nil:
				t.Errorf("seed %d: %s is %s for no reason", c.seed, s.ID, s.State)
			case s.State == "interrupted" && holds[node] == 0:
				t.Errorf("seed %d: %s was interrupted and never held", c.seed, s.ID)
			}
		}
		for _, n := range r.Nodes {
			outcomes[n.Outcome]++
		}
	})
	for _, o := range []apply.NodeOutcome{apply.NodeDone, apply.NodeHeld, apply.NodeQuarantined, apply.NodeSkipped, apply.NodeWaiting} {
		if outcomes[o] == 0 {
			t.Errorf("no node ended %s: %v", o, outcomes)
		}
	}
}

// TestDrainedRunGoesOn: a run that is drained at any moment, and resumed, ends as
// one that was not.
func TestDrainedRunGoesOn(t *testing.T) {
	t.Parallel()
	eachSeed(t, 40, func(t *testing.T, rng *rand.Rand, c *chaos) {
		cfg := config(t, state.NewMemory(), c.plan, only(c.step))
		cfg.Capacity, cfg.Parallel = room, 6
		runs := 0
		for {
			e := must[*apply.Executor](t)(apply.New(t.Context(), cfg))
			ended := make(chan struct{})
			if runs < 5 {
				go func() {
					select {
					case <-time.After(time.Duration(rng.IntN(200)) * time.Second):
						e.Drain()
					case <-ended:
					}
				}()
			}
			r := must[apply.Result](t)(e.Run(t.Context()))
			close(ended)
			synctest.Wait()
			if runs++; r.Outcome == state.RunDone {
				break
			}
			if r.Outcome != state.RunDrained || runs > 6 {
				t.Fatalf("seed %d: run %d: %s %v", c.seed, runs, r.Outcome, r.Counts)
			}
			cfg.Resume = true
		}
		for id, n := range c.starts {
			if n != 1 {
				t.Errorf("seed %d: %s was started %d times in %d runs", c.seed, id, n, runs)
			}
		}
	})
}
