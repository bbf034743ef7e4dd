// SPDX-License-Identifier: Apache-2.0

// Package looks holds what looks at steps that were done have shown, as it is stored.
package looks

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
)

// Look is what a look at one step that was done has shown. It is stored as
// object seen/STEPID when a run follows the look: what conformed is trusted
// again from then on. The format only grows.
type Look struct {
	Step     plan.StepID      `json:"step"`
	At       time.Time        `json:"at"`
	State    stage.Conformity `json:"state"`
	Evidence string           `json:"evidence,omitempty"`
	// Operations are what differs, of a switch; they are not stored.
	Operations []plan.Operation `json:"-"`

	// Facts are what the look learned and the state is to know: host keys of switches, and
	// all of an inherited step.
	Facts []fact.Fact `json:"-"`
	// Inherited is the step that was looked at, where it was never done and may be so all
	// the same; nil for others. One that conforms is recorded as done.
	Inherited *plan.Step `json:"-"`
}

// seenKind is the kind of the objects of looks.
const seenKind = "seen"

// Read reads the last look at a step; the version is state.Absent where there was none.
func Read(ctx context.Context, r state.Reader, step plan.StepID) (Look, uint64, error) {
	return state.Get[Look](ctx, r, state.Key{Kind: seenKind, Name: string(step)})
}

// ConformingSince are the steps that a look has found as they should be since then.
func ConformingSince(ctx context.Context, r state.Reader, since time.Time) (map[plan.StepID]bool, error) {
	fresh := map[plan.StepID]bool{}
	err := state.Each(ctx, r, seenKind, func(_ state.Key, l Look) {
		if l.State == stage.Conforms && !l.At.Before(since) {
			fresh[l.Step] = true
		}
	})
	return fresh, err
}

// addFacts adds what a look learned to what is stored: who was believed once is known
// from then on.
func addFacts(b *state.Batch, l Look) error {
	for _, f := range l.Facts {
		f.Observed = l.At
		p, err := state.PutOf(state.FactKey(f.Key), f)
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
		b.Records = append(b.Records, state.Record{Kind: state.FactLearned, Time: l.At, Subject: f.Key.Subject}.With(f))
	}
	return nil
}

// addInherited adds a step that was found to be so without having been done: from then on
// it counts as done, and its inputs are compared.
func addInherited(b *state.Batch, l Look) error {
	if l.Inherited == nil || l.State != stage.Conforms {
		return nil
	}
	p, err := state.PutOf(state.StepKey(l.Step), state.Step{ID: l.Step, State: state.StepIsDone, Version: l.Inherited.Version, Inputs: l.Inherited.Inputs,
		Started: l.At, Ended: l.At, Observed: true, Evidence: l.Evidence})
	if err == nil {
		b.Puts = append(b.Puts, p)
	}
	return err
}

// Record stores what looks have shown. A step that differed, or could not be
// told, is looked at again by the next plan.
func Record(ctx context.Context, store state.Store, fence state.Fence, looks []Look) error {
	parts := make([]state.Batch, len(looks))
	for i, l := range looks {
		b := &parts[i]
		p, err := state.PutOf(state.Key{Kind: seenKind, Name: string(l.Step)}, l)
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
		if err := addFacts(b, l); err != nil {
			return err
		}
		if err := addInherited(b, l); err != nil {
			return err
		}
	}
	return state.AppendParts(ctx, store, fence, parts...)
}
