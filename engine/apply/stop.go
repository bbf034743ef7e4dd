// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	"github.com/ironrail/ironrail/engine/event"
)

// errHeld is the cause with which steps of a held node are cancelled.
var errHeld = errors.New("the node is on hold")

// Drain starts nothing new and lets the steps that run end.
func (e *Executor) Drain() {
	e.mu.Lock()
	e.stopping, e.drained = true, true
	e.mu.Unlock()
	e.emit(event.Event{Type: event.Note, Text: "draining: running steps finish, no new steps start"})
	e.wakeLoop()
}

// stopStarting starts nothing new, since the run's context is done.
func (e *Executor) stopStarting() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
}

// abortRun cancels every step, since the run's records cannot be made durable.
func (e *Executor) abortRun(err error) {
	e.cancel(err)
	e.wakeLoop()
}

// wakeLoop has the loop plan another round. It never blocks.
func (e *Executor) wakeLoop() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
