// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// burning is a plan of nodes that each burn in, are compared and tested together,
// and accepted, and of a hand-over of all. Half of such burn-ins end within 20
// minutes and a P95 of half an hour.
func burning(nodes, quorum int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1"}
	group := func(id plan.StepID, least int) plan.Step {
		return plan.Step{ID: id, Stage: "x", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Barrier: true, Deadline: plan.Budget{Limit: time.Minute},
			Group: &plan.Group{Set: "all", Min: least, OnLoss: plan.Shrink, Partners: 2}}
	}
	heat, pair := group("all/heat", 1), group("all/pair", quorum)
	hand := plan.Step{ID: "site/hand", Stage: "x", Subject: subject.ID{Kind: subject.Site, Name: "hand"}, Barrier: true, Deadline: plan.Budget{Limit: time.Minute}}
	var accepts []plan.Step
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		node := subject.OfNode(name)
		burn := plan.Step{ID: plan.StepID(name + "/burn"), Stage: "x", Subject: node, Deadline: plan.Budget{Expected: 20 * time.Minute, Slow: 30 * time.Minute, Limit: 9 * time.Hour}}
		p.Steps = append(p.Steps, burn)
		for _, g := range []*plan.Step{&heat, &pair} {
			g.Group.Members = append(g.Group.Members, node)
			g.Needs = append(g.Needs, plan.Need{Step: burn.ID, On: plan.Settled})
		}
		accepts = append(accepts, plan.Step{ID: plan.StepID(name + "/accept"), Stage: "x", Subject: node, Accepts: true, Deadline: plan.Budget{Limit: time.Minute},
			Needs: []plan.Need{{Step: burn.ID, On: plan.Success}, {Step: heat.ID, On: plan.Settled}, {Step: pair.ID, On: plan.Success}}})
		hand.Needs = append(hand.Needs, plan.Need{Step: plan.StepID(name + "/accept"), On: plan.Settled})
	}
	pair.Needs = append(pair.Needs, plan.Need{Step: heat.ID, On: plan.Settled})
	p.Steps = append(append(append(p.Steps, heat, pair), accepts...), hand)
	return p
}

// lately runs a plan in which the burn-in of each node takes a time of its own, and
// returns who was tested and when.
type lately struct {
	takes  map[string]time.Duration
	store  state.Store
	change func(*apply.Config)
	test   func() error // what the test of pairs does; nil: nothing

	result  apply.Result
	members map[plan.StepID]string
	at      map[plan.StepID]time.Duration // since the run began
}

func (l *lately) run(t *testing.T, p *plan.Plan) {
	t.Helper()
	l.members, l.at = map[plan.StepID]string{}, map[plan.StepID]time.Duration{}
	began := time.Now()
	if l.store == nil {
		l.store = state.NewMemory()
	}
	cfg := config(t, l.store, p, only(func(ctx context.Context, r stage.Run, s plan.Step) error {
		switch {
		case s.Group != nil:
			l.members[s.ID], l.at[s.ID] = names(r.Members()), time.Since(began)
			if s.ID == "all/pair" && l.test != nil {
				return l.test()
			}
		case s.Subject.Kind == subject.Site:
			l.at[s.ID] = time.Since(began)
		case strings.HasSuffix(string(s.ID), "/burn"):
			return r.Clock().Sleep(ctx, l.takes[s.Subject.Name])
		}
		return nil
	}))
	if l.change != nil {
		l.change(&cfg)
	}
	l.result = must[apply.Result](t)(apply.Run(t.Context(), cfg))
}

