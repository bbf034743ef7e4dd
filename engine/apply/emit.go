// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strconv"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// emit shows an event of the run; it fills in the run and the time.
func (e *Executor) emit(v event.Event) {
	v.Run = e.run.ID
	if v.Time.IsZero() {
		v.Time = e.clock.Now().UTC()
	}
	e.cfg.Bus.Emit(v)
}

// emitStep shows an event of a step; it fills in what is known of the step.
func (e *Executor) emitStep(t *task, v event.Event) {
	v.Stage, v.Step = t.step.Stage, string(t.step.ID)
	v.Node = nodeOf(t.step)
	e.emit(v)
}

// emitRunStart shows that the run has begun, and who approved its plan.
func (e *Executor) emitRunStart() {
	e.emit(event.Event{Type: event.RunStarted, Total: int64(len(e.graph.tasks)), Text: "plan " + e.cfg.Plan.ID})
	if a := e.cfg.Approval; a != nil {
		e.emit(approvalEvent(*a))
	}
}

// approvalEvent is the event that tells of an approval.
func approvalEvent(a state.Approval) event.Event {
	data := map[string]string{"by": a.By, "host": a.Host, "how": string(a.How), "erase": strconv.Itoa(a.Erase), "sum": a.Sum}
	if a.MaxErase != nil {
		data["max_erase"] = strconv.Itoa(*a.MaxErase)
	}
	return event.Event{Type: event.Approved, Text: a.String(), Data: data}
}

// emitEnd shows how a step ended.
func (e *Executor) emitEnd(t *task, end ending) {
	v := event.Event{Type: event.StepDone, Text: t.step.Title}
	switch {
	case end.state == failed:
		v.Type, v.Text = event.StepFailed, end.finding.Cause
		v.Data = map[string]string{"kind": end.kind.String(), "action": end.finding.Action}
	case end.state == interrupted:
		v.Type, v.Text = event.StepFailed, end.cause.Text
		v.Data = map[string]string{"kind": end.kind.String()}
	case end.state == examined:
		v.Text = "examined while it is out: " + end.cause.Text
		if end.err != nil {
			v.Type, v.Text = event.StepFailed, "could not be examined further: "+errkind.Line(end.err)
			v.Data = map[string]string{"kind": end.kind.String()}
		}
	case end.observed:
		v.Text = "already so: " + end.evidence
		v.Data = map[string]string{"observed": "true"}
	}
	e.emitStep(t, v)
}
