// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/parts"
)

// readNotesOf is what the state knows of a node that the site's files do not say: that
// another chassis stands in its place, that it is pinned to an earlier image, and
// which of its parts were found bad on another node. A sentence each, in that order.
func readNotesOf(ctx context.Context, inv *inventory.Inventory, r state.Reader, node string) (notes []string, err error) {
	if notes, err = overrides.Notes(ctx, inv, r, node); err != nil {
		return nil, err
	}
	fitted, err := parts.In(ctx, r, node)
	if err != nil {
		return nil, err
	}
	suspects, err := parts.Suspects(ctx, r, fitted.Parts)
	if err != nil {
		return nil, err
	}
	for _, s := range suspects {
		if s.Elsewhere(node) {
			notes = append(notes, s.Sentence())
		}
	}
	return notes, nil
}

// ReadNotes are the notes of all nodes that have some. What was found of the parts of a
// node elsewhere is told while the node is not up: of one that was accepted since, and
// so tested with them, it is for why to tell.
func ReadNotes(ctx context.Context, inv *inventory.Inventory, r state.Reader, nodes []state.Node) (map[string][]string, error) {
	overridden, err := overrides.Overridden(ctx, r)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, n := range nodes {
		if n.Accepted && n.Quarantine == nil && !overridden[n.Name] {
			continue
		}
		notes, err := readNotesOf(ctx, inv, r, n.Name)
		if err != nil {
			return nil, err
		}
		if len(notes) > 0 {
			out[n.Name] = notes
		}
	}
	return out, nil
}
