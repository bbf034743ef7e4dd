// SPDX-License-Identifier: Apache-2.0

package predict_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/predict/predicttest"
)

// TestLab predicts the second run of the lab from the first one. Only the tests
// between the nodes are off by more than a quarter: one lasted 15 s, then 6 s.
func TestLab(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory()
		got, p, run := predict.PredictLab(t, store)
		m, err := predicttest.Measure(t.Context(), store, p, run)
		if err != nil {
			t.Fatal(err)
		}
		var off []string
		for _, e := range predicttest.Check(got, m) {
			t.Logf("%-9s %8s %8s %+.0f %%", e.Stage, predict.FormatDuration(e.Predicted), predict.FormatDuration(e.Measured), e.Percent)
			if !e.Within(25) {
				off = append(off, e.Stage)
			}
		}
		if !slices.Equal(off, []string{"fabric", "validate"}) {
			t.Errorf("off by more than a quarter: %q", off)
		}
		for _, s := range got.Stages {
			if s.Source != "history of 1 run" {
				t.Errorf("stage %s is from %q", s.Name, s.Source)
			}
		}
	})
}
