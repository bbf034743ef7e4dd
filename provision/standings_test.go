// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// TestChangedSince: what was done to a node after its drain counts, by whatever
// step; the drain itself, tests, what did not happen and what was before do not.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	s, at := state.NewMemory(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	fence, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	since := map[string]time.Time{}
	for node, e := range map[string]state.Effect{
		"driver":  {Step: "driver/drivers.d", Kind: plan.Config, State: state.EffectIsDone, At: at.Add(time.Second)},
		"doubt":   {Step: "doubt/install.boot", Kind: plan.Power, State: state.EffectIntended, At: at.Add(time.Second)},
		"before":  {Step: "before/drivers.d", Kind: plan.Config, State: state.EffectIsDone, At: at},
		"tested":  {Step: "tested/validate.burn", Kind: plan.Load, State: state.EffectIsDone, At: at.Add(time.Second)},
		"drained": {Step: "drained/handover.drain", Kind: plan.Config, State: state.EffectIsDone, At: at.Add(time.Second)},
		"refused": {Step: "refused/drivers.d", Kind: plan.Config, State: state.EffectNotDone, At: at.Add(time.Second)},
		"other":   {Step: "somebody/drivers.d", Kind: plan.Config, State: state.EffectIsDone, At: at.Add(time.Second)},
	} {
		since[node], e.Key = at, node
		put, err := state.PutOf(state.EffectKey(e.Key), e)
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, put)
	}
	if _, err := s.Append(t.Context(), fence, b); err != nil {
		t.Fatal(err)
	}
	changed, err := standings{s}.Changed(t.Context(), since)
	if got := strings.Join(slices.Sorted(maps.Keys(changed)), " "); err != nil || got != "doubt driver" {
		t.Errorf("changed: %q %v", got, err)
	}
}

// TestStanding: what the state says of a node decides whether it is in service.
func TestStanding(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		node   state.Node
		in     bool
		reason string
	}{
		{state.Node{Accepted: true, AcceptedAt: at}, true, ""},
		{state.Node{Adopted: true}, true, ""},
		{state.Node{}, false, "not accepted"},
		{state.Node{Accepted: true, Hold: &state.Hold{Reason: "a fan"}}, false, "held: a fan"},
		{state.Node{Accepted: true, Quarantine: &state.Quarantine{Finding: stage.Finding{Cause: "hot"}}}, false, "hot"},
		{state.Node{Accepted: true, Doubt: "hot"}, false, "not accepted since: hot"},
	} {
		s := state.NewMemory()
		fence, err := s.Claim(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		put, err := state.PutOf(state.NodeKey("n1"), c.node)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), fence, state.Batch{Puts: []state.Put{put}}); err != nil {
			t.Fatal(err)
		}
		got, err := standings{s}.NodeStatus(t.Context(), "n1")
		if err != nil || got.InService != c.in || got.Reason != c.reason || !got.AcceptedAt.Equal(c.node.AcceptedAt) {
			t.Errorf("%+v: %+v %v", c.node, got, err)
		}
	}
}
