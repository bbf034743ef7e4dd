// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
)

// slurmctld has one node, and keeps the updates that it was asked for.
type slurmctld struct {
	state, reason string
	updates       []string
}

func (c *slurmctld) run(_ context.Context, _ string, argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	if !strings.HasPrefix(line, "scontrol update ") {
		return []byte("NodeName=n1 NodeAddr=10.0.0.1 State=" + c.state + " Reason=" + c.reason + "\n"), nil
	}
	c.updates = append(c.updates, line)
	switch {
	case slices.Contains(argv, "State=DRAIN"):
		c.state, c.reason = "IDLE+DRAIN", ours+"is being changed"
	case slices.Contains(argv, "State=UNDRAIN"):
		c.state, c.reason = "IDLE", ""
	}
	return nil, nil
}

func (c *slurmctld) target() handover.Target {
	return handover.Target{Handover: &inventory.Handover{Block: inventory.Block{Name: "prod"}},
		Members: []handover.Member{{Node: &inventory.Node{Name: "n1", Address: netip.MustParseAddr("10.0.0.1")}}}}
}

// TestEachDrainHasItsName: a drain, its end and a second drain have names of their
// own, and nothing of time in them.
func TestEachDrainHasItsName(t *testing.T) {
	t.Parallel()
	c, run := &slurmctld{state: "IDLE"}, onnodetest.NewRun()
	s := New(t.TempDir(), c.run)
	for range 2 {
		if did, err := s.Shut(t.Context(), run, c.target(), "n1", "is being changed"); !did || err != nil || c.state != "IDLE+DRAIN" {
			t.Fatalf("%v %v, %s", did, err, c.state)
		}
		if err := s.Open(t.Context(), run, c.target(), "n1"); err != nil || c.state != "IDLE" {
			t.Fatalf("%v, %s", err, c.state)
		}
	}
	want := []string{"n1/handover.prod/drain-1", "n1/handover.prod/undrain-2", "n1/handover.prod/drain-3", "n1/handover.prod/undrain-4"}
	if !slices.Equal(run.Effects, want) || len(c.updates) != 4 {
		t.Errorf("%q by %q", run.Effects, c.updates)
	}
}

// inDoubt is a run whose journal has the intent of every effect and no outcome.
type inDoubt struct {
	*onnodetest.Run
	before func() // what the world shows by the time of the probe
}

func (d *inDoubt) Effect(ctx context.Context, e stage.Effect) error {
	d.before()
	if seen, _, err := e.Probe(ctx); err != nil || seen == stage.Done {
		return err
	}
	return d.Run.Effect(ctx, e)
}

// TestDrainInDoubt: slurmctld is asked before a drain is made again of which nobody
// knows whether it was made.
func TestDrainInDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, state string
		updates     int
	}{{"it was made", "MIXED+DRAIN", 0}, {"it was not", "MIXED", 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &slurmctld{state: "MIXED"}
			run := &inDoubt{Run: onnodetest.NewRun(), before: func() { d.state = c.state }}
			if _, err := New(t.TempDir(), d.run).Shut(t.Context(), run, d.target(), "n1", "is being changed"); err != nil || len(d.updates) != c.updates {
				t.Errorf("%v: %q", err, d.updates)
			}
		})
	}
}
