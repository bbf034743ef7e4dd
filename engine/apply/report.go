// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
)

// Report records a finding that no step made, about something that is no node: what
// the run's own services see. It waits for the start of the run, does nothing once the
// run has ended, and is safe for concurrent use while Run runs.
func (e *Executor) Report(ctx context.Context, f stage.Finding) error {
	select {
	case <-e.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	e.reporting.Lock()
	defer e.reporting.Unlock()
	if e.over {
		return nil
	}
	if err := e.ledger.recordFinding(f); err != nil {
		return err
	}
	e.mu.Lock()
	e.found = append(e.found, f)
	e.mu.Unlock()
	e.emit(event.Event{Type: event.FindingMade, Text: f.Cause, Data: map[string]string{"action": f.Action}})
	return nil
}
