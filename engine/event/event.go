// SPDX-License-Identifier: Apache-2.0

// Package event is the one stream of what happens in a run: for the terminal,
// the log, JSON and later the browser. Events are talk, not state: losing one
// loses nothing but a line on a screen.
package event

import (
	"time"
)

// Type is the closed list of event types.
type Type string

// The types.
const (
	RunStarted   Type = "run-started"
	RunEnded     Type = "run-ended"
	Approved     Type = "approval"     // after run-started: who let this run begin, how, and what it erases
	StepReady    Type = "step-waiting" // ready, but waits for a resource: Text says which
	StepStarted  Type = "step-started"
	StepProgress Type = "step-progress" // Done of Total, Text says the phase
	StepDone     Type = "step-done"
	StepFailed   Type = "step-failed"
	StepSkipped  Type = "step-skipped" // an earlier failure, hold or drain: Text says which
	StepRetried  Type = "step-retried" // a passing error: it is tried again, at Until
	StepSlow     Type = "step-slow"    // it runs for longer than its P95
	EffectDone   Type = "effect"       // a journaled effect: intent or outcome
	Direct       Type = "direct"       // an operator's work outside of a plan: intent or outcome
	FactLearned  Type = "fact"
	FindingMade  Type = "finding"
	Held         Type = "hold"
	Released     Type = "release"
	Evidence     Type = "evidence" // DHCP, TFTP, HTTP, console: what a node was seen to do
	Note         Type = "note"
)

// Event is one line of the stream. Text may quote the outside world; whoever
// displays it escapes it.
type Event struct {
	Seq   uint64            `json:"seq"` // set by the Bus, rising within an owner's life
	Time  time.Time         `json:"time"`
	Run   string            `json:"run,omitempty"`
	Type  Type              `json:"type"`
	Node  string            `json:"node,omitempty"`
	Stage string            `json:"stage,omitempty"`
	Step  string            `json:"step,omitempty"`
	Text  string            `json:"text,omitempty"`
	Done  int64             `json:"done,omitempty"`
	Total int64             `json:"total,omitempty"`
	Until time.Time         `json:"until,omitzero"` // deadline of a wait
	Data  map[string]string `json:"data,omitempty"`
}
