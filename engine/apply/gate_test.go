// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// rollout is a plan of waves of two nodes each: every node is written and
// accepted, every wave is tested as a group, and a gate ends every wave but the
// last one.
func rollout(most, waves int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1"}
	var nodes []string
	var ends []plan.StepID
	before := plan.StepID("")
	add := func(s plan.Step) {
		s.Deadline = plan.Budget{Limit: time.Minute}
		p.Steps = append(p.Steps, s)
	}
	for w := range waves {
		wave := fmt.Sprintf("batch-%d", w)
		group := plan.Step{ID: plan.StepID("all/test@" + wave), Stage: "x", Subject: subject.ID{Kind: subject.Group, Name: "all"},
			Group: &plan.Group{Set: "all", Min: 1, OnLoss: plan.Shrink}}
		for i := range 2 {
			name := fmt.Sprintf("n%d", 2*w+i+1)
			nodes = append(nodes, name)
			write := plan.Step{ID: plan.StepID(name + "/write"), Stage: "x", Subject: subject.OfNode(name), DepthKey: name, Version: 1,
				Inputs: []plan.Input{{Name: "image.os", Value: "new"}}}
			if before != "" {
				write.Needs = []plan.Need{{Step: before, On: plan.Success}}
			}
			add(write)
			add(plan.Step{ID: plan.StepID(name + "/boot"), Stage: "x", Subject: subject.OfNode(name), DepthKey: name, Version: 1,
				Needs: []plan.Need{{Step: write.ID, On: plan.Success}}})
			group.Group.Members = append(group.Group.Members, subject.OfNode(name))
			group.Needs = append(group.Needs, plan.Need{Step: plan.StepID(name + "/boot"), On: plan.Settled})
		}
		add(group)
		gate := plan.Step{ID: plan.StepID("site/rollout.worker@" + wave), Stage: plan.GateStage, Subject: subject.ID{Kind: subject.Site, Name: "rollout.worker"}}
		for _, m := range group.Group.Members {
			accept := plan.Step{ID: plan.StepID(m.Name + "/accept"), Stage: "x", Subject: m, Accepts: true, Needs: []plan.Need{
				{Step: plan.StepID(m.Name + "/boot"), On: plan.Success}, {Step: group.ID, On: plan.Settled}}}
			add(accept)
			ends = append(ends, accept.ID)
			gate.Needs = append(gate.Needs, plan.Need{Step: accept.ID, On: plan.Settled})
		}
		gate.Gate = &plan.Gate{Of: "worker", Wave: wave, Nodes: slices.Clone(nodes), Ends: slices.Clone(ends), Most: most}
		if w < waves-1 {
			add(gate)
		}
		before = gate.ID
	}
	return p
}

// bad is a stage table in which these steps fail.
func bad(steps ...plan.StepID) map[string]stage.Stage {
	return only(func(_ context.Context, _ stage.Run, s plan.Step) error {
		if slices.Contains(steps, s.ID) {
			return errkind.New(errkind.Mismatch, "it panics in its initrd")
		}
		return nil
	})
}

func TestGateStopsARollout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		most   int
		broken []plan.StepID
		held   string
		gates  string // states
		nodes  string // outcomes
		say    string // in the first gate's error
	}{
		{"all well", 0, nil, "", "done done", "done done done done done done", ""},
		{"canary fails", 0, []plan.StepID{"n1/write"}, "", "failed skipped", "quarantined done waiting waiting waiting waiting",
			"the rollout to worker stopped after batch-0: 1 of 2 nodes are unhealthy, at most 0 are allowed (n1); n1: it panics in its initrd"},
		{"not accepted", 0, []plan.StepID{"n2/accept"}, "", "failed skipped", "done quarantined waiting waiting waiting waiting", "(n2)"},
		{"one may fail", 1, []plan.StepID{"n1/write"}, "", "done done", "quarantined done done done done done", ""},
		{"failures of all waves add up", 1, []plan.StepID{"n1/write", "n4/boot"}, "", "done failed", "quarantined done done quarantined waiting waiting", ""},
		{"a held node is not well", 0, nil, "n2", "failed skipped", "done held waiting waiting waiting waiting", "n2: on hold (ann"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := state.NewMemory()
			cfg := config(t, s, rollout(c.most, 3), bad(c.broken...))
			if c.held != "" {
				if err := state.HoldNode(t.Context(), s, cfg.Fence, c.held, state.Hold{By: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
			var gates, nodes []string
			for _, st := range r.Steps {
				if strings.HasPrefix(string(st.ID), "site/rollout") {
					gates = append(gates, st.State)
				}
			}
			for _, n := range r.Nodes {
				nodes = append(nodes, string(n.Outcome))
			}
			if got := strings.Join(gates, " "); got != c.gates {
				t.Errorf("gates %q, want %q", got, c.gates)
			}
			if got := strings.Join(nodes, " "); got != c.nodes {
				t.Errorf("nodes %q, want %q", got, c.nodes)
			}
			if first := stepOf(r, "site/rollout.worker@batch-0"); !strings.Contains(first.Error, c.say) {
				t.Errorf("gate says %q, want %q", first.Error, c.say)
			}
			checkUntouched(t, s, r)
		})
	}
}

// checkUntouched wants the nodes behind a failed gate as they stood: neither
// quarantined nor with a step that began, and each skip with the gate as cause.
func checkUntouched(t *testing.T, s state.Store, r apply.Result) {
	t.Helper()
	nodes := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))
	for _, n := range r.Nodes {
		if n.Outcome != apply.NodeWaiting {
			continue
		}
		if n.Cause == nil || n.Cause.Kind != state.ByRollout || !strings.HasPrefix(string(n.Cause.Step), "site/rollout.worker@") {
			t.Errorf("%s waits because of %+v", n.Name, n.Cause)
		}
		if nodes[n.Name].Quarantine != nil {
			t.Errorf("%s was not touched and is quarantined: %+v", n.Name, nodes[n.Name].Quarantine)
		}
		if st := stepOf(r, n.Name+"/write"); !st.Started.IsZero() {
			t.Errorf("%s was begun", st.ID)
		}
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Cause, "batch-1") && strings.Contains(f.Cause, "batch-0") {
			t.Errorf("echo of a gate: %+v", f)
		}
	}
}

