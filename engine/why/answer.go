// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// question is a story that is asked about.
type question struct {
	Explanation
	running bool
	now     time.Time
}

// findAnswer finds the answer: the first of these that applies.
func findAnswer(s Explanation, running bool, now time.Time) Answer {
	for _, try := range []func(question) (Answer, bool){answerHeld, answerQuarantined, answerActive, answerAccepted, answerWaits, answerInterrupted, answerSkipped, answerAdopted} {
		if a, ok := try(question{s, running, now}); ok {
			return a
		}
	}
	return Answer{Status: Untouched, State: "nothing was done with it yet", Action: "`ironrail plan` shows what would be done, `ironrail apply` does it."}
}

func answerHeld(s question) (Answer, bool) {
	h := s.Node.Hold
	if h == nil {
		return Answer{}, false
	}
	a := Answer{Up: s.Node.Accepted, Status: Held, State: "it is on hold (" + h.By, Since: h.At, Waits: &Wait{Kind: ForRelease, Name: s.Node.Name},
		Action: fmt.Sprintf("`ironrail release %s`, then `ironrail apply`.", s.Node.Name)}
	if h.Reason != "" {
		a.State += ": " + h.Reason
	}
	a.State += "); automation is paused for this node"
	return a, true
}

func answerQuarantined(s question) (Answer, bool) {
	q := s.Node.Quarantine
	if q == nil {
		return Answer{}, false
	}
	a := Answer{Status: Quarantined, State: "it is quarantined", Since: q.At, Cause: q.Finding.Cause, Action: addNextStep(q.Finding.Action, s.running),
		Evidence: firstOf(q.Finding.Evidence, mostEvidence)}
	if q.Finding.Step != "" {
		a.State += " by step " + s.short(plan.StepID(q.Finding.Step))
	}
	if who, ok := describeUnknownClient(s, q.Finding.Step, time.Time{}); ok {
		a.Cause = strings.TrimRight(a.Cause, ".") + ". " + who
	}
	if s.Look != nil {
		a.Evidence = append([]string{lookText(*s.Look)}, a.Evidence...)
	}
	if message, line, ok := s.consoleSays(q.Finding.Step); ok {
		a.Evidence = append([]string{"its console: " + line, a.Cause}, a.Evidence...)
		a.Cause, a.Action = message.Cause+": "+line, addNextStep(message.Action, s.running)
	}
	a.Action = s.shownBelow(a.Action, q.Finding.Step)
	return a, true
}

// mostEvidence is how many lines of evidence an answer quotes.
const mostEvidence = 4

func firstOf(list []string, n int) []string {
	return append([]string(nil), list[:min(n, len(list))]...)
}

// addNextStep ends the action of a finding with how the node goes on.
func addNextStep(action string, running bool) string {
	switch {
	case action == "", strings.Contains(action, "ironrail apply"):
		return action
	case running:
		return endSentence(action) + " When the run has ended, `ironrail apply` takes the node up again."
	}
	return endSentence(action) + " Then `ironrail apply` takes the node up again."
}

func answerAccepted(s question) (Answer, bool) {
	if !s.Node.Accepted {
		return Answer{}, false
	}
	a := Answer{Up: true, Status: Accepted, State: "it is accepted", Since: s.Node.AcceptedAt}
	if w, ok := answerWaits(s); ok && s.Waiting != nil {
		a.Waits, a.State = w.Waits, "it is accepted, and "+w.State
	}
	return a, true
}

// answerInterrupted is a run that died or was stopped in the middle of a step.
func answerInterrupted(s question) (Answer, bool) {
	if s.running || len(s.Steps) == 0 {
		return Answer{}, false
	}
	x := s.Steps[len(s.Steps)-1]
	a := Answer{Status: Cut, State: fmt.Sprintf("the last run ended in the middle of %s", s.short(x.ID)), Since: x.Started, Action: s.goesOn()}
	switch {
	case x.State == state.StepRunning && s.restored():
		a.State = fmt.Sprintf("the state is that of a copy that was made in the middle of %s", s.short(x.ID))
	case x.State == state.StepRunning:
		a.Cause = "the controller's process ended without a word: killed, or its machine went down"
	case x.State == state.StepIsCut && x.Kind != errkind.Interrupted && x.Error != "":
		a.State, a.Since, a.Cause = s.short(x.ID)+" could not go on", x.Ended, x.Error
		a.Action = "Remove what is in its way, then `ironrail apply`."
	case x.State == state.StepIsCut:
		a.State, a.Since = fmt.Sprintf("the run was stopped in the middle of %s", s.short(x.ID)), x.Ended
	default:
		return Answer{}, false
	}
	return a, true
}

// restored reports whether the state was put back from a copy since its last run.
func (s question) restored() bool { return s.Last != nil && s.Last.Restored }

// goesOn is what to do about a run that did not come to its end.
func (s question) goesOn() string {
	if s.restored() {
		return "`ironrail plan` looks whether the node runs, and shows what is left: the state was restored from a copy, and its last run is not resumed."
	}
	return "`ironrail apply` goes on from there; what was done is not repeated."
}

