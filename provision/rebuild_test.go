// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/overrides"
)

// TestNewChassisForgetsTheOld: how the old chassis was when it was accepted is
// forgotten with it, and nothing is forgotten when the chassis stays.
func TestNewChassisForgetsTheOld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := state.NewMemory()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	old := drift.Forget("n1")
	for _, p := range old {
		p.Value = []byte(`{}`)
		b.Puts = append(b.Puts, p)
	}
	if _, err := store.Append(ctx, fence, b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		with *overrides.Replacement
		gone bool
	}{
		{"same chassis", nil, false},
		{"another chassis", &overrides.Replacement{Node: "n1", Chassis: overrides.Chassis{Serial: "NEW"}, At: time.Unix(1, 0)}, true},
		{"another node's chassis", &overrides.Replacement{Node: "n2", Chassis: overrides.Chassis{Serial: "NEW"}, At: time.Unix(1, 0)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b state.Batch
			if err := (&Rebuild{replacement: c.with}).recordChassis(ctx, store, &b); err != nil {
				t.Fatal(err)
			}
			for _, o := range old {
				if got := slices.ContainsFunc(b.Puts, func(p state.Put) bool { return p.Key == o.Key && p.Value == nil }); got != c.gone {
					t.Errorf("%s is forgotten: %v", o.Key, got)
				}
			}
		})
	}
}
