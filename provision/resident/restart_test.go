// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// TestRestartQuiet: nodes that boot one after the other are started again together, and none waits
// for long for others; one that boots again and again has joined once.
func TestRestartQuiet(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct {
		joins []time.Duration // of one node each
		after time.Duration
		want  bool
	}{
		"at once":        {[]time.Duration{0}, 0, false},
		"alone":          {[]time.Duration{0}, restartQuiet, true},
		"another joined": {[]time.Duration{0, 5 * time.Second}, restartQuiet, false},
		"both":           {[]time.Duration{0, 5 * time.Second}, restartQuiet + 5*time.Second, true},
		"one each 9 s":   {[]time.Duration{0, 9 * time.Second, 18 * time.Second, 27 * time.Second, 36 * time.Second, 45 * time.Second, 54 * time.Second}, restartLatest, true},
	} {
		var x restart
		var due []string
		for i, after := range c.joins {
			due = append(due, string(rune('a'+i)))
			x.isQuiet(due, at.Add(after))
		}
		if got := x.isQuiet(due, at.Add(c.after)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		x.decide(due, "", at.Add(c.after))
		if len(x.new) > 0 {
			t.Errorf("%s: still waiting: %v", name, x.new)
		}
	}
}

// TestRestartAfterRun: a node that was not started again is looked at again once a run has ended, also by the
// boot that services saw which are closed; one that was started is not.
func TestRestartAfterRun(t *testing.T) {
	r, _ := alone(t)
	at := time.Now()
	x := &r.restart
	x.isQuiet(nil, at)
	x.noteBoots(map[string]time.Time{"n1": at, "n2": at, "n3": at.Add(-time.Minute)})
	r.keepNodes([]string{"n1"}, "run r1 was interrupted, and `ironrail apply` resumes it first")
	x.decide([]string{"n2"}, "", time.Now())
	x.takeRun(map[string]time.Time{"n1": at.Add(-time.Hour), "n3": at})
	for n, want := range map[string]bool{"n1": false, "n2": true, "n3": false} {
		if got := r.isDecided(n, x.at[n]); got != want || !x.at[n].Equal(at) {
			t.Errorf("%s: decided %v, booted at %v, want %v", n, got, x.at[n], at)
		}
	}
}

// TestRestartDue: something is decided about nodes that were in service before they booted, and nothing is said
// of those that a run has never brought there.
func TestRestartDue(t *testing.T) {
	r, _ := alone(t)
	now := time.Now()
	for name, c := range map[string]struct {
		node state.Node
		at   time.Time
		want bool
	}{
		"in service":          {state.Node{Accepted: true, AcceptedAt: now}, now.Add(time.Minute), true},
		"on its way there":    {state.Node{Accepted: true, AcceptedAt: now}, now.Add(-time.Minute), false},
		"adopted":             {state.Node{Adopted: true}, now, true},
		"a change went amiss": {state.Node{AcceptedAt: now}, now.Add(time.Minute), true},
		"never in service":    {state.Node{Quarantine: &state.Quarantine{}}, now, false},
		"unknown":             {state.Node{}, now, false},
	} {
		put, err := state.PutOf(state.NodeKey("n1"), c.node)
		if err != nil {
			t.Fatal(err)
		}
		put.Want = state.Any
		if _, err := r.cfg.Store.Append(t.Context(), r.cfg.Fence, state.Batch{Puts: []state.Put{put}}); err != nil {
			t.Fatal(err)
		}
		if got, err := r.isDue(t.Context(), "n1", c.at); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestRestartForgets: the state is not asked again about a boot after which the node was accepted, and a later one
// is looked at.
func TestRestartForgets(t *testing.T) {
	r, _ := alone(t)
	now := time.Now()
	put, err := state.PutOf(state.NodeKey("n1"), state.Node{Accepted: true, AcceptedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	put.Want = state.Any
	if _, err := r.cfg.Store.Append(t.Context(), r.cfg.Fence, state.Batch{Puts: []state.Put{put}}); err != nil {
		t.Fatal(err)
	}
	before, after := now.Add(-time.Minute), now.Add(time.Minute)
	for _, booted := range []time.Time{before, after} {
		r.restart.noteBoots(map[string]time.Time{"n1": booted})
		for _, at := range []time.Time{before, booted} {
			due, err := r.isDue(t.Context(), "n1", at)
			if _, known := r.restart.at["n1"]; err != nil || due != at.Equal(after) || known != booted.Equal(after) {
				t.Errorf("booted at %v, asked about %v: due %v, known %v, %v", booted, at, due, known, err)
			}
		}
	}
}

// TestRestartOften: a node that boots again and again is left to people, and is started again a day later.
func TestRestartOften(t *testing.T) {
	r, _ := alone(t)
	now := time.Now()
	r.restart.isQuiet(nil, now)
	for i := range restartMost {
		if few := r.takeOften([]string{"n1", "n2"}, now); !slices.Equal(few, []string{"n1", "n2"}) {
			t.Fatalf("after %d times: %v", i, few)
		}
		r.restart.decide([]string{"n1"}, "", now)
		now = now.Add(time.Hour)
	}
	if few := r.takeOften([]string{"n1", "n2"}, now); !slices.Equal(few, []string{"n2"}) || !strings.Contains(r.restart.kept["n1"], "3 times within a day") {
		t.Errorf("started again: %v, kept %v", few, r.restart.kept)
	}
	r.forgetKept("n1")
	if few := r.takeOften([]string{"n1"}, now.Add(restartWithin)); !slices.Equal(few, []string{"n1"}) || len(r.restart.kept) > 0 {
		t.Errorf("a day later: %v, kept %v", few, r.restart.kept)
	}
}

// TestStatusWhileChecked: where the nodes stand is said while a run is checked, when what is idle is
// closed and the run does not answer yet.
func TestStatusWhileChecked(t *testing.T) {
	r, _ := alone(t)
	r.turn.Lock()
	defer r.turn.Unlock()
	if err := r.closeIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Status(t.Context()); err == nil {
		t.Error("a site that cannot be opened has a status")
	}
	r.mu.Lock()
	r.run = &running{}
	r.mu.Unlock()
	s, err := r.Status(t.Context())
	if err != nil || s.Owner.Command != "serve" {
		t.Errorf("%+v, %v", s, err)
	}
	r.mu.Lock()
	r.run = nil
	r.mu.Unlock()
}
