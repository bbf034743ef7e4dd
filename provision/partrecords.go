// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/parts"
)

// partRecords is a stage that knows parts by their serial numbers: it says when a
// node has one that was found bad before, and adds that to what is found of it.
// It only reads; the histories are written between runs.
type partRecords struct {
	stage.Stage
	inv   *inventory.Inventory
	store state.Reader
}

// Apply implements stage.Stage.
func (r partRecords) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	return r.Stage.Apply(ctx, partRecordsRun{run, r}, st)
}

// partRecordsRun looks at what is learned and blamed.
type partRecordsRun struct {
	stage.Run
	by partRecords
}

// Learn implements stage.Run. A warning that cannot be made is no reason to stop.
func (r partRecordsRun) Learn(ctx context.Context, fs ...fact.Fact) error {
	err := r.Run.Learn(ctx, fs...)
	for _, f := range fs {
		if err != nil || f.Key.Name != string(install.HardwareFact) {
			continue
		}
		hw, herr := install.HardwareFact.Get(f)
		if herr != nil {
			continue
		}
		bad, _ := parts.Suspects(ctx, r.by.store, parts.List(hw))
		for _, s := range bad {
			if s.Elsewhere(f.Key.Subject.Name) {
				r.Emit(event.Event{Type: event.Note, Node: f.Key.Subject.Name, Text: "warning: " + s.Sentence()})
			}
		}
	}
	return err
}

// Blame implements stage.Run: what was found of the suspected parts before is
// evidence.
func (r partRecordsRun) Blame(ctx context.Context, f stage.Finding) error {
	f.Evidence = slices.Clone(f.Evidence)
	for _, s := range f.Suspects {
		if s.Subject.Kind != subject.Node || s.Part == "" {
			continue
		}
		n, _ := r.by.inv.Node(s.Subject.Name)
		bad, _ := parts.Suspects(ctx, r.by.store, parts.Resolve(r.fits(s.Subject), s.Part, n))
		for _, b := range bad {
			f.Evidence = append(f.Evidence, b.Sentence())
		}
	}
	return r.Run.Blame(ctx, f)
}

// fits are the parts of a node as they were learned last, in this run or before.
func (r partRecordsRun) fits(node subject.ID) []parts.Fit {
	f, ok := r.Fact(install.HardwareFact.Of(node))
	if !ok {
		return nil
	}
	hw, err := install.HardwareFact.Get(f)
	if err != nil {
		hw = wire.Hardware{}
	}
	return parts.List(hw)
}
