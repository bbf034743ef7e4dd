// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// examination is a plan of three nodes: each is looked at, loaded, tested with the
// others and accepted.
func examination(minimum int) *plan.Plan {
	p := grouped(minimum, plan.Shrink)
	p.Steps = p.Steps[:4]
	group := p.Steps[3]
	group.Needs = nil
	p.Steps = p.Steps[:3]
	for _, s := range p.Steps[:3] {
		name := s.Subject.Name
		load := s
		load.ID, load.Needs = plan.StepID(name+"/load"), []plan.Need{{Step: s.ID, On: plan.Success}}
		p.Steps = append(p.Steps, load)
		group.Needs = append(group.Needs, plan.Need{Step: load.ID, On: plan.Settled})
	}
	for i := range p.Steps {
		p.Steps[i].Examines = true
	}
	group.Examines = true
	p.Steps = append(p.Steps, group)
	for _, m := range group.Group.Members {
		last := p.Steps[0]
		last.ID, last.Subject, last.Examines, last.Accepts = plan.StepID(m.Name+"/z"), m, false, true
		last.Needs = []plan.Need{{Step: plan.StepID(m.Name + "/load"), On: plan.Success}, {Step: "all/test", On: plan.Success}}
		p.Steps = append(p.Steps, last)
	}
	return p
}

// blame makes a finding of a part of a node.
func blame(ctx context.Context, r stage.Run, node, part string) error {
	return r.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: part}}, Cause: part + " is bad", Action: "Replace it."})
}

// TestExamined: a node that is out for a bad part is tested on. What else is bad with it
// is found in the same run, and nothing of it counts as passed.
func TestExamined(t *testing.T) {
	t.Parallel()
	s, members, out := state.NewMemory(), "", ""
	bad := map[plan.StepID]string{"n2/a": "GPU 3", "n2/load": "GPU 5", "all/test": "rail 1"}
	cfg := config(t, s, examination(2), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
		if st.Group != nil {
			members, out = names(r.Members()), names(r.Examined())
		}
		if part := bad[st.ID]; part != "" {
			return blame(ctx, r, "n2", part)
		}
		return nil
	}))
	r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
	if members != "n1 n2 n3" || out != "n2" {
		t.Errorf("tested together: %q, of which out: %q", members, out)
	}
	if got := stepOf(r, "n2/load"); got.State != "examined" || got.Cause == nil || !strings.Contains(got.Cause.Text, "GPU 3 is bad") {
		t.Errorf("the load: %+v", got)
	}
	if got := stepOf(r, "n2/z"); got.State != "skipped" {
		t.Errorf("the acceptance: %+v", got)
	}
	if len(r.Findings) != 3 {
		t.Errorf("findings: %+v", r.Findings)
	}
	node, _, err := state.Get[state.Node](t.Context(), s, state.NodeKey("n2"))
	if err != nil || node.Accepted || node.Quarantine == nil || node.Quarantine.Finding.Cause != "GPU 3 is bad" || len(node.Quarantine.More) != 2 {
		t.Fatalf("%+v, %v", node.Quarantine, err)
	}
	for _, n := range []string{"n1", "n3"} {
		if got := stepOf(r, n+"/z"); got.State != "done" {
			t.Errorf("%s: %+v", n, got)
		}
	}
	step, _, err := state.Get[state.Step](t.Context(), s, state.StepKey("n2/load"))
	if err != nil || step.State != state.StepIsExamined || len(step.Blamed) != 1 {
		t.Errorf("in the state: %+v, %v", step, err)
	}
	resumed := config(t, s, examination(2), only(func(_ context.Context, _ stage.Run, st plan.Step) error {
		t.Errorf("%s is done again", st.ID)
		return nil
	}))
	resumed.Plan.ID, resumed.Resume = cfg.Plan.ID, true
	if r := must[apply.Result](t)(apply.Run(t.Context(), resumed)); len(r.Findings) != 3 || stepOf(r, "n2/load").State != "examined" {
		t.Errorf("resumed: %+v", r.Findings)
	}
}

// TestNotExamined: a node that does not answer, that is on hold, or whose examination
// failed is left alone, and one that is out makes no quorum.
func TestNotExamined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		minimum int
		at      plan.StepID
		how     error // nil: a finding
		again   bool  // the load fails as well
		load    string
		test    string
		members string
	}{
		{"not a bad part", 2, "n2/a", errkind.New(errkind.Refused, "no answer"), false, "skipped", "done", "n1 n3"},
		{"its load cannot be measured", 2, "n2/a", nil, true, "examined", "done", "n1 n3"},
		{"no quorum without it", 3, "n2/a", nil, false, "examined", "skipped", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			members := ""
			cfg := config(t, state.NewMemory(), examination(c.minimum), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
				switch {
				case st.Group != nil:
					members = names(r.Members())
				case st.ID == c.at && c.how != nil:
					return c.how
				case st.ID == c.at:
					return blame(ctx, r, "n2", "GPU 3")
				case st.ID == "n2/load" && c.again:
					return errors.New("no such program")
				}
				return nil
			}))
			r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
			if got := stepOf(r, "n2/load"); got.State != c.load {
				t.Errorf("the load: %+v", got)
			}
			if got := stepOf(r, "all/test"); got.State != c.test || members != c.members {
				t.Errorf("the test: %+v of %q", got, members)
			}
			if len(r.Findings) != 1 {
				t.Errorf("findings: %+v", r.Findings)
			}
		})
	}
}

// TestSamePart: what several tests see of one part is one finding, with the others as its
// evidence.
func TestSamePart(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	must[apply.Result](t)(apply.Run(t.Context(), config(t, s, examination(2), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
		for _, cause := range map[plan.StepID][]string{"n2/a": {"narrow", "narrow"}, "n2/load": {"slow", "slow"}}[st.ID] {
			f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n2"), Part: "GPU 3"}}, Cause: cause, Evidence: []string{"seen"}, Action: "Replace it."}
			if err := r.Blame(ctx, f); err != nil {
				return err
			}
		}
		return nil
	}))))
	node, _, err := state.Get[state.Node](t.Context(), s, state.NodeKey("n2"))
	if err != nil || node.Quarantine == nil || len(node.Quarantine.More) > 0 {
		t.Fatalf("%+v, %v", node.Quarantine, err)
	}
	if f := node.Quarantine.Finding; f.Cause != "narrow" || strings.Join(f.Evidence, ", ") != "seen, n2/load: slow" {
		t.Errorf("%+v", f)
	}
}

// TestExaminedOnce: a node that is out again for the same cause is not examined again; for
// another one it is.
func TestExaminedOnce(t *testing.T) {
	t.Parallel()
	s, loads := state.NewMemory(), 0
	for i, c := range []struct {
		part  string
		loads int
	}{{"GPU 3", 1}, {"GPU 3", 1}, {"GPU 3", 1}, {"GPU 4", 2}} {
		p := examination(2)
		p.ID += string(rune('a' + i))
		r := must[apply.Result](t)(apply.Run(t.Context(), config(t, s, p, only(func(ctx context.Context, r stage.Run, st plan.Step) error {
			switch st.ID {
			case "n2/a":
				return blame(ctx, r, "n2", c.part)
			case "n2/load":
				loads++
			}
			return nil
		}))))
		if loads != c.loads {
			t.Errorf("apply %d: loaded %d times, want %d: %+v", i+1, loads, c.loads, stepOf(r, "n2/load"))
		}
	}
}
