package apply

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// replay settles the steps that earlier runs of this plan brought to an end,
// good or bad, so that they are not repeated. A step that was running when the
// process died is done again: it observes, and its effects know what happened.
func (e *Executor) replay(ctx context.Context) error {
	steps, err := state.ReadPlanSteps(ctx, e.cfg.Store, e.cfg.Plan.ID)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graph.tasks {
		if t.step.Group != nil {
			f, version, err := state.Get[state.Frozen](ctx, e.cfg.Store, state.FrozenKey(e.cfg.Plan.ID, t.step.ID))
			if err != nil {
				return err
			}
			if version != state.Absent {
				e.ledger.frozenGroups[t.step.ID] = f
			}
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
	default:
		t.started, t.ended, t.blamed = time.Time{}, time.Time{}, nil // it is to be done again
	}
}
