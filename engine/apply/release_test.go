// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
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

// tested is a plan of three nodes with two steps each, a test of all, and a
// hand-over. A step takes ten seconds, those of n3 a hundred.
func tested() *plan.Plan {
	p := steps("n1/a", "n1/b", "n2/a", "n2/b", "n3/a", "n3/b")
	g := plan.Step{ID: "all/test", Stage: "x", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Deadline: plan.Budget{Limit: time.Hour},
		Group: &plan.Group{Set: "all", Min: 1, OnLoss: plan.Shrink}}
	hand := plan.Step{ID: "site/hand", Stage: "x", Subject: subject.ID{Kind: subject.Site, Name: "hand"}, Barrier: true, Deadline: plan.Budget{Limit: time.Hour}}
	for i := range p.Steps {
		p.Steps[i].Deadline.Limit = time.Hour
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		g.Group.Members = append(g.Group.Members, subject.OfNode(n))
		g.Needs = append(g.Needs, plan.Need{Step: plan.StepID(n + "/b"), On: plan.Settled})
		hand.Needs = append(hand.Needs, plan.Need{Step: plan.StepID(n + "/accept"), On: plan.Settled})
	}
	p.Steps = append(p.Steps, g)
	for _, n := range []string{"n1", "n2", "n3"} {
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(n + "/accept"), Stage: "x", Subject: subject.OfNode(n), Accepts: true, Deadline: plan.Budget{Limit: time.Hour},
			Needs: []plan.Need{{Step: plan.StepID(n + "/b"), On: plan.Success}, {Step: "all/test", On: plan.Settled}}})
	}
	p.Steps = append(p.Steps, hand)
	return p
}

// slowly is the stage of tested.
func slowly(members *string) map[string]stage.Stage {
	return only(func(ctx context.Context, r stage.Run, s plan.Step) error {
		if s.Group != nil {
			*members = names(r.Members())
		}
		d := 10 * time.Second
		if s.Subject.Name == "n3" && !s.Accepts {
			d *= 10
		}
		return r.Clock().Sleep(ctx, d)
	})
}

// TestRelease: a node that is let go is taken up where its hold stopped it, as
// long as nothing went on without it.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		hold, release time.Duration // since the start
		members       string        // of the test
		outcome       apply.NodeOutcome
		says          string
		a             string // what became of n1/a
	}{
		{"while its step runs", 5 * time.Second, 8 * time.Second, "n1 n2 n3", apply.NodeDone, "resumed at n1/a: 3 steps", "done"},
		{"at the same moment", 5 * time.Second, 5 * time.Second, "n1 n2 n3", apply.NodeDone, "resumed at n1/a: 3 steps", "done"},
		{"while the others are worked on", 15 * time.Second, 190 * time.Second, "n1 n2 n3", apply.NodeDone, "resumed at n1/b: 2 steps", "done"},
		{"while it waits for the test", 25 * time.Second, 190 * time.Second, "n1 n2 n3", apply.NodeDone, "", "done"},
		{"when it was tested without it", 15 * time.Second, 205 * time.Second, "n2 n3", apply.NodeSkipped, "all/test went on without n1: the next apply does what is left", "done"},
		{"never", 5 * time.Second, 0, "n2 n3", apply.NodeHeld, "", "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				members, bus := "", event.NewBus(1000)
				s := state.NewMemory()
				cfg := config(t, s, tested(), slowly(&members))
				cfg.Bus = bus
				e := must[*apply.Executor](t)(apply.New(t.Context(), cfg))
				go func() {
					time.Sleep(c.hold)
					if err := e.Hold("n1", "ann", "smoke"); err != nil {
						t.Error(err)
					}
					time.Sleep(c.release - c.hold)
					if c.release > 0 {
						if err := e.Release("n1", "ann"); err != nil {
							t.Error(err)
						}
					}
				}()
				r := must[apply.Result](t)(e.Run(t.Context()))
				if got := outcome(r, "n1"); got.Outcome != c.outcome || members != c.members || stepOf(r, "n1/a").State != c.a {
					t.Errorf("n1 %+v, tested %q, first step %+v", got, members, stepOf(r, "n1/a"))
				}
				if c.outcome == apply.NodeDone && (r.Outcome != state.RunDone || !outcome(r, "n1").Accepted) {
					t.Errorf("outcome %s, n1 %+v", r.Outcome, outcome(r, "n1"))
				}
				if said := notes(bus, "n1"); strings.Join(said, "; ") != c.says {
					t.Errorf("said %q, want %q", said, c.says)
				}
			})
		})
	}
}

