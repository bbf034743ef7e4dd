// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"path/filepath"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/hook"
)

// hooked adds the site's own steps before and after those of the stages.
func (s *Site) hooked(steps []plan.Step) []plan.Step { return hook.Place(s.Inv, steps) }

// hooks is the stage that runs the site's own programs.
func (s *Site) hooks(w world) *hook.Stage {
	dir, err := filepath.Abs(s.Inv.Dir)
	if err != nil {
		dir = s.Inv.Dir // the working folder is gone; the program fails by itself
	}
	if w.store == nil {
		return hook.New(s.Inv, dir, nil)
	}
	return hook.New(s.Inv, dir, func(ctx context.Context, node string) (string, error) {
		n, _, err := state.Get[state.Node](ctx, w.store, state.NodeKey(node))
		return standingWords(n), err
	})
}

// standingWords says in a few words where a node stands.
func standingWords(n state.Node) string {
	switch {
	case n.Hold != nil:
		return "held: " + n.Hold.Reason
	case n.Quarantine != nil:
		return "quarantined: " + n.Quarantine.Finding.Cause
	case n.Accepted:
		return "accepted"
	case n.Adopted:
		return "adopted"
	}
	return "not accepted"
}
