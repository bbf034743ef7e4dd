// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/predict"
)

// TestPlanWithoutNodeWork: a plan whose steps are about no node has something to do,
// also where nobody could say how long it takes.
func TestPlanWithoutNodeWork(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{ID: "p1", Site: "s", Steps: []plan.Step{
		{ID: "net/leaf-1/fabric.switch", Stage: "fabric", Action: plan.Change, Title: "write the configuration", Subject: subject.ID{Kind: subject.Switch, Name: "net/leaf-1"}, Why: []string{"mtu: 1500 -> 9000"}},
		{ID: "site/handover.lab", Stage: "handover", Action: plan.Create, Title: "write the scheduler's files", Subject: subject.ID{Kind: subject.Site, Name: "site"}, Why: []string{"not done yet"}}}}
	var b bytes.Buffer
	writePlan(&b, p, predict.Prediction{})
	if !strings.HasPrefix(b.String(), "Plan p1 for site s: 2 steps (1 +, 1 ~).\n") || strings.Contains(b.String(), "nothing to do") {
		t.Errorf("it says\n%s", b.String())
	}
	for _, want := range []string{"write the configuration (mtu: 1500 -> 9000)", "write the scheduler's files (not done yet)", "\nExpected time: not known here.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, b.String())
		}
	}
}
