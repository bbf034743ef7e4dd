// SPDX-License-Identifier: Apache-2.0

package notify

import (
	_ "embed"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
)

// format is that of messages: fields are added, and none changes its meaning.
const format = 1

// Schema is the JSON Schema (2020-12) of a Message.
//
//go:embed schema.json
var Schema []byte

// Types of notices.
const (
	Finding  = "finding"
	Hold     = "hold"
	Release  = "release" // of a hold
	RunEnded = "run-ended"
)

// Message is what a webhook gets: what happened within a second or so.
type Message struct {
	Format  int      `json:"format"`
	Site    string   `json:"site"`
	Notices []Notice `json:"notices"`
	// Dropped counts notices before these that were not sent: the receiver was too slow,
	// or did not take them.
	Dropped int `json:"dropped,omitempty"`
}

// Notice is one thing that happened. Texts may quote the world outside, with control
// characters escaped.
type Notice struct {
	Type    string         `json:"type"`
	Time    time.Time      `json:"time"`
	Run     string         `json:"run,omitempty"`
	Node    string         `json:"node,omitempty"` // absent: it is about no single node
	Stage   string         `json:"stage,omitempty"`
	Step    string         `json:"step,omitempty"`
	Text    string         `json:"text,omitempty"`    // the cause of a finding, who holds why
	Action  string         `json:"action,omitempty"`  // what to do about a finding
	Outcome string         `json:"outcome,omitempty"` // of a run: done, failed, interrupted, drained
	Steps   map[string]int `json:"steps,omitempty"`   // of a run, by how they ended: done, failed, skipped; and findings
}

// maxText is how long a text may be, in bytes.
const maxText = 2000

// clean makes a text from outside safe to show, and not too long.
func clean(text string) string {
	text = event.Escape(text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// reader makes notices of the events of a run.
type reader struct{ ended map[string]int }

// read returns the notice of an event, and which of inventory.NotifyOn it is; false for
// events that are none.
func (r *reader) read(e event.Event) (n Notice, on string, ok bool) {
	n = Notice{Time: e.Time.UTC(), Run: e.Run, Node: e.Node, Stage: e.Stage, Step: e.Step, Text: clean(e.Text)}
	switch e.Type {
	case event.StepDone:
		r.ended["done"]++
	case event.StepFailed:
		r.ended["failed"]++
	case event.StepSkipped:
		r.ended["skipped"]++
	case event.FindingMade:
		r.ended["findings"]++
		n.Type, n.Action = Finding, clean(e.Data["action"])
		return n, "finding", true
	case event.Held:
		n.Type = Hold
		return n, "hold", true
	case event.Released:
		n.Type = Release
		return n, "hold", true
	case event.RunEnded:
		n.Type, n.Outcome, n.Text, n.Steps = RunEnded, n.Text, "", maps.Clone(r.ended)
		clear(r.ended)
		return n, "run", true
	}
	return Notice{}, "", false
}

// alert is one alert of Alertmanager's API, version 2 (postableAlert).
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// runLasts is for how long the end of a run is an alert.
const runLasts = time.Hour

// alertOf makes the alert of a notice; one of a finding or a hold ends after lasts, or
// when the hold is released.
func alertOf(site string, n Notice, lasts time.Duration) alert {
	a := alert{Labels: map[string]string{"site": site}, Annotations: map[string]string{}, StartsAt: n.Time, EndsAt: n.Time.Add(lasts)}
	set := func(to map[string]string, key, value string) {
		if value != "" {
			to[key] = value
		}
	}
	set(a.Labels, "node", n.Node)
	set(a.Annotations, "summary", n.Text)
	set(a.Annotations, "action", n.Action)
	switch n.Type {
	case Finding:
		a.Labels["alertname"], a.Labels["severity"] = "IronrailFinding", "warning"
		set(a.Labels, "stage", n.Stage)
		set(a.Labels, "step", n.Step)
		if n.Step == "" { // about the site: its text names it
			set(a.Labels, "finding", n.Text)
		}
	case Hold, Release:
		a.Labels["alertname"], a.Labels["severity"] = "IronrailHold", "info"
		if n.Type == Release {
			a.EndsAt = n.Time
		}
	case RunEnded:
		a.Labels["alertname"], a.Labels["severity"], a.Labels["outcome"] = "IronrailRunEnded", "info", n.Outcome
		if n.Outcome != "done" {
			a.Labels["severity"] = "warning"
		}
		a.EndsAt = n.Time.Add(min(lasts, runLasts))
		set(a.Annotations, "summary", "run "+n.Run+" ended: "+n.Outcome)
		if counts, err := json.Marshal(n.Steps); err == nil {
			set(a.Annotations, "steps", string(counts))
		}
	}
	return a
}
