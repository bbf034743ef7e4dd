// SPDX-License-Identifier: Apache-2.0

// Package why says why a node is not up: from all that is known of it (the
// journal, what the boot services saw, what the run does and waits for, what its
// BMC and its PDUs say) it makes one answer, and one list of what happened. It is
// pure: it asks nobody and knows no clock.
package why

import (
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
)

// Status is a word for where a node stands.
type Status string

// The statuses.
const (
	Accepted    Status = "accepted"
	Adopted     Status = "adopted" // runs as it was found; nothing of it is verified
	Held        Status = "held"
	Quarantined Status = "quarantined"
	Working     Status = "working" // a step of it runs
	Late        Status = "late"    // one runs for longer than its P95
	Waiting     Status = "waiting" // for steps of others, a limit, or a gate
	Cut         Status = "cut"     // the run ended in the middle of a step
	Skipped     Status = "skipped" // steps were not started, by no fault of it
	Unfinished  Status = "unfinished"
	Untouched   Status = "untouched"
)

// Answer says why a node is not up. Texts are clauses without a full stop, but for
// Action and Alike, which are sentences. They may quote the outside: whoever shows
// them escapes them.
type Answer struct {
	Up       bool      `json:"up"`
	Status   Status    `json:"standing"`
	State    string    `json:"state"` // what it waits for or why it is not up
	Since    time.Time `json:"since,omitzero"`
	Until    time.Time `json:"until,omitzero"` // when the wait ends at the latest
	Pace     *Pace     `json:"pace,omitempty"` // of the step that runs
	Waits    *Wait     `json:"waits,omitempty"`
	Cause    string    `json:"cause,omitempty"`    // the most likely one
	Evidence []string  `json:"evidence,omitempty"` // for the cause, the strongest first
	Action   string    `json:"action,omitempty"`   // what a person does next
	Alike    string    `json:"alike,omitempty"`    // who else has the same, and what they share
}

// Pace is how long steps like the one that runs take.
type Pace struct {
	Typical Seconds `json:"typical"`       // P50
	Slow    Seconds `json:"slow"`          // P95; 0: not known
	Samples int     `json:"samples"`       // measured on this site; 0: from the table of durations
	Of      string  `json:"of,omitempty"`  // the hardware
	Late    bool    `json:"late"`          // it runs for longer than Slow
	For     Seconds `json:"for,omitempty"` // how long it runs
}

// Seconds is a time that JSON has as whole seconds.
type Seconds int64

// Of makes whole seconds of a duration.
func newSeconds(d time.Duration) Seconds { return Seconds(d.Round(time.Second) / time.Second) }

func (s Seconds) duration() time.Duration { return time.Duration(s) * time.Second }

// String writes 3m20s.
func (s Seconds) String() string { return formatBriefly(s.duration()) }

// WaitKind is the closed list of what is waited for.
type WaitKind string

// The kinds of wait.
const (
	ForStep     WaitKind = "step"     // another step, of this node or of others
	ForResource WaitKind = "resource" // a limit
	ForGate     WaitKind = "gate"     // of a rollout
	ForRelease  WaitKind = "release"  // of a hold
)

// Wait is what a node waits for.
type Wait struct {
	Kind WaitKind `json:"kind"`
	Name string   `json:"name"`           // of the step, the resource, the role that is rolled out
	From []string `json:"from,omitempty"` // the nodes that are worked on meanwhile, at most a few
}

// Explanation is an answer and what it rests on. Evidence is of the node alone; what was
// refused to unknown clients stands in Refused.
type Explanation struct {
	Answer Answer `json:"answer"`
	control.Why
	Refused []UnknownClient `json:"refused"`
	Lines   []Line          `json:"lines"` // what happened, from all sources, oldest first
}

// UnknownClient is a client that no node of the inventory owns, refused for one
// reason any number of times.
type UnknownClient struct {
	MAC    string    `json:"mac,omitempty"`
	Reason string    `json:"reason"`
	Times  int       `json:"times"`
	Last   time.Time `json:"last"`
}

// ExplainNode makes a story of what is known; running says that a run is active.
func ExplainNode(y control.Why, running bool, now time.Time) Explanation {
	s := Explanation{Why: y, Refused: []UnknownClient{}}
	s.Evidence = []event.Event{}
	index := map[string]int{}
	for _, e := range y.Evidence {
		switch {
		case e.Node != "":
			s.Evidence = append(s.Evidence, e)
		case e.Data["refused"] != "":
			key := e.Data["mac"] + " " + e.Text
			i, seen := index[key]
			if !seen {
				i = len(s.Refused)
				index[key] = i
				s.Refused = append(s.Refused, UnknownClient{MAC: e.Data["mac"], Reason: e.Text})
			}
			s.Refused[i].Times++
			s.Refused[i].Last = e.Time
		}
	}
	s.Answer = findAnswer(s, running, now)
	if y.Alike != nil && !s.Answer.Up {
		s.Answer.Alike = y.Alike.Text
	}
	s.Lines = collectLines(s, running)
	return s
}
