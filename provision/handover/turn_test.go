// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/handover"
)

// dying is a run whose process dies where it says; what it wrote before stays. Its
// journal knows effects in doubt, as the engine's does.
type dying struct {
	*onnodetest.Run
	at    string // "intent", "deed" or "outcome"; empty: it lives
	doubt map[string]bool
}

var errDied = errors.New("killed")

func (d *dying) Effect(ctx context.Context, e stage.Effect) error {
	if d.doubt[e.Key] {
		switch seen, _, err := e.Probe(ctx); {
		case err != nil:
			return err
		case seen == stage.Done:
			d.Effects = append(d.Effects, e.Key)
		}
		delete(d.doubt, e.Key)
	}
	if slices.Contains(d.Effects, e.Key) {
		return nil
	}
	d.doubt[e.Key] = true
	if d.at == "intent" {
		return errDied
	}
	if err := e.Do(ctx); err != nil {
		return err
	}
	if d.at == "deed" {
		return errDied
	}
	delete(d.doubt, e.Key)
	d.Effects = append(d.Effects, e.Key)
	return nil
}

func (d *dying) Learn(ctx context.Context, fs ...fact.Fact) error {
	if d.at == "outcome" {
		return errDied
	}
	return d.Run.Learn(ctx, fs...)
}

// TestTurn: a drain is done once, wherever the process dies and is started again; the
// next drain, after the node was put back, is done again; and one that somebody has
// undone between the two processes as well.
func TestTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, at string
		undone   bool // by a person, before the second process
		deeds    int  // of the first drain, by both processes
		keys     []string
	}{
		{name: "nothing happens", deeds: 1, keys: []string{"n1/drain-1"}},
		{name: "killed before the deed", at: "intent", deeds: 1, keys: []string{"n1/drain-1"}},
		{name: "killed between deed and outcome", at: "deed", deeds: 1, keys: []string{"n1/drain-1"}},
		{name: "killed after the outcome", at: "outcome", deeds: 1, keys: []string{"n1/drain-1"}},
		{name: "undone while nobody knew", at: "deed", undone: true, deeds: 2, keys: []string{"n1/drain-1"}},
		{name: "undone after the outcome", at: "outcome", undone: true, deeds: 2, keys: []string{"n1/drain-1", "n1/drain-2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			drained, deeds, n1 := false, 0, subject.OfNode("n1")
			e := stage.Effect{Key: "n1/drain", Kind: plan.Config, Repeatable: true,
				Probe: func(context.Context) (stage.Probe, string, error) {
					if drained {
						return stage.Done, "", nil
					}
					return stage.NotDone, "", nil
				},
				Do: func(context.Context) error { drained = true; deeds++; return nil }}
			run := &dying{Run: onnodetest.NewRun(n1), at: c.at, doubt: map[string]bool{}}
			if err := handover.DoEffect(t.Context(), run, n1, e); (err != nil) != (c.at != "") {
				t.Fatal(err)
			}
			if run.at = ""; c.undone {
				drained = false
			}
			if c.at != "" {
				if err := handover.DoEffect(t.Context(), run, n1, e); err != nil {
					t.Fatal(err)
				}
			}
			if !drained || deeds != c.deeds || !slices.Equal(run.Effects, c.keys) {
				t.Errorf("drained %v by %d deeds, %q; want %d, %q", drained, deeds, run.Effects, c.deeds, c.keys)
			}
			drained = false // the node was put back, and is drained by a later plan
			if err := handover.DoEffect(t.Context(), run, n1, e); err != nil || !drained || deeds != c.deeds+1 {
				t.Errorf("the second drain: %v, drained %v by %d deeds", err, drained, deeds)
			}
		})
	}
}
