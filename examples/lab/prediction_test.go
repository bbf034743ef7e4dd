// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/predict/predicttest"
)

// TestPrediction brings the machines up once, predicts their reinstallation from
// that one run of history, and compares it with how it goes. What is off by more
// than 25 % is said and is no failure: the machines are emulated beside others.
func TestPrediction(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "predict"})
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n1", "n2")
	p := l.Plan("--replace", "n1,n2")
	guess := predicted(t, l, &p)
	l.Want(labtest.ExitDone, l.Ironrail("rebuild", "n1", "n2", "--auto-approve"))

	store, last := opened(t, l)
	defer store.Close()
	m, err := predicttest.Measure(t.Context(), store, &p, last.ID)
	if err != nil {
		t.Fatal(err)
	}
	errs := predicttest.Check(guess, m)
	if len(errs) < 4 {
		t.Fatalf("only %d stages can be compared", len(errs))
	}
	for _, e := range errs {
		verdict := "within 25 %"
		if !e.Within(25) {
			verdict = "NOT within 25 %"
		}
		t.Logf("%-10s predicted %8s measured %8s: %+.0f %%, %s", e.Stage, e.Predicted.Round(time.Second/10), e.Measured.Round(time.Second/10), e.Percent, verdict)
	}
}

// predicted says how long a plan is expected to take, from the lab's own past.
func predicted(t *testing.T, l *labtest.Lab, p *plan.Plan) predict.Prediction {
	t.Helper()
	inv, diags, _ := inventory.Load(filepath.Dir(l.State()), inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	site, err := provision.Open(inv, provision.Options{Look: true})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := opened(t, l)
	defer store.Close()
	past, err := site.Past(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	g, err := site.Predict(p, past, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// opened is the lab's state, and its last run.
func opened(t *testing.T, l *labtest.Lab) (*state.Bolt, state.Run) {
	t.Helper()
	store, err := state.OpenReadOnly(filepath.Join(l.State(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := state.Get[state.Run](t.Context(), store, state.LastRun)
	if err != nil {
		t.Fatal(err)
	}
	return store, run
}
