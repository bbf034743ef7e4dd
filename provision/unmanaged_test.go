// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// TestStillUnmanaged: a run that continues with an older plan does not call nodes
// unmanaged that were adopted since.
func TestStillUnmanaged(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []state.Node{{Name: "n1", Adopted: true}, {Name: "n2", Run: "r1"}} {
		p, err := state.PutOf(state.NodeKey(n.Name), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{p}}); err != nil {
			t.Fatal(err)
		}
	}
	list := []plan.Unmanaged{{Reason: plan.RunsUnknown, Nodes: []string{"n1", "n2", "n3"}}, {Reason: plan.OnHold, Nodes: []string{"n1"}}}
	left, err := StillUnmanaged(t.Context(), store, list)
	if err != nil || len(left) != 1 || left[0].Reason != plan.RunsUnknown || len(left[0].Nodes) != 2 || left[0].Nodes[0] != "n2" {
		t.Errorf("left %+v, %v", left, err)
	}
	if len(list[0].Nodes) != 3 || list[0].Nodes[0] != "n1" {
		t.Errorf("the plan itself was changed: %+v", list)
	}
}