// notes are the notes about a node.
func notes(bus *event.Bus, node string) (texts []string) {
	for sub := bus.Subscribe(0); ; {
		v, ok := sub.Ready()
		if !ok {
			return texts
		}
		if v.Type == event.Note && v.Node == node {
			texts = append(texts, v.Text)
		}
	}
}

// TestReleasedNodeBehindAFailure: the hold was not the only reason.
func TestReleasedNodeBehindAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := steps("n1/a", "n1/b", "n2/a")
		p.Steps[1].Needs = append(p.Steps[1].Needs, plan.Need{Step: "n2/a", On: plan.Success})
		c := config(t, state.NewMemory(), p, only(func(ctx context.Context, r stage.Run, s plan.Step) error {
			if s.ID == "n2/a" {
				_ = r.Clock().Sleep(ctx, 10*time.Second)
				return errors.New("broken")
			}
			return r.Clock().Sleep(ctx, 20*time.Second)
		}))
		e := must[*apply.Executor](t)(apply.New(t.Context(), c))
		go func() {
			time.Sleep(5 * time.Second)
			_ = e.Hold("n1", "ann", "")
			time.Sleep(time.Second)
			_ = e.Release("n1", "ann")
		}()
		r := must[apply.Result](t)(e.Run(t.Context()))
		if a, b := stepOf(r, "n1/a"), stepOf(r, "n1/b"); a.State != "done" || b.State != "skipped" || b.Cause.Step != "n2/a" {
			t.Errorf("%+v, %+v", a, b)
		}
	})
}

// TestHoldInAnyState: of a node that is not in the plan, that is quarantined, or
// that is on hold already; and the release of one that is not on hold.
func TestHoldInAnyState(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	e := must[*apply.Executor](t)(apply.New(t.Context(), config(t, s, steps("n1/a"), only(func(context.Context, stage.Run, plan.Step) error { return errors.New("broken") }))))
	if _, err := e.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"n1", "n9", "n1"} {
		if err := e.Hold(n, "ann", "again"); err != nil {
			t.Errorf("hold %s: %v", n, err)
		}
	}
	n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))
	if n["n1"].Hold == nil || n["n1"].Quarantine == nil || n["n9"].Hold == nil {
		t.Errorf("%+v", n)
	}
	if err := e.Release("n2", "ann"); errkind.Of(err) != errkind.Refused {
		t.Errorf("release of a node that is not on hold: %v", err)
	}
	if err := e.Release("n1", "ann"); err != nil {
		t.Error(err)
	}
	if n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))["n1"]; n.Hold != nil || n.Quarantine == nil {
		t.Errorf("released: %+v", n)
	}
}

// TestHoldsFromEverywhere holds and releases nodes from many sides while the run
// goes on; the race detector watches. Who is not on hold at the end is done or was
// left behind, and nothing is lost.
func TestHoldsFromEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		members := ""
		e := must[*apply.Executor](t)(apply.New(t.Context(), config(t, state.NewMemory(), tested(), slowly(&members))))
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				node := fmt.Sprintf("n%d", 1+i%3)
				for k := range 20 {
					time.Sleep(time.Duration(1+(i*7+k*5)%11) * time.Second)
					if k%2 == 0 {
						_ = e.Hold(node, "ann", "")
					} else {
						_ = e.Release(node, "ann") // somebody else may have been first
					}
					e.Status()
				}
			})
		}
		r := must[apply.Result](t)(e.Run(t.Context()))
		wg.Wait()
		for _, s := range r.Steps {
			if s.State != "done" && s.State != "skipped" && s.State != "interrupted" {
				t.Errorf("%s is %s", s.ID, s.State)
			}
		}
	})
}

