// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// What a run needs of the state when it begins or goes on is a small part of it:
// these read that part without decoding the rest.

// ReadEffectsInDoubt reads the effects that were begun and of which nobody knows whether they
// were done, by their step.
func ReadEffectsInDoubt(ctx context.Context, r Reader) (map[plan.StepID][]Effect, error) {
	out := map[plan.StepID][]Effect{}
	err := scanKind(ctx, r, effectKind, func(n int, at func(int) (raw, error)) error {
		for i := range n {
			o, err := at(i)
			if err != nil {
				return err
			}
			if settledEffect(o.value) {
				continue
			}
			var e Effect
			if err := json.Unmarshal(o.value, &e); err != nil {
				return fmt.Errorf("object %s is not readable: %w", o.name, err)
			}
			if e.State == EffectIntended || e.State == EffectInDoubt {
				out[e.Step] = append(out[e.Step], e)
			}
		}
		return nil
	})
	return out, err
}

// settledEffect reports whether a stored effect is surely not in doubt.
func settledEffect(value []byte) bool {
	w := walk{b: value}
	for w.field() {
		if v := w.value(); string(w.key) == "state" {
			return string(v) == `"done"` || string(v) == `"failed"`
		}
	}
	return false
}

// ReadPlanSteps reads the last state of the steps that a plan did. Of those that ended
// well it leaves out their inputs and evidence.
func ReadPlanSteps(ctx context.Context, r Reader, planID string) (map[plan.StepID]Step, error) {
	out := map[plan.StepID]Step{}
	err := decodeAll(ctx, r, stepKind, newEndDecoder, func(s *Step, _ uint64) {
		if s.Plan == planID {
			out[s.ID] = *s
		}
	})
	return out, err
}

// ReadFactsNamed reads the facts of these names, of every subject.
func ReadFactsNamed(ctx context.Context, r Reader, names ...string) (map[fact.Key]fact.Fact, error) {
	out := map[fact.Key]fact.Fact{}
	err := scanKind(ctx, r, factKind, func(n int, at func(int) (raw, error)) error {
		for i := range n {
			o, err := at(i)
			if err != nil {
				return err
			}
			if _, name, _ := strings.Cut(o.name, "#"); !slices.Contains(names, name) {
				continue
			}
			var f fact.Fact
			value, err := WholeValue(ctx, r, Object{Key: Key{factKind, o.name}, Version: o.version, Value: o.value})
			if err == nil {
				err = json.Unmarshal(value, &f)
			}
			if err != nil {
				return fmt.Errorf("object %s is not readable: %w", o.name, err)
			}
			out[f.Key] = f
		}
		return nil
	})
	return out, err
}

// ReadUnreachedSteps returns the steps of nodes that the plan of a run without an end did not
// come to, where it had begun to change the node: who replaces that plan has to
// forget their earlier good ends, which nothing else shows to be void.
func ReadUnreachedSteps(ctx context.Context, r Reader) ([]plan.StepID, error) {
	p, run, err := ReadUnfinishedPlan(ctx, r)
	if err != nil || p == nil {
		return nil, err
	}
	last, err := ReadSteps(ctx, r)
	if err != nil {
		return nil, err
	}
	changes := ^plan.Effects(plan.Load)
	begun := map[string]bool{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Subject.Kind == subject.Node && s.Only == "" && s.May&changes != 0 && last[s.ID].Plan == run.Plan {
			begun[s.Subject.Name] = true
		}
	}
	var left []plan.StepID
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Subject.Kind == subject.Node && s.Only == "" && begun[s.Subject.Name] && last[s.ID].Plan != run.Plan {
			left = append(left, s.ID)
		}
	}
	return left, nil
}

// lastRun reads the run that was started last; left reports whether work of its
// plan is left over.
func lastRun(ctx context.Context, r Reader) (run Run, left bool, err error) {
	run, version, err := Get[Run](ctx, r, LastRun)
	return run, err == nil && version != Absent && run.Resumable(), err
}

