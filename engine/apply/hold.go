// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// Hold stops all automation on a node at once: steps that run on it, alone or in a group,
// are cancelled, its effects are refused, and nothing new is started. It returns when the
// hold is durable.
func (e *Executor) Hold(node, by, reason string) error {
	h := state.Hold{By: by, Reason: reason, At: e.clock.Now().UTC()}
	if was := e.ledger.condition(node).hold; h.Repeats(was) {
		h = *was
	}
	e.stopNode(node, &h) // before anything that waits
	e.holding.Lock()
	defer e.holding.Unlock()
	e.stopNode(node, &h) // a release that was under way has let it go again
	if err := e.ledger.recordHold(node, state.Held, h); err != nil {
		return err
	}
	e.emit(event.Event{Type: event.Held, Node: node, Text: condition{hold: &h}.cause().Text})
	return nil
}

// stopNode cancels what runs on a node, and starts nothing on it from now on.
func (e *Executor) stopNode(node string, h *state.Hold) {
	e.ledger.setHold(node, h)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graph.tasks {
		if t.state == running && slices.Contains(t.members, subject.OfNode(node)) {
			t.cancel(errHeld)
		}
	}
}
