// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// replay brings the graph to where earlier runs of this plan left it: it settles the
// steps that they brought to an end, good or bad, so that these are not repeated, and
// restores the membership of their groups. A step that was running when the process died
// is done again: it observes first, and its effects are known from the journal.
func (e *Executor) replay(ctx context.Context) error {
	steps, err := state.ReadPlanSteps(ctx, e.cfg.Store, e.cfg.Plan.ID)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graph.tasks {
		if err := e.replayGroup(ctx, t); err != nil {
			return err
		}
		if s, ok := steps[t.step.ID]; ok && !t.state.settled() {
			e.replayStep(t, s)
		}
	}
	for _, t := range e.graph.tasks {
		if late := frozenStragglers(e.ledger.frozenGroups[t.step.ID]); late != nil {
			e.leaveBehind(t, late)
		}
	}
	return nil
}

// replayGroup reads the members with which a group step was started before, if it was.
func (e *Executor) replayGroup(ctx context.Context, t *task) error {
	if t.step.Group == nil {
		return nil
	}
	f, version, err := state.Get[state.Frozen](ctx, e.cfg.Store, state.FrozenKey(e.cfg.Plan.ID, t.step.ID))
	if err == nil && version != state.Absent {
		e.ledger.frozenGroups[t.step.ID] = f
	}
	return err
}

// replayStep settles a step that ended in an earlier run as it ended then.
func (e *Executor) replayStep(t *task, s state.Step) {
	t.started, t.ended, t.observed, t.blamed = s.Started, s.Ended, s.Observed, s.Blamed
	switch s.State {
	case state.StepIsDone:
		e.settle(t, done)
	case state.StepIsFailed:
		f := stage.Finding{Cause: s.Error, Step: string(s.ID)}
		if s.Finding != nil {
			f = *s.Finding
		}
		t.err, t.kind = errors.New(s.Error), s.Kind
		t.setRoot(f, s.Kind)
		e.settle(t, failed)
	case state.StepIsExamined:
		t.cause = e.ledger.condition(nodeOf(t.step)).cause()
		if s.Error != "" {
			t.err, t.kind = errors.New(s.Error), s.Kind
		}
		e.settle(t, examined)
	default:
		t.started, t.ended, t.blamed = time.Time{}, time.Time{}, nil // it is to be done again
	}
}
