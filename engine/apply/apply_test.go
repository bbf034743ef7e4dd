// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// config returns a configuration for p on s, whose steps run stages.
func config(t testing.TB, s state.Store, p *plan.Plan, stages map[string]stage.Stage) apply.Config {
	t.Helper()
	p.Lineage = s.Info().Lineage
	f, err := s.Claim(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return apply.Config{Plan: p, Stages: stages, Store: s, Fence: f, Capacity: siteCapacity, MaxErase: p.Erase.Budget}
}

// steps makes a plan of steps named node/step that all run stage "x", each in
// need of the one before it on the same node.
func steps(ids ...string) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1"}
	last := map[string]plan.StepID{}
	for _, id := range ids {
		node, _, _ := strings.Cut(id, "/")
		s := plan.Step{ID: plan.StepID(id), Stage: "x", Subject: subject.OfNode(node), DepthKey: node, May: plan.Effects(plan.Power),
			Deadline: plan.Budget{Limit: time.Minute}}
		if before := last[node]; before != "" {
			s.Needs = []plan.Need{{Step: before, On: plan.Success}}
		}
		last[node] = s.ID
		p.Steps = append(p.Steps, s)
	}
	return p
}

// only makes a stage table of one stage "x".
func only(do func(context.Context, stage.Run, plan.Step) error) map[string]stage.Stage {
	return map[string]stage.Stage{"x": fake{apply: do}}
}

func outcome(r apply.Result, node string) apply.NodeResult {
	i := slices.IndexFunc(r.Nodes, func(n apply.NodeResult) bool { return n.Name == node })
	return r.Nodes[i]
}

func stepOf(r apply.Result, id string) apply.StepResult {
	i := slices.IndexFunc(r.Steps, func(s apply.StepResult) bool { return string(s.ID) == id })
	return r.Steps[i]
}

func TestFailureHasOneRootCause(t *testing.T) {
	t.Parallel()
	s, bus := state.NewMemory(), event.NewBus(1000)
	c := config(t, s, steps("n1/a", "n1/b", "n1/c", "n2/a", "n2/b"), only(func(_ context.Context, _ stage.Run, st plan.Step) error {
		if st.ID == "n1/a" {
			return errkind.New(errkind.Auth, "bmc 10.0.0.1: password refused").Do("Correct it.")
		}
		return nil
	}))
	c.Bus = bus
	r := must[apply.Result](t)(apply.Run(t.Context(), c))
	n1 := outcome(r, "n1")
	if n1.Outcome != apply.NodeQuarantined || n1.Finding.Step != "n1/a" || n1.Finding.Action != "Correct it." || outcome(r, "n2").Outcome != apply.NodeDone {
		t.Errorf("nodes: %+v", r.Nodes)
	}
	if b := stepOf(r, "n1/c"); b.State != "skipped" || b.Cause.Step != "n1/a" || b.Cause.Kind != state.ByFailure {
		t.Errorf("last step: %+v %+v", b, b.Cause)
	}
	if r.Outcome != state.RunSomeFailed || r.Counts["failed"] != 1 || r.Counts["skipped"] != 2 || r.Counts["done"] != 2 {
		t.Errorf("outcome %s, counts %v", r.Outcome, r.Counts)
	}
	failures := 0
	for sub := bus.Subscribe(0); ; {
		e, ok := sub.Ready()
		if !ok {
			break
		}
		if e.Type == event.StepFailed {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d failures were shown, want the one cause", failures)
	}
	p := must[plan.Prior](t)(state.ReadPrior(t.Context(), s))
	if len(p.Steps) != 2 || p.Nodes["n1"].Quarantined == "" || p.Nodes["n2"].Quarantined != "" {
		t.Errorf("prior: %+v", p)
	}
}

func TestFailedImageQuarantinesWhoNeedsIt(t *testing.T) {
	t.Parallel()
	s, w := state.NewMemory(), newWorld("image")
	r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, site(2), w.stages())))
	for _, n := range r.Nodes {
		if n.Outcome != apply.NodeQuarantined || n.Finding.Step != "site/image.os" || n.Finding.Action != "Fetch the image again." {
			t.Errorf("%s: %+v %+v", n.Name, n, n.Finding)
		}
	}
	if len(w.did) != 0 {
		t.Errorf("effects although the image is bad: %v", w.did)
	}
	if all := stepOf(r, "all/test"); all.State != "skipped" || all.Cause.Kind != state.NotJudged {
		t.Errorf("group: %+v", all)
	}
	if h := stepOf(r, "site/hand"); h.State != "done" {
		t.Errorf("a barrier runs when members failed: %+v", h)
	}
}

func TestObserveDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		seen    stage.Observation
		err     error
		applied bool
		state   string
	}{
		{"conforms", stage.Observation{State: stage.Conforms, Evidence: "digest ab"}, nil, false, "done"},
		{"differs", stage.Observation{State: stage.Differs}, nil, true, "done"},
		{"unknown", stage.Observation{State: stage.Unknown}, nil, true, "done"},
		{"unreachable is unknown", stage.Observation{}, errkind.New(errkind.Unreachable, "no answer"), true, "done"},
		{"another error fails", stage.Observation{}, errkind.New(errkind.Auth, "refused"), false, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			applied := false
			x := fake{observe: func(context.Context, stage.Run, plan.Step) (stage.Observation, error) { return c.seen, c.err },
				apply: func(context.Context, stage.Run, plan.Step) error { applied = true; return nil }}
			r := must[apply.Result](t)(apply.Run(t.Context(), config(t, state.NewMemory(), steps("n1/a"), map[string]stage.Stage{"x": x})))
			if got := stepOf(r, "n1/a"); applied != c.applied || got.State != c.state || got.Observed != (c.seen.State == stage.Conforms) {
				t.Errorf("applied %v, step %+v", applied, got)
			}
		})
	}
}

func TestHoldStopsANodeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := state.NewMemory()
		var effect error
		c := config(t, s, steps("n1/a", "n1/b", "n2/a", "n2/b"), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
			if st.ID == "n1/a" {
				<-ctx.Done()
				effect = r.Effect(context.Background(), newWorld().effect("n1/power", plan.Power))
				return context.Cause(ctx)
			}
			time.Sleep(10 * time.Second)
			return nil
		}))
		e := must[*apply.Executor](t)(apply.New(t.Context(), c))
		go func() {
			time.Sleep(5 * time.Second)
			if st := e.Status(); len(st.Active) != 2 || st.Counts["running"] != 2 {
				t.Errorf("status: %+v", st)
			}
			if err := e.Hold("n1", "ann", "smoke"); err != nil {
				t.Errorf("hold: %v", err)
			}
		}()
		began := time.Now()
		r := must[apply.Result](t)(e.Run(t.Context()))
		a := stepOf(r, "n1/a")
		if a.State != "interrupted" || a.Ended.Sub(began) != 5*time.Second || a.Cause.Text != "n1 is on hold (ann: smoke)" {
			t.Errorf("running step: %+v %+v", a, a.Cause)
		}
		if errkind.Of(effect) != errkind.Refused {
			t.Errorf("effect on a held node: %v", effect)
		}
		if b := stepOf(r, "n1/b"); b.State != "skipped" || b.Cause.Kind != state.ByHold {
			t.Errorf("next step: %+v", b)
		}
		if outcome(r, "n1").Outcome != apply.NodeHeld || outcome(r, "n2").Outcome != apply.NodeDone {
			t.Errorf("nodes: %+v", r.Nodes)
		}
		n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))["n1"]
		if n.Hold == nil || n.Quarantine != nil {
			t.Errorf("node: %+v", n)
		}
	})
}

