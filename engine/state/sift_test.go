// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestChosen: what is sifted out of a file and out of memory is what is in all of it,
// whatever stands in the data of others.
func TestChosen(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]statetest.Open{"file": openBolt, "memory": statetest.OnMemory(false).Open} {
		s := open(t, t.TempDir())
		t.Cleanup(func() { _ = s.Close() })
		f, err := s.Claim(t.Context(), "test")
		if err == nil {
			err = statetest.Fill(t.Context(), s, f, 4)
		}
		if err != nil {
			t.Fatal(err)
		}
		odd := subject.ID{Kind: subject.Site, Name: `a"<b`}
		failed, err := state.PutOf(state.StepKey("n00002/x"), state.Step{ID: "n00002/x", State: state.StepIsFailed})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{failed}, Records: []state.Record{
			{Kind: state.Note, Subject: odd}, {Kind: state.Note, Subject: subject.OfNode("n000011")}, {Kind: state.Held, Step: `x"subject":"node/n00001"`},
			state.Record{Kind: state.Note}.With(`"subject":"node/n00001"`), state.Record{Kind: state.Note}.With(map[string]string{"subject": "node/n00001"}),
		}}); err != nil {
			t.Fatal(err)
		}
		c := state.Choice{Subjects: []subject.ID{subject.OfNode("n00001")}, SubjectKinds: []subject.Kind{subject.Site}, Kinds: []state.RecordKind{state.RunStarted}}
		var got, want []string
		if err := state.ReadChosen(t.Context(), s, c, func(r state.Record) error { got = append(got, fmt.Sprint(r)); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.Read(t.Context(), 1, func(r state.Record) error {
			if r.Subject == subject.OfNode("n00001") || r.Subject == odd || r.Kind == state.RunStarted {
				want = append(want, fmt.Sprint(r))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(want) < 20 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d records, want %d", name, len(got), len(want))
		}
		chosenObjects(t, name, s)
	}
}

func chosenObjects(t *testing.T, name string, s state.Store) {
	t.Helper()
	of := map[plan.StepID]bool{"n00001/bmc": true, "n00003/install.netboot": true, "n9/none": true}
	steps, err := state.ReadChosenSteps(t.Context(), s, of)
	if err != nil || len(steps) != 3 || steps["n00001/bmc"].Run == "" || steps["n00002/x"].State != state.StepIsFailed {
		t.Errorf("%s: %d steps: %v", name, len(steps), err)
	}
	all, errAll := state.ReadEffects(t.Context(), s)
	effects, err := state.ReadEffectsOf(t.Context(), s, of)
	if err != nil || errAll != nil || len(effects) != 2 || len(all) != 16 {
		t.Errorf("%s: %d of %d effects: %v %v", name, len(effects), len(all), err, errAll)
	}
	for k, e := range effects {
		if !reflect.DeepEqual(e, all[k]) {
			t.Errorf("%s: effect %s is %+v", name, k, e)
		}
	}
}