// peekObject gives the value of one object to f, when there is one; that of a file is
// not copied.
func peekObject(ctx context.Context, r Reader, k Key, f func(value []byte) error) error {
	b, ok := r.(*Bolt)
	if !ok {
		o, found, err := r.Object(ctx, k)
		if err == nil && found {
			err = f(o.Value)
		}
		return err
	}
	return b.view(ctx, func(tx *bbolt.Tx) error {
		key := []byte(k.String())
		stored := tx.Bucket(objectBucket).Get(key)
		if stored == nil {
			return nil
		}
		_, value, err := b.object(key, stored)
		if err != nil {
			return damagedError(b.path, err)
		}
		return f(value)
	})
}

// plannedSteps reads which steps the plan of a run has.
func plannedSteps(ctx context.Context, r Reader, run Run) (ids []plan.StepID, err error) {
	return ids, readPlanOf(ctx, r, run, planParts{
		anew: func() { ids = nil },
		head: func(raw []byte) error { // it has the steps where the plan is not as encoding/json writes it
			var p struct{ Steps []struct{ ID plan.StepID } }
			err := json.Unmarshal(raw, &p)
			for _, s := range p.Steps {
				ids = append(ids, s.ID)
			}
			return err
		},
		steps: func(list []byte) error {
			some := stepIDs(list)
			if some == nil {
				var steps []struct{ ID plan.StepID }
				if err := json.Unmarshal(list, &steps); err != nil {
					return err
				}
				for _, s := range steps {
					some = append(some, s.ID)
				}
			}
			ids = append(ids, some...)
			return nil
		},
	})
}

// readPlanOf gives the parts of the plan of a run to f.
func readPlanOf(ctx context.Context, r Reader, run Run, f planParts) error {
	found, err := readPlanParts(ctx, r, run.Plan, f)
	if err == nil && !found {
		err = fmt.Errorf("state: plan %s of run %s is not there", run.Plan, run.ID)
	}
	return err
}

// stepIDs reads the ids in a list of steps; nil when it is not as encoding/json
// writes it.
func stepIDs(list []byte) (ids []plan.StepID) {
	cuts := cutList(list)
	for i := 1; i < len(cuts); i++ {
		w := walk{b: list[cuts[i-1] : cuts[i]-1]}
		if !w.field() || string(w.key) != "id" { // it is written first
			return nil
		}
		var id plan.StepID
		if json.Unmarshal(w.value(), &id) != nil || w.bad {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// stepsIn returns where the list of steps of a plan begins and ends; negative
// when it is not as encoding/json writes it.
func stepsIn(value []byte) (from, to int) {
	from = -1
	w := walk{b: value}
	for w.field() {
		at := w.at
		v := w.value()
		if string(w.key) == "steps" && bytes.HasPrefix(v, []byte("[{")) {
			from, to = at, at+len(v)
		}
	}
	if !w.whole() {
		return -1, 0
	}
	return from, to
}

// cutList returns where the elements of a list begin, and one past its end: an
// element lies between one cut and the comma before the next. It is nil for a list
// that is not as encoding/json writes it.
func cutList(list []byte) []int {
	cuts := []int{1}
	for at := 1; at > 0 && at < len(list); {
		if at = skipValue(list, at); at < 0 || at >= len(list) || list[at] != ',' && at != len(list)-1 {
			return nil
		}
		at++
		cuts = append(cuts, at)
	}
	return cuts
}

// runInParts runs f over parts of n things, on as many goroutines as there are cores:
// part is less than their number.
func runInParts(n int, f func(part, from, to int) error) error {
	parts := min(runtime.GOMAXPROCS(0), 1+n/512)
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for c := range parts {
		wg.Go(func() { errs[c] = f(c, n*c/parts, n*(c+1)/parts) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
