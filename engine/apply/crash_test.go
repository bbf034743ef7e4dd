// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
)

// life is one process: it claims the state, continues with what is unfinished or
// begins p, and dies at the given append. It reports whether it lived.
func life(t *testing.T, disk *state.Memory, w *world, at int, when statetest.Moment) bool {
	t.Helper()
	s := &statetest.CrashStore{Store: disk.Reopen(), At: at, When: when}
	ctx := context.Background()
	f := must[state.Fence](t)(s.Claim(ctx, "test"))
	last, _, err := state.Get[state.Run](ctx, s, state.LastRun)
	if err != nil {
		t.Fatal(err)
	}
	if last.Outcome == state.RunDone || last.Outcome == state.RunSomeFailed {
		return true
	}
	p, _, err := state.ReadUnfinishedPlan(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	c := apply.Config{Plan: p, Stages: w.stages(), Store: s, Fence: f, Capacity: siteCapacity, MaxErase: 4, Resume: p != nil}
	if p == nil {
		c.Plan = site(4)
		c.Plan.Lineage = s.Info().Lineage
	}
	_, err = apply.Run(ctx, c)
	if s.Dead() != errors.Is(err, statetest.ErrCrash) || !s.Dead() && err != nil {
		t.Fatalf("killed %s append %d: dead %v, error %v", when, at, s.Dead(), err)
	}
	return !s.Dead()
}

// picture is the final state without times and runs: what must converge.
func picture(t *testing.T, r state.Reader, w *world) string {
	t.Helper()
	ctx := context.Background()
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, n := range must[map[string]state.Node](t)(state.ReadNodes(ctx, r)) {
		cause := ""
		if n.Quarantine != nil {
			cause = n.Quarantine.Finding.Step + ": " + n.Quarantine.Finding.Cause + " -> " + n.Quarantine.Finding.Action
		}
		line("node %s accepted=%v quarantine=%q", n.Name, n.Accepted, cause)
	}
	steps, err := state.ReadSteps(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for id, s := range steps {
		cause := ""
		if s.Finding != nil {
			cause = s.Finding.Cause
		}
		line("step %s %s %s", id, s.State, cause)
		for _, f := range s.Blamed {
			line("step %s found %v: %s", id, f.Suspects, f.Cause)
		}
	}
	effects := must[map[string]state.Effect](t)(state.ReadEffects(ctx, r))
	for k, e := range effects {
		line("effect %s %s", k, e.State)
	}
	facts, err := state.ReadFacts(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for k, f := range facts {
		line("fact %s %s", k, f.Value)
	}
	run, _, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil {
		t.Fatal(err)
	}
	line("run %s", run.Outcome)
	for k, n := range w.did {
		line("world %s done %d times", k, n)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestLongKilledAtEveryRecord kills a four-node bring-up before and after every
// write of its journal, then resumes it, and kills that once more: the end is
// the same as without a kill, and nothing was done to the world twice.
func TestLongKilledAtEveryRecord(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name     string
		broken   []string
		blind    bool
		accepted int
	}{
		{"all good", nil, false, 4},
		{"nothing can be observed", nil, true, 4},
		{"n3 lacks a NIC", []string{"n3/nic"}, true, 3},
		{"n2 has a slow rail", []string{"n2/rail"}, false, 3},
		{"the image is bad", []string{"image"}, false, 0},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			world := func() *world { w := newWorld(v.broken...); w.blind = v.blind; return w }
			disk, w := state.NewMemory(), world()
			life(t, disk, w, 0, "")
			want := picture(t, disk, w)
			if n := strings.Count(want, "accepted=true"); n != v.accepted {
				t.Fatalf("%d nodes accepted, want %d:\n%s", n, v.accepted, want)
			}
			kills, step := 0, 1
			if testing.Short() {
				step = 7
			}
			for at := 1; ; at += step {
				lived := false
				for _, when := range []statetest.Moment{statetest.BeforeCommit, statetest.AfterCommit} {
					for _, second := range []int{0, 2, 16} {
						kills++
						lived = killed(t, world(), want, at, second, when)
					}
				}
				if lived {
					break
				}
			}
			t.Logf("%d pairs of kills", kills)
		})
	}
}

// killed kills one life at an append and the next at another, lets the third
// live, and compares. It reports whether the first life was not killed at all.
func killed(t *testing.T, w *world, want string, at, second int, when statetest.Moment) bool {
	t.Helper()
	disk := state.NewMemory()
	lived := life(t, disk, w, at, when)
	if !lived && second > 0 {
		life(t, disk, w, second, when)
	}
	life(t, disk, w, 0, "")
	for key, n := range w.did {
		if n > 1 {
			t.Errorf("killed %s append %d, then at %d: %s was done %d times", when, at, second, key, n)
		}
	}
	if got := picture(t, disk, w); got != want {
		t.Fatalf("killed %s append %d, then at %d: other end\n%s", when, at, second, difference(got, want))
	}
	return lived
}

// difference shows the lines that only one side has.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var out []string
	for _, l := range g {
		if !slices.Contains(w, l) {
			out = append(out, "got  "+l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			out = append(out, "want "+l)
		}
	}
	return strings.Join(out, "\n")
}
