// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
)

// Notes say what the state overrides of a node: that another chassis stands in its
// place, and that it is pinned to an earlier image. A sentence each. inv may have the
// overrides already.
func Notes(ctx context.Context, inv *inventory.Inventory, r state.Reader, node string) (notes []string, err error) {
	x, version, err := state.Get[Replacement](ctx, r, state.Key{Kind: replacementKind, Name: node})
	if err != nil {
		return nil, err
	}
	if n, ok := inv.Node(node); ok && version != state.Absent && x.inPlaceOf(n) {
		notes = append(notes, x.note())
	}
	p, version, err := state.Get[Pin](ctx, r, state.Key{Kind: pinKind, Name: node})
	if err == nil && version != state.Absent {
		notes = append(notes, p.Warning())
	}
	return notes, err
}

// Overridden are the nodes that may have Notes.
func Overridden(ctx context.Context, r state.Reader) (map[string]bool, error) {
	names := map[string]bool{}
	for _, kind := range []string{replacementKind, pinKind} {
		os, err := r.Objects(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, o := range os {
			names[o.Key.Name] = true
		}
	}
	return names, nil
}
