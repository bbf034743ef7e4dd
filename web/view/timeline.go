// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
)

// Timeline is the steps of a node in time.
type Timeline struct {
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	Steps []Span    `json:"steps"` // by their beginning
}

// Span is one step, with the wait before it.
type Span struct {
	Step     string    `json:"step"` // without the node
	State    string    `json:"state"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it runs
	Waited   int64     `json:"waited_ms,omitempty"`
	Took     int64     `json:"took_ms"`
	Observed bool      `json:"observed,omitempty"` // it was so already
	Text     string    `json:"text,omitempty"`     // what it does, or why it failed
	Late     bool      `json:"late,omitempty"`     // it runs for longer than its P95
	Found    bool      `json:"found,omitempty"`    // the node is quarantined by what it found
}

// leastWait is what counts as a wait between two steps.
const leastWait = 2 * time.Second

// newTimeline orders the steps of the last run that touched the node; what is older is in
// what happened.
func newTimeline(y control.Why, now time.Time) Timeline {
	t := Timeline{Steps: []Span{}}
	for _, x := range y.Steps {
		if x.Started.IsZero() {
			continue
		}
		s := Span{Step: shortStep(string(x.ID), y.Node.Name), State: string(x.State), Started: x.Started, Ended: x.Ended, Observed: x.Observed, Text: x.Error}
		if q := y.Node.Quarantine; q != nil && q.Finding.Step == string(x.ID) {
			s.Found, s.Text = true, q.Finding.Cause
		}
		if x.Observed {
			s.Text = x.Evidence
		}
		t.Steps = append(t.Steps, s)
	}
	for _, a := range y.Active {
		if a.Since.IsZero() {
			continue
		}
		name := shortStep(string(a.ID), y.Node.Name)
		t.Steps = slices.DeleteFunc(t.Steps, func(s Span) bool { return s.Step == name })
		t.Steps = append(t.Steps, Span{Step: name, State: a.State, Started: a.Since, Text: a.Text, Late: a.Slow})
	}
	slices.SortStableFunc(t.Steps, func(a, b Span) int { return a.Started.Compare(b.Started) })
	var last time.Time
	for i := range t.Steps {
		s := &t.Steps[i]
		end := s.Ended
		if end.IsZero() {
			end = now
		}
		if !last.IsZero() && s.Started.Sub(last) >= leastWait {
			s.Waited = s.Started.Sub(last).Milliseconds()
		}
		s.Took = max(0, end.Sub(s.Started).Milliseconds())
		if end.After(last) {
			last = end
		}
	}
	if len(t.Steps) > 0 {
		t.From, t.To = t.Steps[0].Started, last
	}
	return t
}

// causeOf is why a step was not started.
func causeOf(r state.Record) string {
	var c state.Cause
	if json.Unmarshal(r.Data, &c) != nil {
		return ""
	}
	return c.Text
}
