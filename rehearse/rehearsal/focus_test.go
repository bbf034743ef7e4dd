// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/validate/result"
)

// TestLateJoiners: two nodes are out for exchanged cables while the others are
// accepted. Once the cables are right they are tested alone, with two partners;
// what the others were accepted on stands. A joiner whose rail is bad is found.
func TestLateJoiners(t *testing.T) {
	t.Parallel()
	swap := mustParse(t, "kind=cable-swap,node=r01-u09,with=r02-u01,port=rail/3")
	slow := mustParse(t, "kind=degraded-link,node=r02-u01,port=rail/5")
	_, err := rehearsal.Run(context.Background(), load(t, demo, nil), rehearsal.Options{Seed: 7, Faults: []fault.Fault{swap}, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		before, err := state.ReadFacts(ctx, l.Store)
		if err != nil {
			return err
		}
		if err := l.Plant(swap); err != nil { // and so back
			return err
		}
		if err := l.Plant(slow); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		for _, id := range []plan.StepID{"all/validate.pair", "all/validate.all_reduce"} {
			st, ok := p.Step(id)
			if !ok {
				return fmt.Errorf("%s is not planned", id)
			}
			if got := memberNames(st.Group.Focus); got != "r01-u09 r02-u01" || len(st.Group.Members) != 4 || !strings.Contains(st.Title, "r01-u09 and r02-u01 against r") {
				t.Errorf("%s is about %s of %s: %s", id, got, memberNames(st.Group.Members), st.Title)
			}
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		s, err := stands(ctx, l, res)
		if err != nil {
			return err
		}
		if !slices.Equal(s.lost, []string{"r02-u01"}) || len(s.accepted) != 7 || !strings.Contains(s.findings, "r02-u01 rail 5") {
			t.Errorf("lost %v, %d accepted: %s", s.lost, len(s.accepted), s.findings)
		}
		after, err := state.ReadFacts(ctx, l.Store)
		if err != nil {
			return err
		}
		all := result.PairReport.Of(result.OfGroup("all"))
		if string(before[all].Value) != string(after[all].Value) {
			t.Error("the report that the others were accepted on is another one")
		}
		rep, err := result.PairReport.Get(after[result.PairReport.Of(result.OfGroup("all@r01-u09+1"))])
		if err != nil || len(rep.Members) != 4 {
			t.Errorf("the joiners' report: %v %v", rep.Members, err)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func memberNames(ms []subject.ID) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func mustParse(t *testing.T, text string) fault.Fault {
	t.Helper()
	f, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLateNode: a node boots when the others are through with it, so that they would
// wait for its self-test. They are tested, accepted and handed over without it; it
// comes up meanwhile, is called late, and is tested alone by the next apply.
func TestLateNode(t *testing.T) {
	t.Parallel()
	const slow = "r01-u17"
	o := rehearsal.Options{Seed: 7}
	o.OnPlan = func(p *plan.Plan, _ predict.Prediction) {
		for i := range p.Steps {
			s := &p.Steps[i]
			s.Deadline.Slow = time.Second // the others have the least patience
			if s.ID == slow+"/install.boot" {
				s.Needs = append(s.Needs, plan.Need{Step: "r01-u09/drivers.rdma", On: plan.Settled})
			}
		}
	}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		nodes, err := state.ReadNodes(ctx, l.Store)
		if err != nil {
			return err
		}
		if nodes[slow].Accepted || nodes[slow].Quarantine != nil || !nodes["r01-u09"].Accepted {
			t.Errorf("after the first run: %+v", nodes[slow])
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		st, ok := p.Step("all/validate.pair")
		if !ok {
			return errors.New("the late node is not to be tested")
		}
		if got := memberNames(st.Group.Focus); got != slow || len(st.Group.Members) != 3 {
			t.Errorf("pairs of %s, of %s", got, memberNames(st.Group.Members))
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		s, err := stands(ctx, l, res)
		if len(s.accepted) != 8 {
			t.Errorf("lost %v: %s", s.lost, s.findings)
		}
		return err
	}
	sum, err := rehearsal.Run(context.Background(), load(t, demo, nil), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 7 || len(sum.Waiting) != 1 || sum.Waiting[0].Node != slow || !strings.HasPrefix(sum.Waiting[0].Cause, "straggler: worker/validate.speeds goes on without it") {
		t.Errorf("accepted %v, waiting %+v", sum.Accepted, sum.Waiting)
	}
	for _, s := range sum.Result.Steps {
		if s.ID == slow+"/fabric.compute" && s.State != "done" {
			t.Errorf("%s is %s: it came up by itself", s.ID, s.State)
		}
	}
}
