// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Release ends the hold of a node, in any state. Steps that this run skipped or stopped
// for the hold alone are resumed at once, unless the run has gone on without the node
// meanwhile: a test or a hand-over that has settled is not repeated, and the next apply
// does the rest. An event says which.
func (e *Executor) Release(node, by string) error {
	e.holding.Lock()
	defer e.holding.Unlock()
	if e.ledger.condition(node).hold == nil {
		return errkind.New(errkind.Refused, "node %s is not on hold", node)
	}
	if err := e.ledger.recordHold(node, state.Released, state.Hold{By: by, At: e.clock.Now().UTC()}); err != nil {
		return err
	}
	e.ledger.setHold(node, nil)
	e.emit(event.Event{Type: event.Released, Node: node, Text: "released by " + by})
	e.mu.Lock()
	if !slices.Contains(e.released, node) {
		e.released = append(e.released, node)
	}
	e.mu.Unlock()
	e.wakeLoop()
	return nil
}

// resumeReleased resumes the steps of released nodes on which nothing runs any more. It
// returns what to say about it. Called with e.mu held, while no
// skip waits to be recorded.
func (e *Executor) resumeReleased() (notes []event.Event) {
	waiting := e.released[:0]
	for _, node := range e.released {
		m := e.ledger.condition(node)
		switch {
		case m.blocked() || e.stopping: // held again, or taken out
		case e.isWorkingOn(node):
			waiting = append(waiting, node)
		default:
			if text := e.reviveNode(node); text != "" {
				notes = append(notes, event.Event{Type: event.Note, Node: node, Text: text})
			}
		}
	}
	e.released = waiting
	return notes
}

// isWorkingOn reports whether a step of the node runs.
func (e *Executor) isWorkingOn(node string) bool {
	return slices.ContainsFunc(e.graph.tasks, func(t *task) bool { return t.state == running && nodeOf(t.step) == node })
}

// reviveNode makes the steps of a node pending again that its hold alone kept from
// their end. It says what it did, or why it did not; "" when there is none.
func (e *Executor) reviveNode(node string) string {
	back := e.stepsStoppedByHold(node)
	if len(back) == 0 {
		return ""
	}
	if by := findWentOnWithout(back); by != nil {
		return fmt.Sprintf("%s went on without %s: the next apply does what is left", by.step.ID, node)
	}
	in := make(map[*task]bool, len(back))
	for _, t := range back {
		in[t] = true
		t.state, t.unmet, t.lacks, t.err, t.root, t.cause = pending, 0, "", nil, nil, state.Cause{}
		t.started, t.ended = time.Time{}, time.Time{}
	}
	for _, t := range back {
		for _, tr := range t.triggers {
			if !in[tr.task] && !tr.task.state.settled() && !tr.task.goesOnWithout(t) { // it counted on t as settled
				tr.task.unmet++
				tr.task.state, tr.task.lacks = pending, ""
			}
		}
	}
	e.rejoinSteps(back)
	return fmt.Sprintf("resumed at %s: %d steps", back[0].step.ID, len(back))
}

// rejoinSteps counts the needs of revived steps, then skips again those that cannot go
// on as their needs stand, and makes those ready that can. The counts come first:
// a skip passes on to others of them.
func (e *Executor) rejoinSteps(back []*task) {
	for _, t := range back {
		for _, n := range t.step.Needs {
			if !e.graph.byID[n.Step].state.settled() {
				t.unmet++
			}
		}
	}
	for _, t := range back {
		for _, n := range t.step.Needs {
			if on := e.graph.byID[n.Step]; !t.state.settled() && n.On == plan.Success && on.state.settled() && on.state != done {
				e.skip(t, on.cause, on.root)
				e.settle(t, skipped)
			}
		}
	}
	for _, t := range back {
		if t.state == pending && t.unmet == 0 {
			e.graph.makeReady(t)
		}
	}
}

// stepsStoppedByHold are the steps of a node that a hold skipped or interrupted, and
// those that were skipped with them, in the order of the plan.
func (e *Executor) stepsStoppedByHold(node string) (back []*task) {
	in := map[*task]bool{}
	var work []*task
	stopped := func(t *task) bool {
		return (t.state == skipped || t.state == interrupted) && t.cause.Kind == state.ByHold
	}
	for _, t := range e.graph.tasks {
		if nodeOf(t.step) == node && stopped(t) {
			work = append(work, t)
			in[t] = true
		}
	}
	for ; len(work) > 0; work = work[1:] {
		for _, tr := range work[0].triggers {
			if t := tr.task; tr.on == plan.Success && !in[t] && t.state == skipped && t.cause.Kind == state.ByHold {
				in[t] = true
				work = append(work, t)
			}
		}
	}
	for _, t := range e.graph.tasks {
		if in[t] {
			back = append(back, t)
		}
	}
	return back
}

// findWentOnWithout finds a step that went on without those that come back; nil when all can
// still wait for them.
func findWentOnWithout(back []*task) *task {
	for _, t := range back {
		for _, tr := range t.triggers {
			switch on := tr.task; {
			case slices.Contains(back, on), on.state == skipped, on.state == pending, on.state == ready:
			default:
				return on
			}
		}
	}
	return nil
}
