// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// Line is one thing that happened.
type Line struct {
	Time  time.Time `json:"time"`
	From  string    `json:"from"` // journal, boot, BMC, operator
	Text  string    `json:"text"`
	Times int       `json:"times,omitempty"` // that it happened, when more than once
	Last  time.Time `json:"last,omitzero"`   // of those
}

// The sources of lines.
const (
	fromJournal  = "journal"
	fromBoot     = "boot" // DHCP, TFTP, HTTP
	fromBMC      = "BMC"  // its event log
	fromOperator = "operator"
)

// collectLines joins what happened from all sources, oldest first. Neighbours that say
// the same are one.
func collectLines(s Explanation, running bool) []Line {
	var all []Line
	add := func(at time.Time, from, format string, args ...any) {
		if !at.IsZero() {
			all = append(all, Line{Time: at.UTC(), From: from, Text: fmt.Sprintf(format, args...)})
		}
	}
	for i, r := range s.Journal {
		if text, from := recordText(r, s.Journal[i+1:], s.Node.Name); text != "" {
			if running && len(s.Active) > 0 && r.Kind == state.EffectIntent {
				text = strings.TrimSuffix(text, noOutcome) + ": under way"
			}
			add(timeOf(r), from, "%s", text)
		}
	}
	for _, e := range s.Evidence {
		if e.Data["refused"] != "" {
			add(e.Time, fromBoot, "refused: %s", e.Text)
		} else {
			add(e.Time, fromBoot, "%s", e.Text)
		}
	}
	if s.Look != nil {
		for _, e := range s.Look.Log {
			add(e.Time, fromBMC, "event log: %s", strings.TrimSpace(e.Severity+" "+e.Text))
		}
	}
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Or(a.Time.Compare(b.Time), rankLine(a)-rankLine(b)) })
	return mergeLines(all)
}

// timeOf is when what a record tells happened. A hold stops what runs before it is
// itself recorded.
func timeOf(r state.Record) time.Time {
	var h state.Hold
	if r.Kind == state.Held && json.Unmarshal(r.Data, &h) == nil && !h.At.IsZero() && h.At.Before(r.Time) {
		return h.At
	}
	return r.Time
}

// rankLine puts what an operator does before what it leads to in the same moment.
func rankLine(l Line) int {
	if l.From == fromOperator {
		return 0
	}
	return 1
}

// recordText tells a record of the journal; "" for one that says nothing to a
// person. after are the records that follow it: what has ended is not told to have
// begun.
func recordText(r state.Record, after []state.Record, node string) (text, from string) {
	id := shortOf(plan.StepID(r.Step), node)
	switch r.Kind {
	case state.StepStarted:
		if !endsWell(r.Step, after) {
			return id + " began", fromJournal
		}
	case state.StepDone, state.StepFailed, state.StepInterrupted, state.StepExamined:
		var x state.Step
		if json.Unmarshal(r.Data, &x) == nil {
			return stepText(x, id), fromJournal
		}
	case state.EffectIntent, state.EffectOutcome:
		var e state.Effect
		if json.Unmarshal(r.Data, &e) == nil && (r.Kind == state.EffectOutcome || !hasOutcome(e.Key, after)) {
			return effectText(e), fromJournal
		}
	case state.FindingMade:
		var f stage.Finding
		if json.Unmarshal(r.Data, &f) == nil {
			return "found: " + f.Cause, fromJournal
		}
	case state.Held, state.Released:
		return holdText(r), fromOperator
	case state.DirectIntent, state.DirectOutcome:
		return directText(r, after), fromOperator
	case state.Accepted, state.Adopted:
		return string(r.Kind), fromJournal
	case state.Cleared:
		return "its quarantine is lifted: a new try", fromJournal
	}
	return "", ""
}

// holdText says who held or released the node.
func holdText(r state.Record) string {
	var h state.Hold
	if json.Unmarshal(r.Data, &h) != nil {
		return ""
	}
	return strings.TrimSuffix(pastOf[r.Kind]+" by "+h.By+": "+h.Reason, ": ")
}

var pastOf = map[state.RecordKind]string{state.Held: "held", state.Released: "released"}

// endsWell reports whether a step that begins is done before anything else of it
// is recorded.
func endsWell(step string, after []state.Record) bool {
	for _, r := range after {
		if r.Step != step {
			continue
		}
		switch r.Kind {
		case state.StepDone, state.StepExamined:
			return true
		case state.StepFailed, state.StepInterrupted, state.StepStarted:
			return false
		}
	}
	return false
}

func hasOutcome(key string, after []state.Record) bool {
	for _, r := range after {
		var e struct{ Key string }
		if r.Kind == state.EffectOutcome && json.Unmarshal(r.Data, &e) == nil && e.Key == key {
			return true
		}
	}
	return false
}

