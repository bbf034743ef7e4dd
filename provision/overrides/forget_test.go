// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
)

// TestForgetDirectWork: what operators did last to a node is forgotten with it, and that of a node whose
// name begins the same is not.
func TestForgetDirectWork(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"n1", "n10"} {
		for _, err := range []error{
			state.HoldNode(t.Context(), store, fence, n, state.Hold{By: "ann"}),
			state.RecordDirect(t.Context(), store, fence, state.Direct{Node: n, Verb: "power cycle", By: "ann", State: state.EffectIntended}),
			state.RecordDirect(t.Context(), store, fence, state.Direct{Node: n, Verb: "boot", By: "ann", State: state.EffectIsDone}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Forget(t.Context(), store, fence, &inventory.Inventory{}, []string{"n1"}, ForgetReason{Reason: "returned"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	left, err := store.Objects(t.Context(), "direct")
	if err != nil || len(left) != 2 || left[0].Key.Name != "n10/boot" || left[1].Key.Name != "n10/power" {
		t.Errorf("%+v, %v", left, err)
	}
}
