// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// TestLostState: a state folder that is lost costs an adopt. Nothing is planned
// for nodes that run, before and after; drift is found; and a change of the site is
// a drained change to them, never a reinstall.
func TestLostState(t *testing.T) {
	t.Parallel()
	inv := load(t, demo, nil)
	a, b := inv.Nodes[0].Name, inv.Nodes[3].Name
	var res apply.Result
	var changed []string
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 11, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		l.LoseState()
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if len(p.Offers) != 8 || len(p.Erase.Nodes) > 0 || strings.Contains(strings.Join(ids(p), " "), "install.") {
			t.Errorf("after the loss: %d offers, %v erased, %v", len(p.Offers), p.Erase.Nodes, ids(p))
		}
		for range 2 { // twice is as good as once
			list, err := l.Adopt(ctx, adopt.Options{Words: []string{"role.worker"}})
			if err != nil {
				return err
			}
			for _, n := range list {
				if !n.Adopted || n.Error != "" || len(n.Seen) < 3 {
					t.Errorf("%+v", n)
				}
			}
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil || !p.Empty() || len(p.Offers) > 0 {
			t.Errorf("after the adoption: %v, %v, %v", ids(p), p.Offers, err)
		}
		d, err := l.Drift(ctx, observe.DriftOptions{})
		if err != nil || len(d.Changes) > 0 {
			t.Errorf("drift after the adoption: %+v, %v", d.Changes, err)
		}
		if err := l.World.SetPackage(a, "rsyslog", "8.2"); err != nil {
			return err
		}
		if err := l.World.AddKernelArgument(b, "quiet"); err != nil {
			return err
		}
		if d, err = l.Drift(ctx, observe.DriftOptions{}); err != nil || strings.Join(brief(d), "|") != a+" packages rsyslog|"+b+" kernel arguments" {
			t.Errorf("drift: %v, %v", brief(d), err)
		}
		edit := load(t, demo, nil)
		edit.Drivers[0].Packages = append(edit.Drivers[0].Packages, "ibutils")
		if err := l.Edit(ctx, edit); err != nil {
			return err
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil {
			return err
		}
		changed = ids(p)
		res, err = l.Apply(ctx, p)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(changed, " ")
	if strings.Contains(all, "install.") || !strings.Contains(all, a+"/handover.drain") || !strings.Contains(all, a+"/drivers.") || !strings.Contains(all, a+"/validate.accept") {
		t.Errorf("a driver change plans %s", all)
	}
	for _, n := range res.Nodes {
		if !n.Accepted {
			t.Errorf("%s: %+v %+v", n.Name, n.Finding, n.Cause)
		}
	}
}
