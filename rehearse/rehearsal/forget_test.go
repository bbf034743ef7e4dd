// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// TestForgetOnly: a node that is only forgotten keeps its disks and its power, and
// the next run takes it from the scheduler's files, once.
func TestForgetOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listed := func() bool { return strings.Contains(schedulerNodes(t, dir), "NodeName="+gone+" ") }
	_, err := rehearsal.Run(context.Background(), load(t, demo, nil), rehearsal.Options{Seed: 7, Dir: dir, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		time.Sleep(time.Minute) // the site is in service
		inv, err := without(t)
		if err != nil {
			return err
		}
		if err := l.Edit(ctx, inv); err != nil {
			return err
		}
		if !listed() {
			t.Error("the scheduler does not know the node to begin with")
		}
		if err := l.Forget(ctx, gone); err != nil {
			return err
		}
		if x := left(ctx, l.Store, gone); len(x) > 0 {
			t.Errorf("not forgotten: %v", x)
		}
		blank(t, l, false)
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if got := ids(p); !slices.Equal(got, []string{"site/handover.prod"}) || len(p.Orphaned) != 0 {
			t.Errorf("planned %v, gone %v", got, p.Orphaned)
		}
		if res, err := l.Apply(ctx, p); err != nil || res.Outcome != state.RunDone {
			t.Errorf("outcome %s: %v", res.Outcome, err)
		}
		if listed() {
			t.Error("the scheduler's files still have it")
		}
		p, err = l.Plan(ctx, provision.PlanOptions{})
		if err == nil && !p.Empty() {
			t.Errorf("afterwards: %v", ids(p))
		}
		return err
	}})
	if err != nil {
		t.Error(err)
	}
}