func TestDrainThenResume(t *testing.T) {
	t.Parallel()
	drain := make(chan struct{})
	var e *apply.Executor
	var ran atomic.Int32
	c := config(t, state.NewMemory(), steps("n1/a", "n1/b", "n1/c"), only(func(context.Context, stage.Run, plan.Step) error {
		if ran.Add(1) == 1 {
			close(drain)
			for !e.Status().Draining {
				runtime.Gosched()
			}
		}
		return nil
	}))
	c.Drain = drain
	e = must[*apply.Executor](t)(apply.New(t.Context(), c))
	r := must[apply.Result](t)(e.Run(t.Context()))
	if r.Outcome != state.RunDrained || r.Counts["done"] != 1 || ran.Load() != 1 || outcome(r, "n1").Outcome != apply.NodeInterrupted {
		t.Errorf("drained: %s %v", r.Outcome, r.Counts)
	}
	c.Resume, c.Drain = true, nil
	r = must[apply.Result](t)(apply.Run(t.Context(), c))
	if r.Outcome != state.RunDone || ran.Load() != 3 {
		t.Errorf("resumed: %s, %d steps ran", r.Outcome, ran.Load())
	}
}

func TestInterruptThenResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := state.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		c := config(t, s, steps("n1/a", "n1/b"), only(func(ctx context.Context, _ stage.Run, st plan.Step) error {
			if st.ID == "n1/b" && ctx.Err() == nil {
				cancel()
				<-ctx.Done()
				return fmt.Errorf("read tcp: use of closed connection") // whatever it says
			}
			return ctx.Err()
		}))
		r := must[apply.Result](t)(apply.Run(ctx, c))
		if r.Outcome != state.RunInterrupted || stepOf(r, "n1/b").State != "interrupted" || stepOf(r, "n1/b").Kind != errkind.Interrupted {
			t.Errorf("interrupted: %+v", r)
		}
		n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))["n1"]
		p, run, err := state.ReadUnfinishedPlan(t.Context(), s)
		if err != nil || p == nil || p.ID != "p1" || run.Outcome != state.RunInterrupted || n.Quarantine != nil {
			t.Fatalf("unfinished: %v %+v %v, node %+v", p, run, err, n)
		}
		c.Plan, c.Resume, c.Stages = p, true, only(func(_ context.Context, _ stage.Run, st plan.Step) error {
			if st.ID != "n1/b" {
				t.Errorf("%s was done again", st.ID)
			}
			return nil
		})
		if r = must[apply.Result](t)(apply.Run(t.Context(), c)); r.Outcome != state.RunDone {
			t.Errorf("resumed: %+v", r)
		}
	})
}

func TestHangDeadlineNamesTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := config(t, state.NewMemory(), steps("n1/a", "n2/a"), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
			r.Emit(event.Event{Type: event.StepProgress, Text: "agent hello"})
			<-ctx.Done()
			if st.ID == "n2/a" {
				time.Sleep(time.Hour) // does not stop
			}
			return ctx.Err()
		}))
		r := must[apply.Result](t)(apply.Run(t.Context(), c))
		a := stepOf(r, "n1/a")
		if a.Kind != errkind.Timeout || a.Error != "not finished within 1m0s; last progress: agent hello" || a.Ended.Sub(a.Started) != time.Minute {
			t.Errorf("hung step: %+v", a)
		}
		if b := stepOf(r, "n2/a"); b.Kind != errkind.Timeout || b.Ended.Sub(b.Started) != time.Minute+30*time.Second {
			t.Errorf("step that does not stop: %+v", b)
		}
		time.Sleep(2 * time.Hour) // it ends in the end
	})
}

