// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// withMounts is the site of eight nodes whose roles mount file systems, with the package that
// they need.
func withMounts(t *testing.T, list ...inventory.Mount) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, i := range inv.Images {
		i.Packages = append(i.Packages, "nfs-common")
	}
	for _, r := range inv.Roles {
		r.Mounts = list
	}
	return inv
}

// TestMounts brings a site up with shared file systems, takes one back, and finds one that
// somebody unmounted, with nothing installed.
func TestMounts(t *testing.T) {
	t.Parallel()
	scratch := inventory.Mount{Path: "/scratch", Type: "nfs", Source: "10.0.0.9:/scratch"}
	tools := inventory.Mount{Path: "/opt/tools", Type: "lustre", Source: "mds1@o2ib:/tools", Options: []string{"ro"}}
	var world *virtual.World
	rack := func(_ context.Context, w *virtual.World) error { world = w; return nil }
	sum, err := rehearsal.Run(context.Background(), withMounts(t, scratch, tools), rehearsal.Options{Seed: 5, OnRack: rack, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		if err := l.Edit(ctx, withMounts(t, scratch)); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if all := strings.Join(ids(p), " "); strings.Contains(all, "install.") || strings.Contains(all, "fabric.") || !strings.Contains(all, "r01-u09/mounts.shared") || !strings.Contains(all, "r01-u09/validate.accept") || !strings.Contains(all, "handover.drain") {
			t.Errorf("planned: %s", all)
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		for _, n := range res.Nodes {
			if !n.Accepted {
				t.Errorf("%s: %+v", n.Name, n.Finding)
			}
		}
		if err := world.Unmount("r01-u09", "/scratch"); err != nil {
			return err
		}
		d, err := l.Drift(ctx, observe.DriftOptions{Kinds: []string{"settings"}})
		if err != nil || len(d.Changes) != 1 || d.Changes[0].Node != "r01-u09" || d.Changes[0].Is != "/scratch is not mounted" {
			t.Errorf("drift: %+v, %v", d.Changes, err)
		}
		p, err = l.Plan(ctx, provision.PlanOptions{Refresh: true})
		if err != nil || !strings.Contains(strings.Join(ids(p), " "), "r01-u09/mounts.shared") {
			t.Errorf("a plan after it was unmounted: %v, %v", ids(p), err)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Outcome != "done" || len(sum.Findings) > 0 {
		t.Errorf("bring-up: %s, %+v", sum.Outcome, sum.Findings)
	}
}