// holdsAmidRelease is a store during whose append of a release somebody holds the
// node again.
type holdsAmidRelease struct {
	state.Store
	hold func()
}

func (h holdsAmidRelease) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	if len(b.Records) == 1 && b.Records[0].Kind == state.Released {
		h.hold()
	}
	return h.Store.Append(ctx, f, b)
}

// TestHoldAmidRelease: one operator holds a node while another's release of it is
// being written: it is on hold, in the state and in the run.
func TestHoldAmidRelease(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	var e *apply.Executor
	var once sync.Once
	held := make(chan error, 1)
	store := holdsAmidRelease{s, func() {
		once.Do(func() {
			go func() { held <- e.Hold("n1", "ann", "smoke") }()
			time.Sleep(50 * time.Millisecond) // time to come in between, if it can
		})
	}}
	e = must[*apply.Executor](t)(apply.New(t.Context(), config(t, store, steps("n1/a"), only(nil))))
	if err := e.Hold("n1", "kim", "riser"); err != nil {
		t.Fatal(err)
	}
	if err := e.Release("n1", "kim"); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if n := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))["n1"]; n.Hold == nil || n.Hold.By != "ann" {
		t.Errorf("the state has %+v", n.Hold)
	}
	if r := must[apply.Result](t)(e.Run(t.Context())); outcome(r, "n1").Outcome != apply.NodeHeld {
		t.Errorf("the run: %+v", r.Nodes)
	}
	if err := e.Release("n1", "ann"); err != nil {
		t.Errorf("the run does not know that it is on hold: %v", err)
	}
}

// TestHoldTwice: a hold that is typed again without a reason takes none away.
func TestHoldTwice(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	e := must[*apply.Executor](t)(apply.New(t.Context(), config(t, s, steps("n1/a"), only(nil))))
	for _, c := range []struct{ by, reason, want string }{{"kim", "riser", "kim: riser"}, {"ann", "", "kim: riser"}, {"ann", "smoke", "ann: smoke"}} {
		if err := e.Hold("n1", c.by, c.reason); err != nil {
			t.Fatal(err)
		}
		if h := must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s))["n1"].Hold; h == nil || h.By+": "+h.Reason != c.want {
			t.Errorf("after %+v: %+v", c, h)
		}
	}
}

// TestGroupWithoutItsFocus: what a test is about is gone; its partners alone are
// not tested. What is left of it is tested against them, so that no good node waits
// for what others have.
func TestGroupWithoutItsFocus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		focus, held string
		min         int
		members     string
	}{
		{"n1", "n1", 1, ""},
		{"n1", "n2", 1, "n1 n3"},
		{"", "n1", 1, "n2 n3"},
		{"n1 n2", "n1", 2, "n2 n3"},
		{"n1 n2", "n1", 3, ""},
		{"n1 n2", "n3", 2, "n1 n2"},
	} {
		s, members := state.NewMemory(), ""
		p := grouped(c.min, plan.Shrink)
		for _, n := range strings.Fields(c.focus) {
			p.Steps[3].Group.Focus = append(p.Steps[3].Group.Focus, subject.OfNode(n))
		}
		cfg := config(t, s, p, only(func(_ context.Context, r stage.Run, st plan.Step) error {
			if st.Group != nil {
				members = names(r.Members())
			}
			return nil
		}))
		if err := state.HoldNode(t.Context(), s, cfg.Fence, c.held, state.Hold{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		r := must[apply.Result](t)(apply.Run(t.Context(), cfg))
		if g := stepOf(r, "all/test"); members != c.members || c.members == "" && (g.Cause == nil || g.Cause.Kind != state.NotJudged || !strings.Contains(g.Cause.Text, "n1")) {
			t.Errorf("about %q without %s: members %q, %+v", c.focus, c.held, members, g)
		}
	}
}
