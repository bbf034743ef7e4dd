// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// retryPauses are how long a step waits before each retry, by the kind of its error. Other
// kinds are not retried: what was refused stays refused (a driver waits for a busy BMC
// itself), a wrong password tried again locks the account, and what a person must look at
// (a mismatch and the kinds of that base, an internal error) does not pass by itself.
var retryPauses = map[errkind.Kind][]time.Duration{
	errkind.Unreachable: {5 * time.Second, 20 * time.Second, time.Minute},
	errkind.Timeout:     {5 * time.Second, 20 * time.Second, time.Minute}, // of a call; the step's own deadline ends it
	errkind.Interrupted: {5 * time.Second, 20 * time.Second, time.Minute}, // by the other side; the operator's ends it
}

// nextTryKey is the key of an event's data that holds the number of the next try.
const nextTryKey = "try"

// runWithRetries does the work of a step, and retries it after an error that may pass,
// while it has made no finding and its deadline leaves room. Each try observes first and
// probes effects in doubt: nothing is repeated blindly.
func (e *Executor) runWithRetries(ctx context.Context, r *stepRun, t *task) (o stage.Observation, err error) {
	for try := 1; ; try++ {
		if o, err = e.observeAndApply(ctx, r, t); err == nil || ctx.Err() != nil {
			return o, err
		}
		kind := errkind.Of(err)
		waits := retryPauses[kind]
		if try > len(waits) || r.isFinal() {
			return o, err
		}
		wait := jitterPause(waits[try-1], t.step.ID, try)
		if until := t.started.Add(t.step.Deadline.Limit); e.clock.Now().Add(wait).After(until) {
			return o, err
		}
		if t.step.May.Has(plan.Erase) && !e.isKnownUndone(ctx, r, t) {
			return o, err
		}
		if werr := r.recordRetry(try, wait, kind, err); werr != nil {
			return o, werr
		}
		if e.clock.Sleep(ctx, wait) != nil {
			return o, err
		}
	}
}

// isKnownUndone reports whether a step that erases is known not to have been done: only
// then is it tried again.
func (e *Executor) isKnownUndone(ctx context.Context, r *stepRun, t *task) bool {
	o, err := e.cfg.Stages[t.step.Stage].Observe(ctx, r, *t.step)
	return err == nil && (o.State == stage.Differs || o.State == stage.Conforms)
}

// recordRetry records that a step will be tried again, and shows it.
func (r *stepRun) recordRetry(try int, wait time.Duration, kind errkind.Kind, err error) error {
	if err := r.exec.ledger.recordRetry(r.task, state.Retry{Try: try, Kind: kind, Error: errkind.Line(err), Wait: wait}); err != nil {
		return err
	}
	r.mu.Lock()
	r.tries = try
	r.mu.Unlock()
	until := r.exec.clock.Now().Add(wait).UTC()
	text := fmt.Sprintf("try %d of %d in %s: %v", try+1, len(retryPauses[kind])+1, wait.Round(time.Second), errkind.Line(err))
	r.Emit(event.Event{Type: event.StepRetried, Text: text, Until: until, Data: map[string]string{"kind": kind.String(), nextTryKey: fmt.Sprint(try + 1)}})
	r.Emit(event.Event{Type: event.StepProgress, Text: text, Until: until, Data: map[string]string{nextTryKey: fmt.Sprint(try + 1)}})
	return nil
}

// jitterPause spreads a pause by a quarter to both sides, so that steps that failed
// together do not retry together. It depends on the step and the try alone, so that the
// same run takes the same time again.
func jitterPause(d time.Duration, id plan.StepID, try int) time.Duration {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d", id, try)
	return d*3/4 + d/2*time.Duration(h.Sum32()%1024)/1024
}
