// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// ReadWhy reads a node's story from the state: all but what is under way. It
// serves the owner and, when there is none, the command line alike. The error is
// of kind mismatch when the state knows nothing about the node. near are subjects
// that the node hangs on: what was found of them is told as well.
func ReadWhy(ctx context.Context, r state.Reader, node string, near ...subject.ID) (Why, error) {
	n, version, err := state.Get[state.Node](ctx, r, state.NodeKey(node))
	if err != nil {
		return Why{}, err
	}
	w := Why{Node: n, Steps: []state.Step{}, Effects: []state.Effect{}, Skipped: []state.Record{}}
	of := map[plan.StepID]bool{}
	choice := state.Choice{Subjects: []subject.ID{subject.OfNode(node)}, SubjectKinds: []subject.Kind{subject.Site}, Kinds: []state.RecordKind{state.RunStarted}}
	err = state.ReadChosen(ctx, r, choice, func(rec state.Record) error {
		switch {
		case rec.Kind == state.RunStarted:
			w.Skipped, w.Near = w.Skipped[:0], nil
		case rec.Subject != subject.OfNode(node):
			if f, ok := decodeSiteFinding(rec); ok && slices.Contains(f.About, subject.OfNode(node)) {
				w.Near = append(w.Near, f)
			}
		case rec.Kind == state.StepSkipped:
			w.Skipped = append(w.Skipped, rec)
		default:
			if rec.Step != "" {
				of[plan.StepID(rec.Step)] = true
			}
			w.addRecord(rec)
		}
		return nil
	})
	if err != nil {
		return w, err
	}
	if version == state.Absent && len(of) == 0 && len(w.Skipped) == 0 {
		return w, errkind.New(errkind.NotFound, "nothing is known about a node %s", node).
			Do("Look at the names with ironrail status.")
	}
	if last, version, err := state.Get[state.Run](ctx, r, state.LastRun); err != nil {
		return w, err
	} else if version != state.Absent {
		w.Last = &last
	}
	w.Node.Name = node
	w.Journal = w.Journal[max(0, len(w.Journal)-MostRecords):]
	return w, w.collect(ctx, r, of, near)
}

// addNear keeps what a failed step found of what the node hangs on.
func (w *Why) addNear(s state.Step, near []subject.ID) {
	for _, f := range s.Blamed {
		if slices.ContainsFunc(f.Suspects, func(x stage.Suspect) bool { return slices.Contains(near, x.Subject) }) {
			f.Step = string(s.ID)
			w.Near = append(w.Near, f)
		}
	}
}

// addRecord keeps a record of the node for its story.
func (w *Why) addRecord(rec state.Record) {
	switch rec.Kind {
	case state.FactLearned, state.AttemptOpened, state.AttemptClosed, state.GroupFrozen:
		return
	}
	if len(w.Journal) >= 2*MostRecords {
		w.Journal = append(w.Journal[:0], w.Journal[len(w.Journal)-MostRecords:]...)
	}
	w.Journal = append(w.Journal, rec)
}

// LastRunRecords is what the journal says of the last run beside its nodes' own steps.
type LastRunRecords struct {
	Skipped map[string][]state.Record // of each node: steps that were not started, with why
	// Findings are those of no step, about the site: what the boot services saw.
	Findings []stage.Finding
}

// ReadLastRun reads what the last run left.
func ReadLastRun(ctx context.Context, r state.Reader) (LastRunRecords, error) {
	out := LastRunRecords{Skipped: map[string][]state.Record{}}
	choice := state.Choice{SubjectKinds: []subject.Kind{subject.Site}, Kinds: []state.RecordKind{state.RunStarted, state.StepSkipped}}
	err := state.ReadChosen(ctx, r, choice, func(rec state.Record) error {
		switch {
		case rec.Kind == state.RunStarted:
			clear(out.Skipped)
			out.Findings = nil
		case rec.Kind == state.StepSkipped && rec.Subject.Kind == subject.Node:
			out.Skipped[rec.Subject.Name] = append(out.Skipped[rec.Subject.Name], rec)
		default:
			if f, ok := decodeSiteFinding(rec); ok {
				out.Findings = append(out.Findings, f)
			}
		}
		return nil
	})
	return out, err
}

// decodeSiteFinding reads a finding about the site that no step made.
func decodeSiteFinding(rec state.Record) (f stage.Finding, ok bool) {
	if rec.Kind != state.FindingMade || rec.Step != "" || rec.Subject.Kind != subject.Site {
		return f, false
	}
	return f, json.Unmarshal(rec.Data, &f) == nil
}

// collect reads the objects behind the steps of a node.
func (w *Why) collect(ctx context.Context, r state.Reader, of map[plan.StepID]bool, near []subject.ID) error {
	steps, err := state.ReadChosenSteps(ctx, r, of)
	if err != nil {
		return err
	}
	for id, s := range steps {
		if of[id] && s.ID == id {
			w.Steps = append(w.Steps, s)
		}
		if s.State == state.StepIsFailed {
			w.addNear(s, near)
		}
	}
	slices.SortFunc(w.Near, func(a, b stage.Finding) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Cause, b.Cause))
	})
	effects, err := state.ReadEffectsOf(ctx, r, of)
	if err != nil {
		return err
	}
	for _, e := range effects {
		w.Effects = append(w.Effects, e)
	}
	slices.SortFunc(w.Steps, func(a, b state.Step) int {
		return cmp.Or(a.Started.Compare(b.Started), a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(w.Effects, func(a, b state.Effect) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
	return nil
}
