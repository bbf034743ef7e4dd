// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// TestChecksAreComplete: whoever adds one says all of it.
func TestChecksAreComplete(t *testing.T) {
	t.Parallel()
	var above []string
	holds := map[string]string{} // the check of each limit
	for _, c := range Checks {
		d := c.Duration
		switch {
		case c.Name == "" || slices.Contains(above, c.Name):
			t.Errorf("%q is no name of its own", c.Name)
		case !slices.Contains([]target.Scope{target.EachNode, target.EachRole, target.EachPair, target.EachGroup, target.WholeSite}, c.Scope):
			t.Errorf("%s is about %q", c.Name, c.Scope)
		case c.For == nil || c.Plan == nil || c.Run == nil:
			t.Errorf("%s cannot be planned and run", c.Name)
		case d.Source == "" || d.AsPlanned != (d.Mid == 0) || d.Low > d.Mid || d.Mid > d.High:
			t.Errorf("%s takes %+v", c.Name, d)
		case (c.Report.Title == "") != (c.Report.Read == nil):
			t.Errorf("the report of %s has a title or a reader alone", c.Name)
		case c.Docs.Says == "":
			t.Errorf("%s is not documented", c.Name)
		}
		if _, err := os.Stat(filepath.Join("..", "docs", c.Docs.Page)); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		for _, l := range c.Asks.Limits {
			if holds[l] != "" {
				t.Errorf("limit %s is held by %s and %s", l, holds[l], c.Name)
			}
			holds[l] = c.Name
		}
		for _, name := range c.Needs {
			if !slices.Contains(above, name) {
				t.Errorf("%s needs %s, which is not above it", c.Name, name)
			}
		}
		above = append(above, c.Name)
	}
	if holds[result.WriteBandwidth] != "pair" || holds[floor.PeerRead] != "bandwidth" || holds["alltoall.busbw"] != "all_reduce" || holds[floor.HostMemory] != "speed" || len(holds) != 14 {
		t.Errorf("limits are held so: %v", holds)
	}
}

// fans is a check that no site asks for: what a new one takes.
var fans = Check{Name: "fans", Scope: target.EachNode, Needs: []string{}, For: target.Any,
	Plan: func(r target.Request) plan.Step {
		return plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: subject.OfNode(r.Name), Needs: r.After(nil, r.Node), Version: 1}
	},
	Run: func(_ context.Context, j *target.Job) error {
		return errkind.New(errkind.Refused, "fans of %s", j.Node.Name)
	}}

// whole is a check of all nodes.
var whole = Check{Name: "whole", Scope: target.WholeSite, Needs: []string{"fans"}, For: target.Any,
	Plan: func(r target.Request) plan.Step {
		st := plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: subject.ID{Kind: subject.Site, Name: r.Name}, Version: 1}
		for _, n := range r.Group.Nodes {
			st.Needs = r.After(st.Needs, n)
		}
		return st
	},
	Run: func(_ context.Context, j *target.Job) error {
		return errkind.New(errkind.Refused, "%d nodes", len(j.Group.Nodes))
	}}

// TestNewCheck: a check is planned, waited for and run by its place in the list alone.
func TestNewCheck(t *testing.T) {
	t.Parallel()
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1"}, {Name: "n2"}, {Name: "old", Retired: true}}}
	s := New(inv, nil)
	s.checks = slices.Concat([]Check{fans, whole}, Checks)
	list, diags := s.Plan(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	steps := map[plan.StepID]plan.Step{}
	for _, st := range list {
		steps[st.ID] = st
	}
	for _, c := range []struct {
		step  plan.StepID
		needs []plan.Need
		runs  string
	}{
		{"n1/validate.fans", nil, "fans of n1"},
		{"site/validate.whole", []plan.Need{{Step: "n1/validate.fans", On: plan.Settled, Triggers: true}, {Step: "n2/validate.fans", On: plan.Settled, Triggers: true}}, "2 nodes"},
		{"n2/validate.accept", []plan.Need{{Step: "n2/install.boot", On: plan.Success, Triggers: true}, {Step: "n2/validate.fans", On: plan.Success}, {Step: "site/validate.whole", On: plan.Settled}}, ""},
	} {
		st, ok := steps[c.step]
		if !ok || !slices.Equal(st.Needs, c.needs) {
			t.Errorf("%s (%t) needs %+v, want %+v", c.step, ok, st.Needs, c.needs)
		}
		if err := s.Apply(t.Context(), onnodetest.NewRun(), st); c.runs != "" && (err == nil || err.Error() != c.runs) {
			t.Errorf("%s: %v, want %s", c.step, err, c.runs)
		}
	}
	if len(steps) != 5 {
		t.Errorf("%d steps are planned", len(steps))
	}
}

// TestStepsOfNoCheck: what is not planned is not run.
func TestStepsOfNoCheck(t *testing.T) {
	t.Parallel()
	s := New(&inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1"}}}, nil)
	for _, id := range []plan.StepID{"n1/validate.gates", "n1/validate.", "n2/validate.accept", "n1/install.accept", "validate.accept", "/validate.accept", "all/validate.pair", "worker/validate.uniform@canary"} {
		var run stage.Run = onnodetest.NewRun()
		if err := s.Apply(t.Context(), run, plan.Step{ID: id}); errkind.Of(err) != errkind.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
}