// TestLateNode: one node burns for hours. The others go on without it half an hour
// after the last of them came, are accepted and handed over; it is called late, and
// its burn-in goes on to its end.
func TestLateNode(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for _, c := range []struct {
		name    string
		quorum  int
		takes   []time.Duration
		change  func(*plan.Plan, *apply.Config)
		members string
		at      time.Duration // of the test; it is looked for late nodes once a minute
	}{
		{"one is late", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, nil, "n1 n2 n3", 52 * m},
		{"it comes in time", 3, []time.Duration{20 * m, 21 * m, 22 * m, 51 * m}, nil, "n1 n2 n3 n4", 51 * m},
		{"each that comes is a sign of life", 3, []time.Duration{20 * m, 21 * m, 22 * m, 45 * m, 70 * m, 300 * m}, nil, "n1 n2 n3 n4 n5", 100 * m},
		{"all are needed", 4, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, nil, "n1 n2 n3 n4", 300 * m},
		{"half is no majority", 2, []time.Duration{20 * m, 21 * m, 300 * m, 299 * m}, nil, "n1 n2 n3 n4", 300 * m},
		{"its turn has not come", 3, []time.Duration{300 * m, 21 * m, 22 * m, 23 * m, 20 * m}, func(p *plan.Plan, c *apply.Config) {
			for _, i := range []int{0, 4} {
				p.Steps[i].Uses = []plan.Use{{Resource: "pdu/a", Units: 2, Hold: plan.ForStep}}
			}
			c.Capacity = map[string]int{"pdu/": 2}
		}, "n1 n2 n3 n4 n5", 320 * m},
		{"no less than five minutes", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, func(p *plan.Plan, _ *apply.Config) {
			p.Steps[3].Deadline.Slow = time.Second
		}, "n1 n2 n3", 27 * m},
		{"never more than an hour", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, func(p *plan.Plan, _ *apply.Config) {
			p.Steps[3].Deadline.Slow = 200 * m
		}, "n1 n2 n3", 82 * m},
		{"without a past", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, func(p *plan.Plan, _ *apply.Config) {
			p.Steps[3].Deadline.Slow = 0
		}, "n1 n2 n3", 47 * m},
		{"a step of no node is waited for", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, func(p *plan.Plan, _ *apply.Config) {
			p.Steps[3].Subject = subject.ID{Kind: subject.Switch, Name: "leaf1"}
		}, "n1 n2 n3 n4", 300 * m},
		{"nobody can be tested later", 3, []time.Duration{20 * m, 21 * m, 22 * m, 300 * m}, func(p *plan.Plan, _ *apply.Config) {
			for i := range p.Steps {
				if p.Steps[i].Group != nil {
					p.Steps[i].Group.Partners = 0
				}
			}
		}, "n1 n2 n3 n4", 300 * m},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, l := burning(len(c.takes), c.quorum), &lately{takes: map[string]time.Duration{"leaf1": c.takes[len(c.takes)-1]}}
				for i, d := range c.takes {
					l.takes[fmt.Sprintf("n%d", i+1)] = d
				}
				if c.change != nil {
					l.change = func(cfg *apply.Config) { c.change(p, cfg) }
				}
				l.run(t, p)
				for _, id := range []plan.StepID{"all/heat", "all/pair"} {
					if l.members[id] != c.members || l.at[id] != c.at {
						t.Errorf("%s of %s after %s, want %s after %s", id, l.members[id], l.at[id], c.members, c.at)
					}
				}
				if l.at["site/hand"] != c.at {
					t.Errorf("handed over after %s", l.at["site/hand"])
				}
				for _, n := range l.result.Nodes {
					late := !strings.Contains(c.members, n.Name)
					want := map[bool]apply.NodeOutcome{true: apply.NodeStraggler, false: apply.NodeDone}[late]
					if n.Outcome != want || n.Accepted == late {
						t.Errorf("%s is %s, accepted %v: %+v", n.Name, n.Outcome, n.Accepted, n.Cause)
					}
					if burn := stepOf(l.result, n.Name+"/burn"); burn.State != "done" && c.name != "a step of no node is waited for" {
						t.Errorf("%s is %s", burn.ID, burn.State)
					}
				}
			})
		})
	}
}

// TestLateNodeIsTold: in the stream, in the journal and in the result.
func TestLateNodeIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const m = time.Minute
		bus := event.NewBus(1 << 10)
		l := &lately{takes: map[string]time.Duration{"n1": 20 * m, "n2": 20 * m, "n3": 20 * m, "n4": 300 * m}, change: func(c *apply.Config) { c.Bus = bus }}
		l.run(t, burning(4, 3))
		const why = "goes on without it, after the others waited for 30m0s (n4/burn has run for 50m0s); the next apply tests it"
		var said []string
		for sub := bus.Subscribe(0); ; {
			v, ok := sub.Ready()
			if !ok {
				break
			}
			if v.Type == event.Note && v.Node == "n4" {
				said = append(said, v.Text)
			}
		}
		if !slices.Equal(said, []string{"straggler: all/heat " + why}) {
			t.Errorf("said %q", said)
		}
		f, _, err := state.Get[state.Frozen](t.Context(), l.store, state.FrozenKey("p1", "all/pair"))
		if err != nil || names(f.Members) != "n1 n2 n3" || len(f.Lost) != 1 || !f.Lost[0].Straggler || f.Lost[0].Why != "straggler: all/pair "+why {
			t.Errorf("frozen: %+v %v", f, err)
		}
		if c := stepOf(l.result, "n4/accept").Cause; c == nil || c.Kind != state.ByStraggler || c.Step != "all/heat" {
			t.Errorf("cause: %+v", c)
		}
		if len(l.result.Findings) > 0 || l.result.Outcome != state.RunSomeFailed {
			t.Errorf("%s, findings %v: being late is no fault, and not all is done", l.result.Outcome, l.result.Findings)
		}
	})
}

