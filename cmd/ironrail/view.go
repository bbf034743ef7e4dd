// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/provision/predict"
)

// How often the rows are drawn: while nothing happens, and at most.
const (
	redrawIdle = time.Second / 2
	redrawMost = time.Second / 10
	// redrawShare is how many times longer than a drawing takes none follows it.
	redrawShare = 10
)

// view shows a run while it goes: on a terminal one line a node, redrawn in
// place, with what somebody must read above; else one plain line for each thing
// that happens; with --json every event as a line of data.
type view struct {
	app   *app
	plan  *plan.Plan
	board *board
	stops string // what Ctrl-C does
	begun time.Time
	at    time.Time // of a rehearsal: the virtual time of the last event; zero: the clock on the wall counts

	guess    predict.Prediction // zero: there is none
	whole    time.Duration      // the longest chain of the plan's steps
	computed time.Time          // by the clock on the wall, when what follows was computed
	asOf     time.Time          // what left is counted from
	share    float64            // of the work that is done
	left     time.Duration      // the longest chain of what is not
	found    []discovery
	over     bool // the run has ended

	screen *screen // nil: plain lines or JSON
	above  []string
	drawn  time.Time
	took   time.Duration // to draw it

	phases      phases            // of a rehearsal: what plain lines sum up; nil: they tell all
	phase       map[string]string // last phase printed of each step
	cause       string            // last cause that was found
	shownCauses map[string]bool   // causes that plain lines have told, alone and with their step or row
}

func newView(a *app, p *plan.Plan) *view {
	v := &view{app: a, plan: p, stops: "Ctrl-C drains", board: newBoard(p, a.now()), begun: a.now(), phase: map[string]string{}, shownCauses: map[string]bool{}}
	_, v.whole = v.board.remaining(p, v.begun)
	if name, _ := a.environ("TERM"); !a.json && isTerminal(a.err) && name != "dumb" {
		v.screen = &screen{w: a.err, size: func() (int, int) { return terminalSize(a.err) }, color: a.colors(a.err)}
	}
	return v
}

// predicted gives the view how long the run may take.
func (v *view) predicted(guess predict.Prediction) *view {
	v.guess = guess
	return v
}

// rehearsal makes the view tell the time of its events, and, unless everything is
// wanted, plain lines of what is found alone.
func (v *view) rehearsal(verbose bool) *view {
	v.at, v.stops = v.begun, "Ctrl-C stops"
	if !verbose {
		v.phases = newPhases(v.plan)
	}
	return v
}

// now is the time that the rows tell.
func (v *view) now() time.Time {
	if v.at.IsZero() {
		return v.app.now()
	}
	return v.at
}

// follow shows events until the run has ended.
func (v *view) follow(sub *event.Subscription) {
	for {
		wait, cancel := context.WithTimeout(context.Background(), redrawIdle)
		e, err := sub.Next(wait)
		cancel()
		for ok := err == nil; ok; e, ok = sub.Ready() {
			v.take(e)
		}
		v.over = errors.Is(err, io.EOF)
		v.redraw(v.over)
		if v.over {
			return
		}
	}
}

// take learns from an event, and prints it where events are printed.
func (v *view) take(e event.Event) {
	if !v.at.IsZero() && e.Time.After(v.at) {
		v.at = e.Time
	}
	if v.app.json {
		v.app.printLine(e)
		if e.Type == event.Note && e.Step == "" {
			v.app.sayf("%s", e.Text) // who stops a run wants to read that it was heard
		}
		return
	}
	v.board.take(e)
	if v.screen == nil {
		v.sumUp(e)
		return
	}
	v.above = append(v.above, v.news(e)...)
}

// news is what somebody must read of an event and no row shows: it stays above the rows.
func (v *view) news(e event.Event) []string {
	var p page
	switch e.Type {
	case event.Note:
		if v.phases != nil && e.Step != "" {
			return nil // what stages tell of a real hand-over
		}
		p.linef("%s  %s%s", e.Time.Local().Format(time.TimeOnly), eventPrefix(e), e.Text)
	case event.Held, event.Released:
		p.linef("%s  %s: %s", e.Time.Local().Format(time.TimeOnly), e.Node, e.Text)
	case event.FindingMade, event.StepFailed: // in the pane of findings
		if e.Data["kind"] != "interrupted" && (e.Type == event.FindingMade || v.cause != e.Step+e.Text) {
			v.cause = e.Step + e.Text
			v.discover(e)
		}
		return nil
	default:
		return nil
	}
	return strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
}

// eventPrefix names what an event is about.
func eventPrefix(e event.Event) string {
	if about := textOr(e.Step, e.Node); about != "" {
		return about + ": "
	}
	return ""
}

// redraw draws the rows, unless they were drawn just before.
func (v *view) redraw(now bool) {
	t := v.app.now()
	if v.screen == nil || !now && t.Sub(v.drawn) < max(redrawMost, redrawShare*v.took) {
		return
	}
	v.screen.draw(v.above, func(width, height int) []line { return v.frame(v.now(), width, height) })
	v.above, v.drawn, v.took = nil, t, v.app.now().Sub(t)
}

// sumUp prints an event as a line, or, of a rehearsal, only what is found and what
// all nodes are through with.
func (v *view) sumUp(e event.Event) {
	if v.phases == nil {
		v.plain(e)
		return
	}
	switch e.Type {
	case event.FindingMade, event.StepFailed, event.RunEnded:
		if e.Data["kind"] != "interrupted" {
			v.plain(e)
		}
	case event.Note:
		if e.Step == "" {
			v.plain(e)
		}
	}
	if line := v.phases.take(e); line != "" {
		v.app.sayf("%s", line)
	}
}

// plain prints an event as a line; progress only when its phase changes, and what
// is left out only once for each row and cause.
func (v *view) plain(e event.Event) {
	name, text := e.Node, e.Text
	if r := v.board.of(e); r != nil {
		name = r.name
	}
	switch e.Type {
	case event.StepProgress:
		if v.phase[e.Step] == text {
			return
		}
		v.phase[e.Step] = text
	case event.EffectDone, event.FactLearned, event.Evidence, event.StepReady:
		return
	case event.StepFailed, event.FindingMade:
		if e.Type == event.StepFailed && v.shownCauses[e.Step+"\x00"+text] {
			text = "for the cause above"
		}
		v.shownCauses[e.Text], v.shownCauses[e.Step+"\x00"+e.Text] = true, true
	case event.StepSkipped:
		if v.shownCauses[name+"\x00"+text] {
			return
		}
		v.shownCauses[name+"\x00"+text] = true
		if v.shownCauses[text] {
			text = "and what follows, for a cause above"
		}
	}
	v.line(e, name, strings.TrimPrefix(string(e.Type), "step-"), text)
	if do := e.Data["action"]; do != "" && e.Type == event.FindingMade {
		v.line(e, name, "do", do)
	}
}

// line prints one plain line about an event.
func (v *view) line(e event.Event, name, what, text string) {
	v.app.sayf("%s %-14s %-22s %-11s %s", e.Time.Local().Format(time.TimeOnly), name, plan.StepID(e.Step).Kind(), what, text)
}