// TestGatedNodesKeepWhatTheyAreMadeOf: the record of an image that a rollout
// did not come to replace stays, and the next plan sees the change by its input.
func TestGatedNodesKeepWhatTheyAreMadeOf(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	p := rollout(0, 2)
	for i := range p.Steps {
		p.Steps[i].Inputs = []plan.Input{{Name: "image.os", Value: "old"}}
	}
	if r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, p, bad()))); r.Outcome != state.RunDone {
		t.Fatalf("%+v", r)
	}
	p = rollout(0, 2)
	p.ID = "p2"
	if _, err := apply.Run(t.Context(), config(t, s, p, bad("n1/write"))); err != nil {
		t.Fatal(err)
	}
	prior := must[plan.Prior](t)(state.ReadPrior(t.Context(), s))
	if d := prior.Steps["n3/write"]; len(d.Inputs) != 1 || d.Inputs[0].Value != "old" || !prior.Nodes["n3"].Accepted {
		t.Errorf("n3 was not touched and is on record as %+v, %+v", d, prior.Nodes["n3"])
	}
	if _, ok := prior.Steps["n3/boot"]; ok {
		t.Error("n3/boot was to follow and would be lost: nothing but its missing record says that it is due")
	}
}

// TestGateSurvivesAKill dies before and after every record of a rollout that is
// stopped, and resumes: the verdict is the same, and nobody behind it is touched.
func TestGateSurvivesAKill(t *testing.T) {
	t.Parallel()
	for _, when := range []statetest.Moment{statetest.BeforeCommit, statetest.AfterCommit} {
		for at := 1; ; at++ {
			disk := state.NewMemory()
			dying := &statetest.CrashStore{Store: disk.Reopen(), At: at, When: when}
			r, err := apply.Run(t.Context(), config(t, dying, rollout(0, 2), bad("n1/write")))
			if err != nil {
				if !errors.Is(err, statetest.ErrCrash) {
					t.Fatal(err)
				}
				if r, err = resumed(t, disk); err != nil {
					t.Fatalf("killed %s append %d: %v", when, at, err)
				}
			}
			if r.Run != "" {
				checkUntouched(t, disk, r)
				if g := stepOf(r, "site/rollout.worker@batch-0"); g.State != "failed" || outcome(r, "n3").Outcome != apply.NodeWaiting {
					t.Fatalf("killed %s append %d: gate %+v, n3 %+v", when, at, g, outcome(r, "n3"))
				}
			}
			if !dying.Dead() {
				break
			}
		}
	}
}

// resumed continues with what a killed process has left; the zero Result when it had
// come to its end.
func resumed(t *testing.T, disk *state.Memory) (apply.Result, error) {
	s := disk.Reopen()
	last, _, err := state.Get[state.Run](t.Context(), s, state.LastRun)
	if err != nil || last.Outcome != "" {
		return apply.Result{}, err
	}
	p, _, err := state.ReadUnfinishedPlan(t.Context(), s)
	if err != nil {
		return apply.Result{}, err
	}
	resume := p != nil
	if !resume {
		p = rollout(0, 2)
	}
	c := config(t, s, p, bad("n1/write"))
	c.Resume = resume
	return apply.Run(t.Context(), c)
}

func TestHalfAGateIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*plan.Step){
		"no gate":      func(s *plan.Step) { s.Gate = nil },
		"other stage":  func(s *plan.Step) { s.Stage = "x" },
		"of a node":    func(s *plan.Step) { s.Subject = subject.OfNode("n1") },
		"may do":       func(s *plan.Step) { s.May = plan.Effects(plan.Power) },
		"wants a good": func(s *plan.Step) { s.Needs[0].On = plan.Success },
	} {
		p := rollout(0, 2)
		for i := range p.Steps {
			if p.Steps[i].Gate != nil {
				change(&p.Steps[i])
			}
		}
		if _, err := apply.Run(t.Context(), config(t, state.NewMemory(), p, bad())); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}
