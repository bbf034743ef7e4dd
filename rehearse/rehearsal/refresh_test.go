// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// TestRefresh: what somebody takes away on a node is found by a plan that looks,
// and by no other; what does not answer is said, and nothing is planned for it.
func TestRefresh(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		w := l.World
		const away = "r01-u09/drivers.rdma: observed: perftest is not installed\n"
		before := []lookCase{
			{"all is well", nil, provision.PlanOptions{Refresh: true}, ""},
			{"a package is away, and nobody looks", func() error { return w.SetPackage("r01-u09", "perftest", "") }, provision.PlanOptions{Trust: 1000 * time.Hour}, ""},
			{"and forever", nil, provision.PlanOptions{}, ""},
			{"somebody looks", nil, provision.PlanOptions{Refresh: true}, away},
			{"at another rack", nil, provision.PlanOptions{Refresh: true, Targets: []string{"rack.r02"}}, ""},
			{"it was done too long ago", nil, provision.PlanOptions{Trust: time.Second}, away},
		}
		after := []lookCase{
			{"a setting is changed", func() error { return w.SetMTU("r02-u01", "rail/3", 1500) }, provision.PlanOptions{Refresh: true, Targets: []string{"r02-u01"}},
				"r02-u01/fabric.compute: observed: rail 3 (0000:5e:00.0): MTU is 1500, not 9000\n"},
			{"a node does not answer", func() error { n, _ := inv.Node("r02-u01"); l.Board.Detach(n.Address); return nil },
				provision.PlanOptions{Refresh: true, Targets: []string{"r02-u01"}}, "warning: r02-u01 could not be looked at, and nothing is planned for that: nothing answers on its SSH port"},
		}
		return errors.Join(planned(ctx, t, l, before), repaired(ctx, t, l), trusted(ctx, t, l), planned(ctx, t, l, after))
	}})
	if err != nil {
		t.Error(err)
	}
}

// lookCase is one plan after something was done.
type lookCase struct {
	name string
	do   func() error
	o    provision.PlanOptions
	want string // what was observed, or said; "": nothing is planned
}

func planned(ctx context.Context, t *testing.T, l *rehearsaltest.Later, cases []lookCase) error {
	for _, c := range cases {
		if c.do != nil {
			if err := c.do(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		p, err := l.Plan(ctx, c.o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		got := shown(p)
		// Beside what was observed only what depends on it is planned.
		if own := strings.Count(got, "observed: ") + strings.Count(got, "not done yet"); !strings.Contains(got, c.want) || c.want == "" && got != "" || own > 1 {
			t.Errorf("%s: want %q, planned:\n%s", c.name, c.want, got)
		}
		if strings.HasPrefix(c.want, "warning") && len(p.Steps) > 0 {
			t.Errorf("%s: steps are planned:\n%s", c.name, got)
		}
	}
	return nil
}

// repaired applies what a look at one node has found, and looks again.
func repaired(ctx context.Context, t *testing.T, l *rehearsaltest.Later) error {
	o := provision.PlanOptions{Refresh: true, Targets: []string{"r01-u09"}}
	p, err := l.Plan(ctx, o)
	if err != nil {
		return err
	}
	if _, err := l.Apply(ctx, p); err != nil {
		return err
	}
	if p, err = l.Plan(ctx, o); err == nil && shown(p) != "" {
		t.Errorf("after the repair:\n%s", shown(p))
	}
	return err
}

// trusted: what was recorded as seen is not looked at again until it is old.
func trusted(ctx context.Context, t *testing.T, l *rehearsaltest.Later) error {
	var shown, again []looks.Look
	o := provision.PlanOptions{Trust: time.Second, Targets: []string{"rack.r01"}, Looked: func(l []looks.Look) { shown = l }}
	if _, err := l.Plan(ctx, o); err != nil {
		return err
	}
	for _, look := range shown {
		if look.State != stage.Conforms {
			t.Errorf("%s: %s (%s)", look.Step, look.State, look.Evidence)
		}
	}
	if len(shown) < 8 {
		t.Errorf("only %d looks", len(shown))
	}
	fence, err := l.Store.Claim(ctx, "test")
	if err == nil {
		err = looks.Record(ctx, l.Store, fence, shown)
	}
	if err != nil {
		return err
	}
	o.Looked = func(l []looks.Look) { again = l }
	if _, err := l.Plan(ctx, o); err != nil {
		return err
	}
	if len(again) > 0 {
		t.Errorf("looked again: %v", again)
	}
	if _, ok, err := l.Store.Object(ctx, state.Key{Kind: "seen", Name: string(shown[0].Step)}); !ok {
		t.Errorf("nothing is stored: %v", err)
	}
	return nil
}

// shown is a plan in one text: its steps with their reasons, then its warnings.
func shown(p *plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s\n", s.ID, strings.Join(s.Why, "; "))
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
