// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// mark is how a row stands, as the sign that it begins with.
type mark string

// The marks, from the least to the most urgent.
const (
	waiting mark = " "
	working mark = ">"
	ended   mark = "✓"
	missed  mark = "-" // steps of it were not started, or cut off
	onHold  mark = "‖"
	broken  mark = "✗"
)

// board is a run as rows: one for each node, and one for each group or other
// thing that steps work on. It only learns from events.
type board struct {
	rows    []*row // in the order of the plan
	step    map[plan.StepID]*row
	node    map[string]*row
	settled map[plan.StepID]bool
	planned map[plan.StepID]*plan.Step
	columns [2]int // widths of the names of rows and steps
}

// row is one thing that steps work on.
type row struct {
	name    string
	steps   []*plan.Step
	mark    mark // waiting until something worse or better is known
	at      string
	text    string
	changed time.Time // when it last stopped working
	active  []task    // the latest last
}

// task is a step that runs, or waits for a resource.
type task struct {
	id           plan.StepID
	text         string
	since, until time.Time
	waits        bool  // for a resource
	done, total  int64 // what it counts; total 0: nothing
}

// newBoard makes the rows of a plan.
func newBoard(p *plan.Plan, now time.Time) *board {
	b := &board{step: map[plan.StepID]*row{}, node: map[string]*row{}, settled: map[plan.StepID]bool{}, planned: map[plan.StepID]*plan.Step{}}
	of := map[subject.ID]*row{}
	for i := range p.Steps {
		s := &p.Steps[i]
		b.planned[s.ID] = s
		r := of[s.Subject]
		if r == nil {
			r = b.add(rowName(s.Subject), now)
			of[s.Subject] = r
			if s.Subject.Kind == subject.Node {
				b.node[s.Subject.Name] = r
			}
		}
		r.steps = append(r.steps, s)
		b.step[s.ID] = r
		b.columns[1] = max(b.columns[1], len(s.ID.Kind()))
	}
	return b
}

func (b *board) add(name string, now time.Time) *row {
	r := &row{name: name, mark: waiting, changed: now}
	b.rows = append(b.rows, r)
	b.columns[0] = max(b.columns[0], len(name))
	return r
}

// rowName is how a subject is called in its row: nodes and site-wide things by
// their name, the others by kind and name.
func rowName(s subject.ID) string {
	switch s.Kind {
	case subject.Node, subject.Site:
		return s.Name
	}
	return s.String()
}

// of returns the row that an event is about; nil when it is about the run. A
// finding or hold is about its node, whatever step saw it.
func (b *board) of(e event.Event) *row {
	switch e.Type {
	case event.FindingMade, event.Held, event.Released:
		if e.Node != "" {
			if b.node[e.Node] == nil {
				b.node[e.Node] = b.add(e.Node, e.Time) // an accepted partner of a test
			}
			return b.node[e.Node]
		}
	case event.StepReady, event.StepStarted, event.StepProgress, event.StepDone, event.StepFailed, event.StepSkipped:
	default:
		return nil
	}
	return b.step[plan.StepID(e.Step)]
}

// take learns from an event.
func (b *board) take(e event.Event) {
	r := b.of(e)
	if r == nil {
		return
	}
	id := plan.StepID(e.Step)
	switch e.Type {
	case event.StepReady:
		r.putTask(task{id: id, text: e.Text, since: e.Time, waits: true})
	case event.StepStarted:
		r.putTask(task{id: id, text: e.Text, since: e.Time, until: e.Until})
	case event.StepProgress:
		r.progress(e)
	case event.StepDone, event.StepFailed, event.StepSkipped:
		b.settled[id] = true
		r.end(id, e.Time)
		r.setOutcome(e)
	case event.FindingMade:
		r.setMark(broken, id.Kind(), e.Text)
	case event.Held:
		r.setMark(onHold, "", e.Text)
	case event.Released:
		if r.mark == onHold {
			r.mark, r.text = waiting, ""
		}
	}
}

// setOutcome reads how a step ended that did not end well.
func (r *row) setOutcome(e event.Event) {
	at := plan.StepID(e.Step).Kind()
	switch {
	case e.Type == event.StepSkipped, e.Type == event.StepFailed && e.Data["kind"] == "interrupted":
		r.setMark(missed, at, e.Text)
	case e.Type == event.StepFailed:
		r.setMark(broken, at, e.Text)
	}
}

// urgency orders the marks that stay.
var urgency = map[mark]int{missed: 1, onHold: 2, broken: 3}

// setMark sets mark and text; the first cause of the worst kind stays.
func (r *row) setMark(m mark, at, text string) {
	if urgency[m] > urgency[r.mark] {
		r.mark, r.at, r.text = m, at, text
	}
}

// putTask begins a task, or replaces what is known of it.
func (r *row) putTask(t task) {
	r.active = slices.DeleteFunc(r.active, func(x task) bool { return x.id == t.id })
	r.active = append(r.active, t)
}

func (r *row) end(id plan.StepID, at time.Time) {
	r.active = slices.DeleteFunc(r.active, func(x task) bool { return x.id == id })
	r.changed = at
}

func (r *row) progress(e event.Event) {
	for i := range r.active {
		if t := &r.active[i]; t.id == plan.StepID(e.Step) {
			t.text, t.done, t.total = addProgress(e.Text, e.Done, e.Total), e.Done, e.Total
			if !e.Until.IsZero() {
				t.until = e.Until
			}
		}
	}
}

// done counts the steps of a row that are settled.
func (b *board) done(r *row) (n int) {
	for _, s := range r.steps {
		if b.settled[s.ID] {
			n++
		}
	}
	return n
}

// currentMark is the mark of a row as it stands now.
func (b *board) currentMark(r *row) mark {
	switch {
	case r.mark != waiting:
		return r.mark
	case len(r.active) > 0:
		return working
	case len(r.steps) > 0 && b.done(r) == len(r.steps):
		return ended
	}
	return waiting
}

// widest is the most that a name takes of a line.
const widest = 22

// cells are what a row says now: the step, the time, and the text.
func (b *board) cells(r *row, now time.Time) (at, when, text string) {
	switch b.currentMark(r) {
	case working:
		t := r.active[len(r.active)-1]
		when = formatAgo(t.since, now)
		if !t.until.IsZero() {
			when += ", until " + formatMoment(t.until, now)
		}
		return t.id.Kind(), when, t.text
	case waiting:
		at, text = b.next(r)
		return at, formatAgo(r.changed, now), text
	case ended:
		return "", "", "done"
	}
	return r.at, "", r.text
}

// next is the first step of a row that is not settled, and what it waits for.
func (b *board) next(r *row) (at, text string) {
	for _, s := range r.steps {
		if b.settled[s.ID] {
			continue
		}
		var others []string
		for _, n := range s.Needs {
			if !b.settled[n.Step] {
				others = append(others, string(n.Step))
			}
		}
		if len(others) == 0 {
			return s.ID.Kind(), "waits for its turn"
		}
		return s.ID.Kind(), "waits for " + shortenNames(others, 3)
	}
	return "", ""
}

// summary counts the rows.
func (b *board) summary() string {
	count := map[mark]int{}
	for _, r := range b.rows {
		count[b.currentMark(r)]++
	}
	text := fmt.Sprintf("%d done, %d working, %d waiting", count[ended], count[working], count[waiting])
	for _, x := range []struct {
		m    mark
		word string
	}{{broken, "failed"}, {onHold, "held"}, {missed, "left out"}} {
		if count[x.m] > 0 {
			text += fmt.Sprintf(", %d %s", count[x.m], x.word)
		}
	}
	return text
}
