// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// obstacle is what keeps a ready task from starting. With a finding the task fails,
// else it is skipped for the cause.
type obstacle struct {
	cause   state.Cause
	root    *failure // what the cause goes back to; nil: no step
	finding *stage.Finding
}

// findNodeObstacle admits a step of one node, or of a subject that is no node, and sets
// its members. A node on hold or in quarantine is left alone, but for a step that examines
// it. A step that quarantined its own node and died before its end was recorded has
// failed. Called with e.mu held.
func (e *Executor) findNodeObstacle(t *task) *obstacle {
	t.members = []subject.ID{t.step.Subject}
	c := e.ledger.condition(nodeOf(t.step))
	switch {
	case c.finding != nil && c.finding.Step == string(t.step.ID):
		return &obstacle{finding: c.finding}
	case t.step.Examines && c.hasBadPart() && !e.ledger.wasExamined(t, c):
		t.out = true
	case c.blocked():
		return &obstacle{cause: c.cause()}
	}
	return nil
}

// failBeforeStart settles a step that took its own node out and died before its end
// was written: the node is not touched again. Called with e.mu held.
func (e *Executor) failBeforeStart(t *task, f stage.Finding) {
	t.err, t.kind = errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action), errkind.Mismatch
	t.setRoot(f, errkind.Mismatch)
	t.blamed = []stage.Finding{f}
	e.skips = append(e.skips, t)
	e.settle(t, failed)
}
