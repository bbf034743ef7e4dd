// SPDX-License-Identifier: Apache-2.0

package why

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// TestNoWaitBeyondItsEnd: a time is given only for a step that runs, and it is the
// limit of what the step does now: of a wait, of the pause before a try, or its own.
func TestNoWaitBeyondItsEnd(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		step apply.StepStatus
		want string
		end  time.Time // in the answer
	}{
		"by its own deadline": {apply.StepStatus{Until: at(3 * time.Minute), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and gives up on bmc at 15:17:05 at the latest, sooner if it fails.", at(3 * time.Minute)},
		"a shorter wait": {apply.StepStatus{Until: at(time.Minute), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and waits for this until 15:15:05 at the latest.", at(time.Minute)},
		"a wait that is over": {apply.StepStatus{Until: at(-time.Minute), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and gives up on bmc at 15:17:05 at the latest, sooner if it fails.", at(3 * time.Minute)},
		"a wait longer than the step": {apply.StepStatus{Until: at(time.Hour), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and gives up on bmc at 15:17:05 at the latest, sooner if it fails.", at(3 * time.Minute)},
		"before a try": {apply.StepStatus{Until: at(5 * time.Second), Next: at(5 * time.Second), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and tries again at 15:14:10.", at(3 * time.Minute)},
		"in a later try": {apply.StepStatus{Until: at(-time.Second), Next: at(-time.Second), Limit: at(3 * time.Minute)},
			" The run goes on by itself, and gives up on bmc at 15:17:05 at the latest, sooner if it fails.", at(3 * time.Minute)},
		"no limit": {apply.StepStatus{}, " The run goes on waiting.", time.Time{}},
	} {
		c.step.ID, c.step.Node, c.step.Stage, c.step.Since = "n1/bmc", "n1", stageBMC, fixtureTime
		y := control.Why{Node: state.Node{Name: "n1"}, Active: []apply.StepStatus{c.step}}
		s := ExplainNode(y, true, now)
		if got := (question{s, true, now}).untilThen(c.step); got != c.want || !s.Answer.Until.Equal(c.end) {
			t.Errorf("%s: %q until %s, want %q until %s", name, got, s.Answer.Until, c.want, c.end)
		}
	}
	ended := ExplainNode(control.Why{Node: state.Node{Name: "n1"}, Steps: []state.Step{{ID: plan.StepID("n1/bmc"), State: state.StepIsFailed}}}, true, now)
	if !ended.Answer.Until.IsZero() {
		t.Errorf("a step that has ended: until %s", ended.Answer.Until)
	}
}

// TestLiveSaysWhatChanged: a step that failed while its BMC was asked is told so.
func TestLiveSaysWhatChanged(t *testing.T) {
	t.Parallel()
	bmc := apply.StepStatus{ID: "n1/bmc", Node: "n1", Stage: stageBMC, Text: "reach the BMC", Since: fixtureTime, Until: now.Add(time.Minute), Limit: now.Add(time.Minute)}
	silent := &control.Look{At: now, Sort: "nothing answers at the BMC's address", Do: "Check its cable.", Errors: []string{"no answer"}}
	told := ExplainNode(control.Why{Node: state.Node{Name: "n1"}, Active: []apply.StepStatus{bmc}}, true, now).Answer
	for name, c := range map[string]struct {
		why  control.Why
		want string
	}{
		"it still runs": {control.Why{Active: []apply.StepStatus{bmc}, Look: silent},
			"\nBMC, asked now (15:14:05): nothing answers at the BMC's address: no answer.\nMost likely cause now: its BMC cannot be read: no answer.\n" +
				"For the BMC: Check its cable.\n"},
		"it failed": {control.Why{Skipped: []state.Record{state.Record{Step: "n1/install.netboot", Time: now}.With(state.Cause{Text: "n1/bmc failed"})}, Look: silent},
			"\nBMC, asked now (15:14:05): nothing answers at the BMC's address: no answer.\nMeanwhile: install.netboot was not started, since 15:14:05 (0s).\n" +
				"Most likely cause now: n1/bmc failed.\nNext: Repair what failed first, then `ironrail apply`.\n"},
		"nobody asked": {control.Why{}, ""},
	} {
		c.why.Node.Name = "n1"
		if got := ExplainNode(c.why, true, now).LiveText(told, now); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}
