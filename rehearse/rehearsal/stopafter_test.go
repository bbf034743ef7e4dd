// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestStopAfterTwo: of a rollout that two failed nodes stop, one failed node stops
// nothing; the second one does, and no node after its wave is touched.
func TestStopAfterTwo(t *testing.T) {
	t.Parallel()
	const nodes = 8
	two := []string{"stop_after = 1", "stop_after = 2"}
	first, next := small(t, nodes, two...), small(t, nodes, append(otherImage("htop"), two...)...)
	_, err := rehearsal.Run(context.Background(), first, rehearsal.Options{Seed: 5, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if err := l.Edit(ctx, next); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		waves := p.Rollouts[0].Waves
		if len(waves) < 4 || p.Rollouts[0].StopAfter != 2 || len(waves[1].Nodes) != 2 {
			t.Fatalf("rollout %+v", p.Rollouts[0])
		}
		bad := []string{waves[0].Nodes[0], waves[1].Nodes[1]} // the canary, and one of the wave after it
		for _, n := range bad {
			if err := l.Plant(fault.Fault{Kind: fault.DiskWriteError, Node: n}); err != nil {
				return err
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
		reached := slices.Concat(waves[0].Nodes, waves[1].Nodes)
		for _, list := range []*[]string{&bad, &reached, &s.lost, &s.touched} {
			slices.Sort(*list)
		}
		if !slices.Equal(s.lost, bad) || !slices.Equal(s.touched, reached) {
			t.Errorf("lost %v, want %v; touched %v, want %v", s.lost, bad, s.touched, reached)
		}
		if !strings.Contains(s.findings, "the rollout to worker stopped after "+waves[1].Name+": 2 of 3 nodes are unhealthy") {
			t.Errorf("findings %s", s.findings)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}
