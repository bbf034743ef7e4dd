// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// ending is how a step ended.
type ending struct {
	state    taskState // done, failed, interrupted or examined
	at       time.Time
	observed bool          // it was so already
	evidence string        // of that
	err      error         // of a failed or interrupted step, or of one that could not examine its node to the end
	kind     errkind.Kind  // of a failure
	finding  stage.Finding // of a failure: the root cause
	cause    state.Cause   // of an interruption
}

// observeAndApply asks whether it is already so, and applies the step if it is not.
func (e *Executor) observeAndApply(ctx context.Context, r *stepRun, t *task) (stage.Observation, error) {
	if t.step.Gate != nil {
		return stage.Observation{}, e.judgeGate(ctx, r, t)
	}
	st := e.cfg.Stages[t.step.Stage]
	o, err := st.Observe(ctx, r, *t.step)
	switch {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case err != nil && errkind.Of(err) == errkind.Unreachable:
		// What cannot be reached is not known; applying may be what brings it up.
		r.Emit(event.Event{Type: event.Evidence, Text: "cannot be observed: " + errkind.Line(err)})
		o = stage.Observation{State: stage.Unknown}
	case err != nil:
		return stage.Observation{}, fmt.Errorf("observe: %w", err)
	case o.State == stage.Conforms:
		return o, nil
	}
	return o, st.Apply(ctx, r, *t.step)
}

// stageResult is what a stage returned.
type stageResult struct {
	seen stage.Observation
	err  error
}

// callStage runs the stage's code and turns its panic into an error. When ctx is done
// and the stage does not return within the grace, it is given up: its Run
// refuses everything from then on.
func (e *Executor) callStage(ctx context.Context, t *task) (stage.Observation, error) {
	r, ended := t.run, make(chan stageResult, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- stageResult{err: r.panicError(v, debug.Stack())}
			}
		}()
		o, err := e.runWithRetries(ctx, r, t)
		ended <- stageResult{o, err}
	}()
	if slow := t.step.Deadline.Slow; slow > 0 && slow < t.step.Deadline.Limit {
		late, cancel := e.clock.WithTimeout(ctx, slow)
		defer cancel()
		select {
		case a := <-ended:
			return a.seen, a.err
		case <-late.Done():
		}
		if ctx.Err() == nil {
			r.markSlow()
		}
	}
	select {
	case a := <-ended:
		return a.seen, a.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(e.cfg.Grace)
	defer grace.Stop()
	select {
	case a := <-ended:
		return a.seen, a.err
	case <-grace.C:
		return stage.Observation{}, errkind.New(errkind.Internal, "did not stop within %s of %w", e.cfg.Grace, context.Cause(ctx))
	}
}

// judgeEnd says how a step ended from what it returned and why it was stopped.
func (e *Executor) judgeEnd(ctx, limited context.Context, t *task, o stage.Observation, err error) ending {
	end := ending{state: done, at: e.clock.Now().UTC()}
	switch {
	case t.out && ctx.Err() == nil:
		end.state, end.cause = examined, e.ledger.condition(nodeOf(t.step)).cause()
		if err != nil {
			end.err, end.kind = err, errkind.Of(err)
		}
		return end
	case err == nil:
		if o.State == stage.Conforms {
			end.observed, end.evidence = true, o.Evidence
		}
		return end
	case errors.Is(context.Cause(ctx), errHeld):
		end.state, end.err, end.kind = interrupted, err, errkind.Interrupted
		end.cause = e.ledger.heldCause(nodesOf(t.step))
		return end
	case ctx.Err() != nil:
		end.state, end.err, end.kind = interrupted, err, errkind.Interrupted
		end.cause = state.Cause{Kind: state.ByInterrupt, Text: "interrupted"}
		return end
	case isBlocked(err):
		end.state, end.err, end.kind = interrupted, err, errkind.Of(err)
		end.cause = state.Cause{Kind: state.BySite, Step: t.step.ID, Text: errkind.Line(err)}
		return end
	case limited.Err() != nil:
		err = t.run.timeoutError(err)
	default:
		if _, busy := errors.AsType[*stage.BusyError](err); busy {
			end.state, end.err, end.kind = interrupted, err, errkind.Of(err)
			end.cause = state.Cause{Kind: state.ByJobs, Step: t.step.ID, Text: errkind.Line(err)}
			return end
		}
	}
	end.state, end.err, end.kind = failed, err, errkind.Of(err)
	end.finding = t.run.rootFinding(err)
	return end
}

// isBlocked reports whether something outside its node kept a step from going on.
func isBlocked(err error) bool {
	_, ok := errors.AsType[*stage.BlockedError](err)
	return ok
}

// endUnrecorded is the end of a step whose records cannot be written any more.
func (e *Executor) endUnrecorded(err error) ending {
	return ending{state: interrupted, at: e.clock.Now().UTC(), err: err, kind: errkind.Interrupted,
		cause: state.Cause{Kind: state.ByInterrupt, Text: "records cannot be written"}}
}
