// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Effect does one side effect, journaled before and after. An error of Do whose kind is
// refused, auth, unsupported or mismatch says that nothing happened, unless it is marked
// by errkind.Begun. After any other error the effect is in doubt, as it is after a crash,
// and is probed before it is done again.
func (r *stepRun) Effect(ctx context.Context, f stage.Effect) error {
	if err := r.checkAllowed(ctx, f); err != nil {
		return err
	}
	l := r.exec.ledger
	defer l.effectLocks.lock(f.Key)()
	known, begun, err := l.readEffect(ctx, f.Key)
	if err != nil {
		return err
	}
	switch {
	case !begun, known.State == state.EffectNotDone:
	case known.State == state.EffectIsDone:
		r.Emit(event.Event{Type: event.EffectDone, Text: "done before: " + f.Does, Data: map[string]string{"key": f.Key}})
		return nil
	default:
		if settled, err := r.settleDoubt(ctx, f); settled || err != nil {
			return err
		}
	}
	return r.doEffect(ctx, f)
}

// checkAllowed refuses an effect of a kind that the plan does not show for the step, and
// any effect on a node on hold.
func (r *stepRun) checkAllowed(ctx context.Context, f stage.Effect) error {
	if err := r.checkOpen(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.Key == "" || f.Do == nil || bits.OnesCount8(uint8(f.Kind)) != 1 {
		return fmt.Errorf("effect %q of step %s is incomplete: it needs a key, one kind and Do", f.Key, r.task.step.ID)
	}
	if !r.task.step.May.Has(f.Kind) {
		return errkind.New(errkind.Refused, "step %s may not %s: the plan allows it %q", r.task.step.ID, f.Kind, r.task.step.May)
	}
	for _, m := range r.members {
		if k := r.exec.ledger.condition(nodeNameOf(m)); k.hold != nil {
			return errkind.New(errkind.Refused, "%s is %s", m.Name, k.cause().Text).Do("Release it with ironrail release " + m.Name + ".")
		}
	}
	return nil
}

// settleDoubt probes an effect in doubt. It returns true when the effect happened, false
// when it is to be done, and an error when neither is known.
func (r *stepRun) settleDoubt(ctx context.Context, f stage.Effect) (bool, error) {
	found, seen := stage.Doubt, "no probe"
	if f.Probe != nil {
		var err error
		if found, seen, err = f.Probe(ctx); err != nil {
			return false, fmt.Errorf("probe whether it happened before (%s): %w", f.Does, err)
		}
	}
	switch {
	case found == stage.Done:
		return true, r.recordEffect(f, state.Effect{State: state.EffectIsDone, Detail: "found done: " + seen})
	case found == stage.NotDone || f.Repeatable:
		return false, nil
	}
	return false, errkind.New(errkind.Mismatch, "outcome unknown after an interruption: %s (%s)", f.Does, seen).
		Do(fmt.Sprintf("Check on %s whether it was done, then plan again: it must be neither lost nor done twice.", r.task.step.Subject.Name))
}

// doEffect journals the intent, does it, and journals the outcome.
func (r *stepRun) doEffect(ctx context.Context, f stage.Effect) error {
	if err := r.recordEffect(f, state.Effect{State: state.EffectIntended}); err != nil {
		return err
	}
	if ctx.Err() != nil { // held or stopped during the write: nothing happened
		_ = r.recordEffect(f, state.Effect{State: state.EffectNotDone, Detail: "stopped before it began"})
		return context.Cause(ctx)
	}
	if err := r.exec.ledger.checkLease(); err != nil {
		return err // its intent stands: the next owner probes it
	}
	err := f.Do(ctx)
	if err == nil {
		return r.recordEffect(f, state.Effect{State: state.EffectIsDone})
	}
	x := state.Effect{State: state.EffectInDoubt, Begun: errkind.HasBegun(err), Detail: errkind.Line(err)}
	switch errkind.Of(err).Base() {
	case errkind.Refused, errkind.Auth, errkind.Unsupported, errkind.Mismatch:
		if !x.Begun {
			x.State = state.EffectNotDone
		}
	}
	if x.State == state.EffectInDoubt && f.Probe == nil && !f.Repeatable {
		r.markStuck() // another try would end in the same doubt
	}
	if werr := r.recordEffect(f, x); werr != nil {
		return werr
	}
	return fmt.Errorf("%s: %w", f.Does, err)
}

// recordEffect makes a state of the effect durable and shows it; x says State, Detail and
// Begun.
func (r *stepRun) recordEffect(f stage.Effect, x state.Effect) error {
	x.Key, x.Kind, x.Does = f.Key, f.Kind, f.Does
	x.Step, x.Run, x.At = r.task.step.ID, r.exec.run.ID, r.exec.clock.Now().UTC()
	if err := r.exec.ledger.recordEffect(r.task, x); err != nil {
		return err
	}
	r.Emit(event.Event{Type: event.EffectDone, Text: f.Does,
		Data: map[string]string{"key": f.Key, "state": string(x.State), "kind": f.Kind.String()}})
	return nil
}

// keyLocks is one lock for each key in use.
type keyLocks struct {
	mu    sync.Mutex // guards locks
	locks map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock locks a key and returns what unlocks it.
func (k *keyLocks) lock(key string) func() {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyLock{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
}