// answerSkipped is a step that was not started, by no fault of the node.
func answerSkipped(s question) (Answer, bool) {
	if len(s.Skipped) == 0 {
		return Answer{}, false
	}
	r, c := s.Skipped[0], causeOf(s.Skipped[0])
	a := Answer{Status: Skipped, State: s.short(plan.StepID(r.Step)) + " was not started", Since: r.Time, Cause: c.Text,
		Waits: &Wait{Kind: ForStep, Name: string(c.Step)}, Action: "Repair what failed first, then `ironrail apply`."}
	switch c.Kind {
	case state.ByInterrupt:
		a.State, a.Cause, a.Waits = a.State+": the run was stopped before it", "", nil
		a.Action = s.goesOn()
	case state.NotJudged:
		a.Action = "Bring up the other nodes of its group, then `ironrail apply`."
	case state.ByStraggler:
		a.Waits, a.Action = nil, "`ironrail apply` tests it, alone with two nodes in service."
	case state.BySite:
		a.Waits, a.Action = nil, "Remove what is in its way, then `ironrail apply`."
	case state.ByRollout:
		a.Waits.Kind = ForGate
		a.Action = "Look at the nodes that did not get well in the wave before (`ironrail why`); correct what they have, or take the change back, then `ironrail apply`."
	}
	return a, true
}

// causeOf reads why a step was skipped.
func causeOf(r state.Record) (c state.Cause) {
	if err := json.Unmarshal(r.Data, &c); err != nil {
		c.Text = "the cause is not readable"
	}
	return c
}

// answerAdopted is a node that ironrail has touched and not finished, or adopted.
func answerAdopted(s question) (Answer, bool) {
	switch {
	case s.Node.Adopted:
		return Answer{Up: true, Status: Adopted, State: "it was adopted as it was found, and nothing about it is verified", Since: s.Node.AdoptedAt}, true
	case s.Node.Run != "" && !s.running && s.stopped():
		return Answer{Status: Cut, State: "the run was stopped before the node was through" + s.lastStep(), Since: s.Last.Ended, Action: s.goesOn()}, true
	case s.Node.Run != "":
		return Answer{Status: Unfinished, State: "it is not accepted yet", Action: "`ironrail plan` shows what is left, `ironrail apply` does it."}, true
	}
	return Answer{}, false
}

// stopped reports whether the last run was stopped or drained by somebody.
func (s question) stopped() bool {
	return s.Last != nil && (s.Last.Outcome == state.RunDrained || s.Last.Outcome == state.RunInterrupted)
}

// lastStep names the step of the node that ended last.
func (s question) lastStep() string {
	var last state.Step
	for _, x := range s.Steps {
		if x.Ended.After(last.Ended) {
			last = x
		}
	}
	if last.ID == "" {
		return ""
	}
	return fmt.Sprintf(" (%s is %s)", s.short(last.ID), last.State)
}

// answerWaits is a node of a run that nothing is done with now.
func answerWaits(s question) (Answer, bool) {
	if !s.running {
		return Answer{}, false
	}
	if s.Waiting == nil {
		if s.Draining || len(s.Skipped) > 0 {
			return Answer{}, false // skipped says more
		}
		return Answer{Status: Waiting, State: "it waits for steps of others", Action: "`ironrail status` shows which run now."}, true
	}
	return waitOf(*s.Waiting, s.Draining, s.now), true
}

// waitOf says what a node waits for, and for whom in the end.
func waitOf(w apply.Waiting, draining bool, now time.Time) Answer {
	a := Answer{Status: Waiting, Action: "Nothing: its turn comes when those are done or out."}
	step := shortOf(w.Step, w.Node)
	switch {
	case draining:
		a.State, a.Action = "the run drains and starts nothing new; next would be "+step, "`ironrail apply` goes on from there when this run has ended."
		return a
	case w.Resource != "":
		a.State = fmt.Sprintf("%s waits for %s: %s", step, resourceText(w.Resource), w.InUse)
		a.Waits = &Wait{Kind: ForResource, Name: w.Resource, From: nodesOfHolders(w.Holders)}
		if len(w.Holders) > 0 {
			a.State += ", by " + listHolders(w.Holders, w.HoldersAll, now)
		}
		a.Action = "Nothing: its turn comes when one of those is through or out."
		return a
	case w.Gate != nil:
		a.State = fmt.Sprintf("%s waits until wave %s of the rollout to %s has ended well", step, w.Gate.Wave, w.Gate.Of)
		a.Waits = &Wait{Kind: ForGate, Name: w.Gate.Of, From: nodesOfHolders(w.Behind)}
		a.Action = fmt.Sprintf("Nothing: more than %d failed nodes in that wave stop the rollout before this node is touched.", w.Gate.Most)
	case len(w.Needs) > 0:
		a.State = fmt.Sprintf("%s waits for %s", step, listSteps(w.Needs, w.Node))
		a.Waits = &Wait{Kind: ForStep, Name: string(w.Needs[0]), From: nodesOfHolders(w.Behind)}
	default:
		a.State = step + " is about to start"
		a.Action = ""
		return a
	}
	if len(w.Behind) > 0 {
		a.State += "; it is now up to " + listHolders(w.Behind, w.BehindAll, now)
	}
	return a
}

// short is a step's id without the name of the node that is asked about.
func (s question) short(id plan.StepID) string { return shortOf(id, s.Node.Name) }

func shortOf(id plan.StepID, node string) string { return strings.TrimPrefix(string(id), node+"/") }