func TestPanicIsAFailureWithItsStack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := config(t, state.NewMemory(), steps("n1/a", "n2/a"), only(func(_ context.Context, _ stage.Run, st plan.Step) error {
		if st.ID == "n1/a" {
			panic("index out of range")
		}
		return nil
	}))
	c.EvidenceDir = dir
	r := must[apply.Result](t)(apply.Run(t.Context(), c))
	f := outcome(r, "n1").Finding
	if f == nil || len(f.Evidence) != 1 || stepOf(r, "n1/a").Kind != errkind.Internal || stepOf(r, "n2/a").State != "done" {
		t.Fatalf("finding %+v, steps %+v", f, r.Steps)
	}
	path, ok := evidence.Path(dir, f.Evidence[0])
	raw, err := os.ReadFile(path)
	if !ok || err != nil || !strings.Contains(string(raw), "index out of range") || !strings.Contains(string(raw), "goroutine") {
		t.Errorf("evidence %q: %v", f.Evidence[0], err)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	nothing := only(nil)
	erase := func() *plan.Plan {
		p := steps("n1/a", "n2/a")
		for i := range p.Steps {
			p.Steps[i].May, p.Steps[i].Erases = plan.Effects(plan.Erase), "disk os"
		}
		return p
	}
	for _, c := range []struct {
		name   string
		plan   *plan.Plan
		change func(*apply.Config)
		say    string // "" runs
	}{
		{"as it should be", steps("n1/a"), nil, ""},
		{"another state", steps("n1/a"), func(c *apply.Config) { c.Plan.Lineage = "other" }, "another state"},
		{"newer plan", steps("n1/a"), func(c *apply.Config) { c.Plan.Format = 3 }, "format 3"},
		{"refused plan", steps("n1/a"), func(c *apply.Config) { c.Plan.Refusals = []plan.Refusal{{Cause: "n1 is protected"}} }, "n1 is protected"},
		{"stale plan", steps("n1/a"), func(c *apply.Config) { c.Plan.Versions = map[subject.ID]uint64{subject.OfNode("n1"): 9} }, "node/n1 changed"},
		{"resume of another plan", steps("n1/a"), func(c *apply.Config) { c.Resume = true }, "cannot be resumed"},
		{"past the erase budget", erase(), func(c *apply.Config) { c.MaxErase = 1 }, "erases 2 nodes"},
		{"approved for fewer", erase(), func(c *apply.Config) { c.EraseApproved = 1 }, "erases 2 nodes"},
		{"approved", erase(), func(c *apply.Config) { c.EraseApproved = 2 }, ""},
		{"in the budget", erase(), func(c *apply.Config) { c.MaxErase = 2 }, ""},
		{"erases without a word", erase(), func(c *apply.Config) { c.Plan.Steps[0].Erases = "" }, "does not say what"},
		{"no such stage", steps("n1/a"), func(c *apply.Config) { c.Plan.Steps[0].Stage = "y" }, `stage "y"`},
		{"no deadline", steps("n1/a"), func(c *apply.Config) { c.Plan.Steps[0].Deadline.Limit = 0 }, "no deadline"},
		{"unknown need", steps("n1/a"), func(c *apply.Config) {
			c.Plan.Steps[0].Needs = []plan.Need{{Step: "n9/a", On: plan.Success}}
		}, "n9/a, which is not in the plan"},
		{"cycle", steps("n1/a", "n1/b"), func(c *apply.Config) {
			c.Plan.Steps[0].Needs = []plan.Need{{Step: "n1/b", On: plan.Success}}
		}, "cycle of needs: n1/a, n1/b"},
		{"twice", steps("n1/a", "n1/a"), func(c *apply.Config) { c.Plan.Steps[1].Needs = nil }, "duplicate step n1/a"},
		{"unknown resource", steps("n1/a"), func(c *apply.Config) { c.Plan.Steps[0].Uses = []plan.Use{{Resource: "moon", Units: 1}} }, "has no capacity"},
		{"never enough", steps("n1/a"), func(c *apply.Config) { c.Plan.Steps[0].Uses = []plan.Use{{Resource: "bmc/n1", Units: 2}} }, "could never start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, state.NewMemory(), c.plan, nothing)
			if c.change != nil {
				c.change(&cfg)
			}
			_, err := apply.Run(t.Context(), cfg)
			if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
				t.Errorf("error %v, want %q", err, c.say)
			}
			if run, v, _ := state.Get[state.Run](t.Context(), cfg.Store, state.LastRun); err != nil && v != state.Absent {
				t.Errorf("refused, yet a run was begun: %+v", run)
			}
		})
	}
}

func TestPlanOfBeforeIsStale(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	if _, err := apply.Run(t.Context(), config(t, s, steps("n1/a"), only(nil))); err != nil {
		t.Fatal(err)
	}
	p := steps("n1/a")
	p.ID, p.Versions = "p2", map[subject.ID]uint64{subject.OfNode("n1"): state.Absent}
	if _, err := apply.Run(t.Context(), config(t, s, p, only(nil))); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "stale") {
		t.Errorf("plan from before the last run: %v", err)
	}
	p.Versions[subject.OfNode("n1")] = must[plan.Prior](t)(state.ReadPrior(t.Context(), s)).Nodes["n1"].Version
	if _, err := apply.Run(t.Context(), config(t, s, p, only(nil))); err != nil {
		t.Errorf("plan from now: %v", err)
	}
	p1 := config(t, s, steps("n1/a"), only(nil))
	p1.Resume = true
	if _, err := apply.Run(t.Context(), p1); errkind.Of(err) != errkind.Refused {
		t.Errorf("the plan before the last one resumed: %v", err)
	}
}