// stepText tells how a step ended.
func stepText(x state.Step, id string) string {
	took := ""
	if !x.Ended.IsZero() && !x.Started.IsZero() {
		took = " after " + formatBriefly(x.Ended.Sub(x.Started))
	}
	switch {
	case x.State == state.StepIsDone && x.Observed:
		return strings.TrimSuffix(id+": it was so already: "+x.Evidence, ": ")
	case x.State == state.StepIsDone:
		return id + " done" + took
	case x.State == state.StepIsCut:
		return id + " was stopped" + took
	case x.State == state.StepIsExamined && x.Error != "":
		return id + " could not examine it further" + took + ": " + x.Error
	case x.State == state.StepIsExamined:
		return id + " examined it while it was out" + took
	}
	return id + " failed" + took + failedBy(x)
}

// failedBy is the cause of a step's failure.
func failedBy(x state.Step) string {
	switch {
	case x.Finding != nil:
		return ": " + x.Finding.Cause
	case len(x.Blamed) > 0:
		return ": " + x.Blamed[0].Cause
	case x.Error != "":
		return ": " + x.Error
	}
	return ""
}

// effectText says what was done to the node.
func effectText(e state.Effect) string {
	switch e.State {
	case state.EffectIsDone:
		return e.Does
	case state.EffectNotDone:
		return strings.TrimSuffix(e.Does+": did not happen: "+e.Detail, ": ")
	case state.EffectInDoubt:
		if e.Begun {
			return strings.TrimSuffix(e.Does+": begun and not completed: "+e.Detail, ": ")
		}
		return strings.TrimSuffix(e.Does+": nobody knows whether it happened: "+e.Detail, ": ")
	}
	return e.Does + noOutcome
}

// directEnded reports whether direct work that begins has its outcome among the records that
// follow. A console may be open for longer than other work on the node takes.
func directEnded(d state.Direct, after []state.Record) bool {
	return slices.ContainsFunc(after, func(r state.Record) bool {
		var o state.Direct
		return r.Kind == state.DirectOutcome && json.Unmarshal(r.Data, &o) == nil && o.Verb == d.Verb && o.At.Equal(d.At)
	})
}

// directText says what an operator did to the node outside of a plan; "" where its outcome follows.
func directText(r state.Record, after []state.Record) string {
	var d state.Direct
	if json.Unmarshal(r.Data, &d) != nil || r.Kind == state.DirectIntent && directEnded(d, after) {
		return ""
	}
	text := d.Verb + " by " + d.By
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	switch d.State {
	case state.EffectIsDone:
		return strings.TrimSuffix(text+": "+d.Detail, ": ")
	case state.EffectNotDone:
		return strings.TrimSuffix(text+" was not done: "+d.Detail, ": ")
	case state.EffectInDoubt:
		return strings.TrimSuffix(text+": nobody knows whether it happened: "+d.Detail, ": ")
	}
	return text + noOutcome
}

// noOutcome is said of an effect that was begun.
const noOutcome = ": begun, and no outcome was recorded"

// mergeLines joins lines of one source that say the same, with nothing else of that
// source between them.
func mergeLines(all []Line) []Line {
	out := make([]Line, 0, len(all))
	latest := map[string]int{} // of each source: where in out
	for _, l := range all {
		if i, ok := latest[l.From]; ok && l.Time.Sub(out[i].Time) < time.Second && isRepeat(l.Text, out[i].Text) {
			out[i].Text = l.Text // the failure has the cause that was found just before
			continue
		}
		if i, ok := latest[l.From]; ok && out[i].Text == l.Text {
			out[i].Times = max(out[i].Times, 1) + 1
			out[i].Last = l.Time
			continue
		}
		latest[l.From] = len(out)
		out = append(out, l)
	}
	return out
}

// isRepeat reports whether a failure tells the finding before it once more.
func isRepeat(failure, found string) bool {
	cause, ok := strings.CutPrefix(found, "found: ")
	return ok && strings.HasSuffix(failure, ": "+cause)
}

// groupSkips are the steps that were not started, by cause, in order.
func groupSkips(s Explanation) (causes []string, steps map[string][]string) {
	steps = map[string][]string{}
	for _, r := range s.Skipped {
		c := causeOf(r).Text
		if steps[c] == nil {
			causes = append(causes, c)
		}
		steps[c] = append(steps[c], shortOf(plan.StepID(r.Step), s.Node.Name))
	}
	return causes, steps
}

// escapeText escapes what may come from outside.
func escapeText(s string) string { return event.Escape(s) }
