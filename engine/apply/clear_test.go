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
	"github.com/ironrail/ironrail/internal/subject"
)

// TestQuarantineIsLiftedByTheSameWork: a node that a test of one wave quarantined has
// a new try when a later plan does that test again, whichever wave it is of then, and
// only then.
func TestQuarantineIsLiftedByTheSameWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		again plan.StepID // the test in the second plan; empty: none
		group []string
		clear bool
	}{
		{"the same wave", "all/test@batch-0", []string{"n1", "n2"}, true},
		{"another wave", "all/test@canary", []string{"n1", "n2"}, true},
		{"no wave", "all/test", []string{"n1", "n2"}, true},
		{"the test of others", "all/test@canary", []string{"n2", "n3"}, false},
		{"another step of the node", "", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := state.NewMemory()
			blames := true
			stages := only(func(ctx context.Context, run stage.Run, st plan.Step) error {
				if st.Group == nil || !blames {
					return nil
				}
				return run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n1")}}, Cause: "its rail is slow", Action: "look"})
			})
			must[apply.Result](t)(apply.Run(t.Context(), config(t, s, rollout(5, 1), stages)))
			if !isOut(t, s, "n1") || isOut(t, s, "n2") {
				t.Fatal("the test does not quarantine n1 alone")
			}
			blames = false
			next := &plan.Plan{Format: plan.Format, ID: "p2"}
			if c.again == "" {
				next.Steps = []plan.Step{{ID: "n1/boot", Stage: "x", Subject: subject.OfNode("n1"), Deadline: plan.Budget{Limit: time.Minute}}}
			} else {
				g := plan.Step{ID: c.again, Stage: "x", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Deadline: plan.Budget{Limit: time.Minute},
					Group: &plan.Group{Set: "all", Min: 1, OnLoss: plan.Shrink}}
				for _, n := range c.group {
					g.Group.Members = append(g.Group.Members, subject.OfNode(n))
				}
				next.Steps = []plan.Step{g}
			}
			must[apply.Result](t)(apply.Run(t.Context(), config(t, s, next, stages)))
			if out := isOut(t, s, "n1"); out == c.clear {
				t.Errorf("quarantined: %v", out)
			}
			lifted := false
			for _, r := range must[[]state.Record](t)(recordsOf(t.Context(), s)) {
				lifted = lifted || r.Kind == state.Cleared && r.Subject == subject.OfNode("n1")
			}
			if lifted != c.clear {
				t.Errorf("recorded as lifted: %v", lifted)
			}
		})
	}
}

// isOut reports whether a node is quarantined.
func isOut(t *testing.T, s state.Reader, node string) bool {
	t.Helper()
	n, _, err := state.Get[state.Node](t.Context(), s, state.NodeKey(node))
	if err != nil {
		t.Fatal(err)
	}
	return n.Quarantine != nil
}

func recordsOf(ctx context.Context, s state.Reader) (all []state.Record, err error) {
	err = s.Read(ctx, 1, func(r state.Record) error { all = append(all, r); return nil })
	return all, err
}

// TestDoubtEndsWithAnAcceptance: a node whose quarantine was lifted for another test
// is in doubt for as long as that did not accept it: also when it was stopped, or
// could not be judged, by which it is neither quarantined nor accepted anew.
func TestDoubtEndsWithAnAcceptance(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	const cause = "its rail is slow"
	blames := true
	stages := only(func(ctx context.Context, run stage.Run, st plan.Step) error {
		if st.Group == nil || !blames {
			return nil
		}
		return run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n1")}}, Cause: cause, Action: "look"})
	})
	step := func(id plan.StepID, node string) plan.Step {
		return plan.Step{ID: id, Stage: "x", Subject: subject.OfNode(node), Deadline: plan.Budget{Limit: time.Minute}}
	}
	run := func(id string, least int) state.Node {
		t.Helper()
		test := step("all/test", "")
		test.Subject = subject.ID{Kind: subject.Group, Name: "all"}
		test.Group = &plan.Group{Set: "all", Members: []subject.ID{subject.OfNode("n1"), subject.OfNode("n2")}, Min: least, OnLoss: plan.Shrink}
		accept := step("n1/accept", "n1")
		accept.Accepts, accept.Needs = true, []plan.Need{{Step: test.ID, On: plan.Success}}
		must[apply.Result](t)(apply.Run(t.Context(), config(t, s, &plan.Plan{Format: plan.Format, ID: id, Steps: []plan.Step{test, accept}}, stages)))
		n, _, err := state.Get[state.Node](t.Context(), s, state.NodeKey("n1"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := run("p1", 1); n.Quarantine == nil || n.Doubt != "" {
		t.Fatalf("the test does not quarantine n1: %+v", n)
	}
	blames = false
	if n := run("p2", 3); n.Quarantine != nil || n.Doubt != cause {
		t.Errorf("not judged: %+v", n)
	}
	if p := must[plan.Prior](t)(state.ReadPrior(t.Context(), s)); p.Nodes["n1"].Accepted || p.Nodes["n1"].Lost {
		t.Errorf("it was never in service: %+v", p.Nodes["n1"])
	}
	if n := run("p3", 2); n.Quarantine != nil || n.Doubt != "" || !n.Accepted {
		t.Errorf("accepted: %+v", n)
	}
	if p := must[plan.Prior](t)(state.ReadPrior(t.Context(), s)); !p.Nodes["n1"].Accepted || p.Nodes["n1"].Lost {
		t.Errorf("prior: %+v", p.Nodes["n1"])
	}
	blames = true
	run("p4", 1)
	blames = false
	if n := run("p5", 3); !n.Accepted || n.Doubt != cause {
		t.Errorf("in service, bad, and not judged: %+v", n)
	}
	if p := must[plan.Prior](t)(state.ReadPrior(t.Context(), s)); !p.Nodes["n1"].Lost {
		t.Errorf("a node in doubt counts as in service: %+v", p.Nodes["n1"])
	}
}
