// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/slurm"
)

// TestRebuildUnderJobs: a node under a running job is not touched and stays in
// service; so is one whose scheduler does not answer. Once the job has ended, the
// node is drained, rebuilt and resumed.
func TestRebuildUnderJobs(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		ctl := l.World.Scheduler()
		refuse := func(name, want string, o handover.DrainOptions) error {
			res, err := rebuildNode(ctx, l, node, o)
			if err != nil {
				return err
			}
			n, out := accepted(ctx, l)
			if r := resultOf(res, node); res.Outcome != state.RunSomeFailed || n != 8 || r.Outcome != apply.NodeSkipped || r.Cause == nil || !strings.Contains(r.Cause.Text, want) {
				t.Errorf("%s: %s; %d accepted, %s; %+v %+v", name, res.Outcome, n, out, r, r.Cause)
			}
			for _, s := range res.Steps {
				if strings.HasPrefix(string(s.ID), node+"/install") && s.State != "skipped" {
					t.Errorf("%s: %s is %s", name, s.ID, s.State)
				}
			}
			if p, err := l.Plan(ctx, provision.PlanOptions{}); err != nil || len(p.Steps) > 0 || len(p.Refusals) > 0 {
				t.Errorf("%s: the next plan has %d steps, %v, %v", name, len(p.Steps), p.Refusals, err)
			}
			return nil
		}
		ctl.Submit(slurm.Job{ID: "4711", User: "kim", Name: "train", Nodes: []string{node, "r01-u13"}})
		if err := refuse("a job runs", "4711 of kim (running, 1:12:00 left)", handover.DrainOptions{}); err != nil {
			return err
		}
		if said := ctl.Changes(); len(said) > 0 {
			t.Errorf("slurmctld was told %q", said)
		}
		if err := refuse("it runs for longer", "1 jobs run on r01-u09 after 2m0s", handover.DrainOptions{Wait: 2 * time.Minute}); err != nil {
			return err
		}
		if said := ctl.Changes(); !slices.Equal(said, []string{node + " DRAIN", node + " UNDRAIN"}) {
			t.Errorf("slurmctld was told %q", said)
		}
		ctl.Silence(true)
		if err := refuse("slurmctld is silent", "whether jobs run on r01-u09 is not known", handover.DrainOptions{}); err != nil {
			return err
		}
		ctl.Silence(false)
		time.AfterFunc(10*time.Minute, func() { ctl.End("4711") })
		res, err := rebuildNode(ctx, l, node, handover.DrainOptions{Wait: time.Hour})
		if err != nil {
			return err
		}
		if n, out := accepted(ctx, l); n != 8 || res.Outcome != state.RunDone {
			t.Errorf("%s: %d accepted, %s", res.Outcome, n, out)
		}
		if said := ctl.Changes()[2:]; !slices.Equal(said, []string{node + " DRAIN", node + " UNDRAIN"}) {
			t.Errorf("slurmctld was told %q", said)
		}
		return nil
	})
}

// rebuildNode rebuilds a node with options for its drain.
func rebuildNode(ctx context.Context, l *rehearsaltest.Later, node string, o handover.DrainOptions) (apply.Result, error) {
	r := &rebuild.Request{Nodes: []string{node}, At: time.Now()}
	if _, err := l.Site.PrepareRebuild(ctx, l.Store, r); err != nil {
		return apply.Result{}, err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Replace: r.Nodes, Targets: r.Nodes})
	if err != nil {
		return apply.Result{}, err
	}
	handover.SetDrainOptions(p, o)
	fence, err := l.Store.Claim(ctx, "rebuild")
	if err != nil {
		return apply.Result{}, err
	}
	if err := rebuild.Record(ctx, l.Store, fence, r, p); err != nil {
		return apply.Result{}, err
	}
	return l.Apply(ctx, p)
}

// result is how a node came out of a run.
func resultOf(res apply.Result, node string) (r apply.NodeResult) {
	for _, n := range res.Nodes {
		if n.Name == node {
			return n
		}
	}
	return r
}