// TestResumedWithoutLate: a run that went on without a node and died in the test
// does not wait for the node again, nor test it.
func TestResumedWithoutLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const m = time.Minute
		l := &lately{takes: map[string]time.Duration{"n1": 20 * m, "n2": 20 * m, "n3": 20 * m, "n4": 300 * m}}
		ctx, cancel := context.WithCancel(t.Context())
		s, p := state.NewMemory(), burning(4, 3)
		cfg := config(t, s, p, only(func(ctx context.Context, r stage.Run, st plan.Step) error {
			if st.ID == "all/pair" {
				cancel()
				return ctx.Err()
			}
			return r.Clock().Sleep(ctx, l.takes[st.Subject.Name])
		}))
		if r := must[apply.Result](t)(apply.Run(ctx, cfg)); stepOf(r, "all/pair").State != "interrupted" || stepOf(r, "n4/burn").State != "interrupted" {
			t.Fatalf("%+v", r.Steps)
		}
		l.store, l.change = s, func(c *apply.Config) { c.Resume = true }
		l.run(t, p)
		if l.members["all/pair"] != "n1 n2 n3" || l.at["all/pair"] != 0 || l.at["all/heat"] != 0 || l.members["all/heat"] != "" {
			t.Errorf("resumed: pairs of %q after %s; the comparison was done before: %q", l.members["all/pair"], l.at["all/pair"], l.members["all/heat"])
		}
		if c := stepOf(l.result, "n4/accept").Cause; c == nil || c.Kind != state.ByStraggler || stepOf(l.result, "n4/burn").State != "done" {
			t.Errorf("n4/accept: %+v", c)
		}
	})
}

// TestLateBound, whatever the times: a test goes on without somebody only when a
// majority and the quorum have come, and no earlier and no more than a look later
// than half an hour after the last of them; and nobody who came is left out.
func TestLateBound(t *testing.T) {
	t.Parallel()
	const patience, look = 30 * time.Minute, time.Minute
	left, whole := 0, 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			nodes := 3 + rng.IntN(9)
			quorum := 1 + rng.IntN(nodes)
			l, ends := &lately{takes: map[string]time.Duration{}}, []time.Duration(nil)
			for i := range nodes {
				d := time.Duration(10+rng.IntN(30)) * time.Minute
				if rng.IntN(4) == 0 {
					d += time.Duration(rng.IntN(200)) * time.Minute
				}
				d += time.Second // not at the moment of a look
				l.takes[fmt.Sprintf("n%d", i+1)], ends = d, append(ends, d)
			}
			slices.Sort(ends)
			l.run(t, burning(nodes, quorum))
			came := len(strings.Fields(l.members["all/pair"]))
			for i := max(quorum, nodes/2+1); i < came; i++ {
				if gap := ends[i] - ends[i-1]; gap >= patience+look {
					t.Errorf("seed %d: the %d. was waited for %s", seed, i+1, gap)
				}
			}
			at := l.at["all/pair"]
			switch wait := at - ends[came-1]; {
			case came == nodes && wait != 0:
				t.Errorf("seed %d: all had come, and it waited for %s", seed, wait)
			case came == nodes:
				whole++
			case came < quorum || 2*came <= nodes || wait < patience || wait > patience+look || ends[came] < at:
				t.Errorf("seed %d: %d of %d were tested (quorum %d) after %s; ends %v", seed, came, nodes, quorum, at, ends)
			default:
				left++
			}
			for n, d := range l.takes {
				if in := slices.Contains(strings.Fields(l.members["all/pair"]), n); in != (d <= at) {
					t.Errorf("seed %d: %s came after %s, the test was after %s, and it took part: %v", seed, n, d, at, in)
				}
			}
		})
	}
	if left < 5 || whole < 5 {
		t.Errorf("%d runs left somebody and %d nobody: the property proves little", left, whole)
	}
}
