package control

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/subject"
)

// Explain reads a node's story from the state: all but what is under way. It
// serves the owner and, when there is none, the command line alike. The error is
// of kind mismatch when the state knows nothing about the node.
func Explain(ctx context.Context, r state.Reader, node string) (Why, error) {
	n, version, err := state.Get[state.Node](ctx, r, state.NodeKey(node))
	if err != nil {
		return Why{}, err
	}
	w := Why{Node: n, Steps: []state.Step{}, Effects: []state.Effect{}, Skipped: []state.Record{}}
	of := map[plan.StepID]bool{}
	err = r.Read(ctx, 1, func(rec state.Record) error {
		switch {
		case rec.Kind == state.RunStarted:
			w.Skipped = w.Skipped[:0]
		case rec.Subject != subject.OfNode(node):
		case rec.Kind == state.StepSkipped:
			w.Skipped = append(w.Skipped, rec)
		case rec.Step != "":
			of[plan.StepID(rec.Step)] = true
		}
		return nil
	})
	if err != nil {
		return w, err
	}
	if version == state.Absent && len(of) == 0 && len(w.Skipped) == 0 {
		return w, errkind.New(errkind.Mismatch, "nothing is known about a node %s", node).
			Do("Look at the names with ironrail status.")
	}
	w.Node.Name = node
	return w, w.collect(ctx, r, of)
}

// collect reads the objects behind the steps of a node.
func (w *Why) collect(ctx context.Context, r state.Reader, of map[plan.StepID]bool) error {
	steps, err := state.Steps(ctx, r)
	if err != nil {
		return err
	}
	for id, s := range steps {
		if of[id] && s.ID == id {
			w.Steps = append(w.Steps, s)
		}
	}
	effects, err := state.Effects(ctx, r)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if of[e.Step] {
			w.Effects = append(w.Effects, e)
		}
	}
	slices.SortFunc(w.Steps, func(a, b state.Step) int { return a.Started.Compare(b.Started) })
	slices.SortFunc(w.Effects, func(a, b state.Effect) int { return a.At.Compare(b.At) })
	return nil
}
