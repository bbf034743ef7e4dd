// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/provision/handover"
)

// TestDrainedStayOut: the drain of one node does not put another one back that was
// drained before it; the hand-over that waited for a drain ends it; and one that
// an interrupted run left drained comes back with the next hand-over.
func TestDrainedStayOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, run := threeOfFour(t)
	s := slurmStage(dir, st)
	ctx := t.Context()
	out := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "lab", "nodes.conf"))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "being changed") {
				list = append(list, strings.TrimPrefix(strings.Fields(line)[0], "NodeName="))
			}
		}
		return strings.Join(list, " ")
	}
	apply := func(step plan.Step) {
		t.Helper()
		if err := s.Apply(ctx, run, step); err != nil {
			t.Fatal(err)
		}
	}
	hand := steps(t, s)["site/handover.lab"]
	apply(hand)
	apply(steps(t, s)["n1/handover.drain"])
	apply(steps(t, s)["n3/handover.drain"])
	if got := out(); got != "n1 n3" {
		t.Errorf("after two drains %q are out", got)
	}
	part := hand
	part.ID = part.ID.In("canary")
	part.Needs = slices.DeleteFunc(slices.Clone(hand.Needs), func(n plan.Need) bool { return n.Step == handover.DrainID("n3") })
	apply(part)
	if got := out(); got != "n3" {
		t.Errorf("after the hand-over of n1's wave %q are out", got)
	}
	// The run ends here. The next plan sees who is out.
	next, diags := s.Plan(run)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	i := slices.IndexFunc(next, func(s plan.Step) bool { return s.ID == hand.ID })
	next[i].Needs = nil
	apply(next[i])
	if got := out(); got != "" {
		t.Errorf("after the next hand-over %q are out", got)
	}
}

// TestChangedStayOut: a drain does not end for a node that was changed and not
// accepted since, be it that its tests could not be judged or that another run has
// nothing to do with it; once it is accepted, it comes back.
func TestChangedStayOut(t *testing.T) {
	t.Parallel()
	st, run := threeOfFour(t)
	st.accepted = map[string]time.Time{"n1": run.Now, "n3": run.Now}
	st.changed = map[string]bool{"n1": true} // and n3 was drained only
	dir := t.TempDir()
	s := slurmStage(dir, st)
	hand := func(s *handover.Stage, needs ...plan.StepID) string {
		t.Helper()
		list, diags := s.Plan(run)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, step := range list {
			if step.ID != "site/handover.lab" {
				continue
			}
			step.Needs = nil
			for _, n := range needs {
				step.Needs = append(step.Needs, plan.Need{Step: n, On: plan.Settled})
			}
			if err := s.Apply(t.Context(), run, step); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(filepath.Join(dir, "lab", "nodes.conf"))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, `Reason="ironrail: was changed, and is not accepted since"`) && strings.Contains(line, "State=DRAIN") {
				out = append(out, strings.TrimPrefix(strings.Fields(line)[0], "NodeName="))
			}
			if strings.Contains(line, "being changed") {
				t.Errorf("not handed back: %s", line)
			}
		}
		return strings.Join(out, " ")
	}
	run.Now = run.Now.Add(time.Minute)
	for _, n := range []string{"n1", "n3"} {
		if err := s.Drain(t.Context(), run, n, handover.DrainOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := hand(s, handover.DrainID("n1"), handover.DrainID("n3")); got != "n1" {
		t.Errorf("by the run that drained both %q stay out", got)
	}
	if got := hand(s); got != "n1" {
		t.Errorf("by a run about other nodes %q stay out", got)
	}
	st.accepted["n1"] = run.Now.Add(time.Minute)
	if got := hand(s); got != "" {
		t.Errorf("after the acceptance %q stay out", got)
	}
}

// TestAcceptanceEndsALateDrain: the acceptance of a node that an earlier run left
// out has the hand-over planned, although it is not the node's first.
func TestAcceptanceEndsALateDrain(t *testing.T) {
	t.Parallel()
	st, run := threeOfFour(t)
	s := slurmStage(t.TempDir(), st)
	if err := s.Drain(t.Context(), run, "n1", handover.DrainOptions{}); err != nil {
		t.Fatal(err)
	}
	list, diags := s.Plan(run)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, step := range list {
		for _, n := range step.Needs {
			if node, is := strings.CutSuffix(string(n.Step), "/validate.accept"); is && n.Triggers != (node == "n1") {
				t.Errorf("acceptance of %s triggers the hand-over: %v", node, n.Triggers)
			}
		}
	}
}
