// SPDX-License-Identifier: Apache-2.0

// Package predicttest holds predictions against how runs went, for tests.
package predicttest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/predict"
)

// Measured is how a run went: its stages as a prediction has them, without the
// sources.
type Measured struct {
	Run    string          `json:"run"`
	Wall   time.Duration   `json:"wall_ns"`
	Stages []predict.Stage `json:"stages"`
}

// Measure reads how a run of plan p went from the journal. Steps count that
// ended, well or not; the run must be there.
func Measure(ctx context.Context, r state.Reader, p *plan.Plan, run string) (Measured, error) {
	m, t := Measured{Run: run}, predict.NewTally()
	var start, last time.Time
	stages := make(map[string]string, len(p.Steps)) // of each step
	for _, s := range p.Steps {
		stages[string(s.ID)] = s.Stage
	}
	err := r.Read(ctx, 1, func(rec state.Record) error {
		if rec.Run != run {
			return nil
		}
		last = rec.Time
		if start.IsZero() {
			start = rec.Time
		}
		var s state.Step
		stage, planned := stages[rec.Step]
		ended := rec.Kind == state.StepDone || rec.Kind == state.StepFailed
		if planned && ended && json.Unmarshal(rec.Data, &s) == nil {
			t.Add(stage, rec.Subject, s.Started.Sub(start), s.Ended.Sub(start))
		}
		return nil
	})
	switch {
	case err != nil:
		return m, fmt.Errorf("measure run %s: %w", run, err)
	case start.IsZero():
		return m, fmt.Errorf("measure run %s: the journal has no record of it", run)
	}
	m.Wall, m.Stages = last.Sub(start), t.Stages()
	return m, nil
}

// StageError compares one stage, or the whole run, with what was predicted.
type StageError struct {
	Stage     string        `json:"stage"` // "run" for the wall time of all
	Predicted time.Duration `json:"predicted_ns"`
	Measured  time.Duration `json:"measured_ns"`
	Percent   float64       `json:"percent"` // of the measured time; above zero: too long was predicted
}

// Within reports whether the prediction is off by at most so many percent, or by
// less than a second, which is below what a stage is worth predicting.
func (e StageError) Within(percent float64) bool {
	off := e.Predicted - e.Measured
	return max(e.Percent, -e.Percent) <= percent || max(off, -off) < time.Second
}

// Check compares a prediction with how the run of the same plan went, by the
// time during which each stage was active, and then the run as a whole. Stages
// that only one of both knows are left out: a plan of a part, or a failed run.
func Check(p predict.Prediction, m Measured) []StageError {
	var out []StageError
	for _, want := range p.Stages {
		for _, got := range m.Stages {
			if got.Name == want.Name {
				out = append(out, compareStage(want.Name, want.Active, got.Active))
			}
		}
	}
	return append(out, compareStage("run", p.Expected, m.Wall))
}

func compareStage(stage string, predicted, measured time.Duration) StageError {
	e := StageError{Stage: stage, Predicted: predicted, Measured: measured}
	if measured > 0 {
		e.Percent = 100 * (float64(predicted) - float64(measured)) / float64(measured)
	}
	return e
}