func TestNewPlanGivesAQuarantinedNodeAnotherChance(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	bad := only(func(context.Context, stage.Run, plan.Step) error { return errors.New("broken") })
	if r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, steps("n1/a"), bad))); outcome(r, "n1").Outcome != apply.NodeQuarantined {
		t.Fatalf("%+v", r)
	}
	p := steps("n1/a")
	p.ID, p.Steps[0].Accepts = "p2", true
	r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, p, only(nil))))
	if n := outcome(r, "n1"); n.Outcome != apply.NodeDone || !n.Accepted {
		t.Errorf("%+v", n)
	}
}

func TestFindingThatNothingRepeatsStands(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	blame := only(func(ctx context.Context, r stage.Run, _ plan.Step) error {
		return r.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n2"), Part: "rail 0"}}, Cause: "slow"})
	})
	r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, steps("n1/test"), blame)))
	if stepOf(r, "n1/test").State != "done" || outcome(r, "n1").Outcome != apply.NodeDone || r.Outcome != state.RunSomeFailed || len(r.Findings) != 1 {
		t.Errorf("a finding about another node: %+v", r)
	}
	if p := must[plan.Prior](t)(state.ReadPrior(t.Context(), s)); len(p.Steps) != 0 || p.Nodes["n2"].Quarantined != "slow" {
		t.Errorf("a step with findings counts as good: %+v", p)
	}
	next := steps("n2/a")
	next.ID = "p2"
	r = must[apply.Result](t)(apply.Run(t.Context(), config(t, s, next, only(nil))))
	if a := stepOf(r, "n2/a"); a.State != "skipped" || a.Cause.Kind != state.ByFinding || a.Cause.Step != "n1/test" {
		t.Errorf("a plan without the test: %+v", a)
	}
	again := steps("n1/test", "n2/a")
	again.ID = "p3"
	if r = must[apply.Result](t)(apply.Run(t.Context(), config(t, s, again, only(nil)))); r.Outcome != state.RunDone {
		t.Errorf("a plan with the test: %+v", r)
	}
}

// TestSkippedStepIsPlannedAgain: what a run skips was planned for a reason, so
// that its earlier good end counts no more.
func TestSkippedStepIsPlannedAgain(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	run := func(id string, fail bool) {
		t.Helper()
		p := steps("n1/a", "n1/b")
		p.ID = id
		_, err := apply.Run(t.Context(), config(t, s, p, only(func(_ context.Context, _ stage.Run, st plan.Step) error {
			if fail && st.ID == "n1/a" {
				return errkind.New(errkind.Auth, "refused")
			}
			return nil
		})))
		if err != nil {
			t.Fatal(err)
		}
	}
	run("p1", false)
	run("p2", true)
	prior, err := state.ReadPrior(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(prior.Steps) != 0 {
		t.Errorf("%v count as done after a run that skipped them", prior.Steps)
	}
}

// TestNewPlanAfterAnInterruption: steps that an unfinished plan did not come to
// are to be done by the next one, also when they ended well before it.
func TestNewPlanAfterAnInterruption(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	for _, id := range []string{"p1", "p2"} {
		ctx, cancel := context.WithCancel(t.Context())
		p := steps("n1/a", "n1/b")
		p.ID = id
		_, err := apply.Run(ctx, config(t, s, p, only(func(_ context.Context, _ stage.Run, st plan.Step) error {
			if id == "p2" && st.ID == "n1/a" {
				cancel()
			}
			return nil
		})))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	prior, err := state.ReadPrior(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, done := prior.Steps["n1/b"]; done {
		t.Error("n1/b counts as done, and the plan that was to repeat it was stopped before")
	}
}
