// SPDX-License-Identifier: Apache-2.0

package predict_test

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/predict"
)

// TestBurnInTakesItsTime: it is neither halved nor doubled as guesses of a stage
// are, and nodes do not differ in it.
func TestBurnInTakesItsTime(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{}
	for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"} {
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(n + "/validate.burn"), Stage: "validate", Subject: subject.OfNode(n), May: plan.Effects(plan.Load),
			Deadline: plan.Budget{Expected: 31 * time.Minute, Limit: 50 * time.Minute}})
	}
	got, err := predict.Estimate(p, predict.Options{Table: []predict.Row{{Kind: "validate.burn", Planned: true, Source: "burn_in of the site"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Expected < 30*time.Minute || got.Expected > 32*time.Minute || got.Low < 30*time.Minute || got.High > 34*time.Minute {
		t.Errorf("%s, between %s and %s", got.Expected, got.Low, got.High)
	}
}
