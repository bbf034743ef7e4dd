// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// grouped is a plan of n1 to n3, each with a step, and a group step after them.
func grouped(minimum int, loss plan.LossPolicy) *plan.Plan {
	p := steps("n1/a", "n2/a", "n3/a")
	g := plan.Step{ID: "all/test", Stage: "x", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Deadline: plan.Budget{Limit: time.Minute},
		Group: &plan.Group{Set: "all", Min: minimum, OnLoss: loss}}
	for _, s := range p.Steps {
		g.Group.Members = append(g.Group.Members, s.Subject)
		g.Needs = append(g.Needs, plan.Need{Step: s.ID, On: plan.Settled})
	}
	p.Steps = append(p.Steps, g, plan.Step{ID: "n1/z", Stage: "x", Subject: subject.OfNode("n1"), Deadline: plan.Budget{Limit: time.Minute},
		Needs: []plan.Need{{Step: "all/test", On: plan.Success}}})
	return p
}

func names(ss []subject.ID) string {
	var out []string
	for _, s := range ss {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

func TestGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		minimum int
		loss    plan.LossPolicy
		broken  []plan.StepID
		held    string
		members string // "" when it is not judged
		last    string // state of the step that needs the group's success
	}{
		{"whole", 2, plan.Shrink, nil, "", "n1 n2 n3", "done"},
		{"shrinks", 2, plan.Shrink, []plan.StepID{"n3/a"}, "", "n1 n2", "done"},
		{"without a held node", 2, plan.Shrink, nil, "n2", "n1 n3", "done"},
		{"too few", 3, plan.Shrink, []plan.StepID{"n3/a"}, "", "", "skipped"},
		{"no loss allowed", 2, plan.NotJudged, []plan.StepID{"n3/a"}, "", "", "skipped"},
		{"nobody left", 0, plan.Shrink, []plan.StepID{"n1/a", "n2/a", "n3/a"}, "", "", "skipped"},
		{"it fails itself", 2, plan.Shrink, []plan.StepID{"all/test"}, "", "n1 n2 n3", "skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, members := state.NewMemory(), ""
			cfg := config(t, s, grouped(c.minimum, c.loss), only(func(_ context.Context, r stage.Run, st plan.Step) error {
				if st.Group != nil {
					members = names(r.Members())
				}
				if slices.Contains(c.broken, st.ID) {
					return errors.New("broken")
				}
				return nil
			}))
			if c.held != "" {
				if err := state.HoldNode(t.Context(), s, cfg.Fence, c.held, state.Hold{By: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
			if members != c.members || stepOf(r, "n1/z").State != c.last {
				t.Errorf("members %q, last step %+v", members, stepOf(r, "n1/z"))
			}
			if c.members == "" {
				if g := stepOf(r, "all/test"); g.State != "skipped" || g.Cause.Kind != state.NotJudged {
					t.Errorf("group: %+v", g)
				}
			}
			failed := slices.Contains(c.broken, "n1/a") || slices.Contains(c.broken, "all/test")
			if n1 := outcome(r, "n1"); (n1.Outcome == apply.NodeQuarantined) != failed {
				t.Errorf("n1 is %s: not being judged is no fault", n1.Outcome)
			}
			f, v, err := state.Get[state.Frozen](t.Context(), s, state.FrozenKey("p1", "all/test"))
			if err != nil || (v != state.Absent) != (c.members != "") || names(f.Members) != c.members {
				t.Errorf("frozen: %+v %v", f, err)
			}
		})
	}
}

// TestResumedGroupOnlyShrinks: a member that was lost when the group was frozen
// does not come back, and one that was put on hold since is left out.
func TestResumedGroupOnlyShrinks(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(t, s, grouped(1, plan.Shrink), only(func(ctx context.Context, _ stage.Run, st plan.Step) error {
		if st.Group != nil {
			cancel()
			return ctx.Err()
		}
		return nil
	}))
	if err := state.HoldNode(t.Context(), s, cfg.Fence, "n3", state.Hold{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if r := must[apply.Result](t)(apply.Run(ctx, cfg)); stepOf(r, "all/test").State != "interrupted" {
		t.Fatalf("%+v", r.Steps)
	}
	err := errors.Join(state.ReleaseNode(t.Context(), s, cfg.Fence, "n3", state.Hold{By: "ann"}),
		state.HoldNode(t.Context(), s, cfg.Fence, "n2", state.Hold{By: "ann"}))
	if err != nil {
		t.Fatal(err)
	}
	members := ""
	cfg.Resume, cfg.Stages = true, only(func(_ context.Context, r stage.Run, st plan.Step) error {
		if st.Group != nil {
			members = names(r.Members())
		}
		return nil
	})
	if _, err := apply.Run(t.Context(), cfg); err != nil || members != "n1" {
		t.Errorf("resumed with %q: %v", members, err)
	}
}

// TestResumedGroupKeepsItsQuorum: a member that the step itself found bad, before
// its process died, does not leave the others unjudged; one that was lost otherwise
// does.
func TestResumedGroupKeepsItsQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		loss    plan.LossPolicy
		minimum int
		held    string // since the death
		members string
	}{
		{"it found one bad", plan.Shrink, 3, "", "n1 n3"},
		{"no loss allowed", plan.NotJudged, 2, "", "n1 n3"},
		{"another is put on hold", plan.Shrink, 3, "n3", ""},
		{"another is put on hold, no loss allowed", plan.NotJudged, 1, "n3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := state.NewMemory()
			ctx, cancel := context.WithCancel(t.Context())
			cfg := config(t, s, grouped(c.minimum, c.loss), only(func(ctx context.Context, r stage.Run, st plan.Step) error {
				if st.Group == nil {
					return nil
				}
				err := r.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n2"), Part: "rail 3"}}, Cause: "slow", Action: "look"})
				cancel()
				return errors.Join(err, ctx.Err())
			}))
			if r := must[apply.Result](t)(apply.Run(ctx, cfg)); stepOf(r, "all/test").State != "interrupted" {
				t.Fatalf("%+v", r.Steps)
			}
			if c.held != "" {
				if err := state.HoldNode(t.Context(), s, cfg.Fence, c.held, state.Hold{By: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			members := ""
			cfg.Resume, cfg.Stages = true, only(func(_ context.Context, r stage.Run, st plan.Step) error {
				if st.Group != nil {
					members = names(r.Members())
				}
				return nil
			})
			r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
			if members != c.members || outcome(r, "n2").Outcome != apply.NodeQuarantined {
				t.Errorf("resumed with %q: %+v", members, r.Steps)
			}
		})
	}
}
