// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestRestart: of nodes that have booted with nothing in memory those are started again that are
// accepted and for which the files ask for nothing new, with no other node; a chassis that is not the
// one on record ends in quarantine by the identity check.
func TestRestart(t *testing.T) {
	t.Parallel()
	const lost, held, other = "r01-u09", "r01-u17", "r02-u01"
	inv := inMemory(load(t, demo, nil))
	o := rehearsal.Options{Seed: 4}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, n := range []string{lost, held} {
			v, _ := l.World.Node(n)
			if err := v.Chassis().Press(chassis.ForceOff); err != nil {
				return err
			}
		}
		time.Sleep(time.Minute)
		if err := refusesEdited(ctx, t, l, lost); err != nil {
			return err
		}
		if x, _, err := l.Restart(ctx, other); err != nil || x.Plan != nil || !strings.Contains(x.Refused[other], "a system runs on it: SSH answers at ") {
			t.Errorf("a node that runs is started again by %v, refused for %q, %v", x.Plan, x.Refused[other], err)
		}
		fence, err := l.Claim(ctx)
		if err != nil {
			return err
		}
		if err := state.HoldNode(ctx, l.Store, fence, held, state.Hold{By: "ann"}); err != nil {
			return err
		}
		x, res, err := l.Restart(ctx, lost, held, "nobody")
		if err != nil {
			return err
		}
		if !slices.Equal(x.Nodes, []string{lost}) || x.Refused[held] != "it is on hold" || !strings.Contains(x.Refused["nobody"], "not kept in memory") {
			t.Errorf("started %v, refused %v", x.Nodes, x.Refused)
		}
		for i := range x.Plan.Steps {
			s := &x.Plan.Steps[i]
			if s.May.Has(plan.Erase) || s.Group != nil && s.May.Has(plan.Load) && slices.ContainsFunc(s.Group.Members, func(m subject.ID) bool { return m.Name != lost }) {
				t.Errorf("step %s erases %q, and works on %v", s.ID, s.Erases, s.Group)
			}
		}
		if n, out := accepted(ctx, l); res.Outcome != state.RunDone || n != len(inv.Nodes) {
			t.Errorf("%s, %d accepted; not %s", res.Outcome, n, strings.Join(out, "; "))
		}
		return swapsChassis(ctx, t, l, other)
	}
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != len(inv.Nodes) {
		t.Errorf("%s", verdicts(sum))
	}
}

// refusesEdited: a node gets no setting by itself that nobody has approved.
func refusesEdited(ctx context.Context, t *testing.T, l *rehearsaltest.Later, node string) error {
	before := l.Planned
	for want, edit := range map[string]func(*inventory.Inventory){
		"other host settings": func(inv *inventory.Inventory) {
			for _, h := range inv.Hosts {
				h.Timezone = "Europe/Berlin"
			}
		},
		"ask for more": func(inv *inventory.Inventory) {
			for _, d := range inv.Drivers {
				d.Packages = append(slices.Clone(d.Packages), "fio")
			}
		},
	} {
		inv := inMemory(load(t, demo, nil))
		edit(inv)
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		x, _, err := l.Restart(ctx, node)
		if err != nil {
			return err
		}
		if x.Plan != nil || !strings.Contains(x.Refused[node], want) {
			t.Errorf("after an edit it is started by %v, refused for %q and not for %q", x.Plan, x.Refused[node], want)
		}
	}
	l.Planned = before
	return l.Open(ctx)
}

// swapsChassis: another chassis under the same name gets no system.
func swapsChassis(ctx context.Context, t *testing.T, l *rehearsaltest.Later, node string) error {
	if err := l.World.Replace(ctx, node, "another"); err != nil {
		return err
	}
	time.Sleep(bmcStart)
	_, res, err := l.Restart(ctx, node)
	if err != nil {
		return err
	}
	if text := findingOf(res, node); done(res, node) || !strings.Contains(text, "certificate that is not trusted") {
		return fmt.Errorf("another chassis: %s: %q", res.Outcome, text)
	}
	x, _, err := l.Restart(ctx, node)
	if err != nil {
		return err
	}
	if x.Plan != nil || x.Refused[node] != "it is in quarantine" {
		t.Errorf("a node in quarantine: %v, refused for %q", x.Plan, x.Refused[node])
	}
	return nil
}
