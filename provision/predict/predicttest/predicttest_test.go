// SPDX-License-Identifier: Apache-2.0

package predicttest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/predict"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	p := predict.Prediction{Expected: 100 * time.Second, Stages: []predict.Stage{{Name: "install", Active: 50 * time.Second}, {Name: "fabric", Active: time.Second}, {Name: "more"}}}
	m := Measured{Wall: 80 * time.Second, Stages: []predict.Stage{{Name: "install", Active: 100 * time.Second}, {Name: "fabric", Active: 1500 * time.Millisecond}}}
	var got []string
	for _, e := range Check(p, m) {
		got = append(got, fmt.Sprintf("%s %.0f %t", e.Stage, e.Percent, e.Within(25)))
	}
	if want := []string{"install -50 false", "fabric -33 true", "run 25 true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMeasureOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	if _, err := Measure(t.Context(), state.NewMemory(), &plan.Plan{}, "r9"); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("error %v", err)
	}
}
