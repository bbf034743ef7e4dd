// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fold"
)

// style is how a line of the screen looks: a number of SGR (ECMA-48). Empty: as usual.
type style string

// The styles.
const (
	normal style = ""
	strong style = "1"  // the summary
	faint  style = "2"  // what waits, and what is done
	red    style = "31" // what failed
	yellow style = "33" // what is late, or on hold
)

// line is one line of the screen.
type line struct {
	text  string
	style style
}

// wideLine is how wide a terminal is where a row is one line; narrower ones give what a row does or waits
// for a line of its own, as long as there is room.
const wideLine = 120

// frame is what a run shows now, in at most height lines: a summary, what was found, and the rows.
func (v *view) frame(now time.Time, width, height int) []line {
	far, count := v.describeProgress(now, width), v.board.summary()+" ("+v.stops+")"
	var lines []line
	if len([]rune(far))+2+len([]rune(count)) <= width || height < 4 {
		lines = append(lines, line{far + ": " + count, strong})
	} else {
		lines = append(lines, line{far, strong}, line{count, strong})
	}
	if v.over { // how it ended is written below
		return lines
	}
	lines = append(lines, v.findingLines(width, max(0, (height-1)/3))...)
	return append(lines, v.board.fit(now, width, max(1, height-len(lines)), v.inPane())...)
}

// inPane are the causes that stand among the findings: a row that says the same again is left out.
func (v *view) inPane() map[string]bool {
	causes := map[string]bool{}
	for _, d := range v.found {
		causes[d.cause] = true
	}
	return causes
}

// describeProgress is how far the run is, and how long it may still take.
func (v *view) describeProgress(now time.Time, width int) string {
	share, left := v.progress(now)
	text := fmt.Sprintf("%s %s elapsed", bar(share, map[bool]int{true: 20, false: 10}[width >= wideLine]), formatAgo(v.begun, now))
	if left <= 0 {
		return text
	}
	text += ", about " + clock.Text(roundly(left)) + " left"
	if g := v.guess; g.Expected > 0 && g.High > g.Low {
		scale := func(d time.Duration) time.Duration {
			return roundly(time.Duration(float64(left) * float64(d) / float64(g.Expected)))
		}
		text += fmt.Sprintf(" (%s to %s)", clock.Text(scale(g.Low)), clock.Text(scale(g.High)))
	}
	return text
}

// roundly is a guess without figures that it does not have.
func roundly(d time.Duration) time.Duration {
	if d >= 10*time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

// bar draws a share of 1, and says it.
func bar(share float64, cells int) string {
	share = min(max(share, 0), 1)
	full := int(math.Round(share * float64(cells)))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + fmt.Sprintf("] %3d%%", int(100*share))
}

// How often the time that is left is computed: by the clock on the wall, and by the time that the rows tell,
// which runs fast in a rehearsal.
const (
	progressEvery = 2 * time.Second
	progressMost  = 20 * time.Second
)

// progress is the share of the work that is done, and the time that the longest chain of steps still
// takes, by what such steps take; scaled by the prediction, which knows what steps wait for. Zero: it is not
// known.
func (v *view) progress(now time.Time) (share float64, left time.Duration) {
	if t := v.app.now(); v.computed.IsZero() || t.Sub(v.computed) >= progressEvery || now.Sub(v.asOf) >= progressMost || len(v.board.settled) == len(v.plan.Steps) {
		v.computed, v.asOf = t, now
		v.share, v.left = v.board.remaining(v.plan, now)
	} else {
		v.left = max(0, v.left-now.Sub(v.asOf))
		v.asOf = now
	}
	left = v.left
	if v.guess.Expected > 0 && v.whole > 0 {
		left = time.Duration(float64(left) * float64(v.guess.Expected) / float64(v.whole))
	}
	return v.share, left.Round(time.Second)
}

// remaining is the share of the work that is done, weighed by what steps take, and the longest chain of
// what is not.
func (b *board) remaining(p *plan.Plan, now time.Time) (share float64, left time.Duration) {
	running := map[plan.StepID]task{}
	for _, r := range b.rows {
		for _, t := range r.active {
			if !t.waits {
				running[t.id] = t
			}
		}
	}
	all, done := 0.0, 0.0
	ends := make(map[plan.StepID]time.Duration, len(p.Steps))
	for i := range p.Steps { // a plan has what a step needs before it
		s := &p.Steps[i]
		takes := max(s.Deadline.Expected, time.Second)
		all += takes.Seconds()
		if b.settled[s.ID] {
			done += takes.Seconds()
			continue
		}
		begin := time.Duration(0)
		for _, n := range s.Needs {
			begin = max(begin, ends[n.Step])
		}
		if t, ok := running[s.ID]; ok {
			spent := min(now.Sub(t.since), takes)
			done += spent.Seconds()
			takes -= spent
		}
		ends[s.ID] = begin + takes
		left = max(left, ends[s.ID])
	}
	if all == 0 {
		return 0, 0
	}
	return done / all, left
}

// discovery is one finding of the run, as its event had it.
type discovery struct {
	node, step, cause, action string
}

// discover keeps what was found, each cause of a node once.
func (v *view) discover(e event.Event) {
	d := discovery{textOr(e.Node, v.nameOf(e)), e.Step, e.Text, e.Data["action"]}
	if !slices.ContainsFunc(v.found, func(o discovery) bool { return o.node == d.node && o.cause == d.cause }) {
		v.found = append(v.found, d)
	}
}

// nameOf is the row that an event is about, or its step.
func (v *view) nameOf(e event.Event) string {
	if r := v.board.of(e); r != nil {
		return r.name
	}
	return e.Step
}

// findingLines is what was found, alike things together, the latest last, in at most height lines.
func (v *view) findingLines(width, height int) (lines []line) {
	about := make([]fold.Finding, len(v.found))
	for i, d := range v.found {
		about[i] = fold.Finding{Kind: "node", Name: d.node, Cause: d.cause, Action: d.action}
	}
	groups := fold.Findings(about)
	each := 2
	if len(groups)*each > height {
		each = 1
	}
	if len(groups) > height {
		before := len(groups) - max(0, height-1)
		groups = groups[before:]
		lines = append(lines, line{fmt.Sprintf("  %d earlier findings; %s has all", before, v.allFound()), faint})
	}
	for _, g := range groups {
		of := g.Names[0]
		if len(g.Names) > 1 {
			of = fmt.Sprintf("%d: %s", len(g.Names), fold.Names(g.Names))
		}
		lines = append(lines, line{formatLine("%s %s: %s", broken, of, g.Cause), red})
		if each > 1 && g.Action != "" {
			lines = append(lines, line{formatLine("    do: %s", g.Action), normal})
		}
	}
	return lines[:min(len(lines), height)]
}

// allFound is where all findings can be read.
func (v *view) allFound() string {
	if v.at.IsZero() {
		return "`ironrail why`"
	}
	return "the summary" // a rehearsal has no state that another command reads meanwhile
}

// formatLine is one line with its arguments escaped.
func formatLine(format string, args ...any) string {
	var p page
	p.linef(format, args...)
	return strings.TrimSuffix(p.String(), "\n")
}

// entry is a row of the screen: one row of the board, or several that stand the same way.
type entry struct {
	mark  mark
	rows  []*row
	at    string // the step
	share float64
	when  string
	text  string
	late  bool
	ratio float64   // how long it runs by what such steps take at most; the larger, the sooner somebody wants to see it
	since time.Time // the youngest
}

// fit shows rows in at most height lines: each by itself where they fit, else those together that stand
// the same way.
// Rows that are broken by a cause that is shown already are left out.
func (b *board) fit(now time.Time, width, height int, shown map[string]bool) []line {
	var rows []*row
	for _, r := range b.rows {
		if b.currentMark(r) != broken || !shown[r.text] {
			rows = append(rows, r)
		}
	}
	entries := b.entries(rows, now, len(rows) > height)
	more := 0 // rows
	if len(entries) > height {
		for _, e := range entries[height-1:] {
			more += len(e.rows)
		}
		entries = entries[:height-1]
	}
	seconds := 0 // lines that may follow the first of an entry
	if width < wideLine && more == 0 {
		seconds = height - len(entries)
	}
	lines := b.format(entries, width, seconds)
	if more > 0 {
		lines = append(lines, line{fmt.Sprintf("  %d more %s", more, pluralOf(more, "row", "rows")), faint})
	}
	return lines
}

// format writes entries in columns. Where a line is too short for what an entry does, that has one of its
// own, of as many as there is room for.
func (b *board) format(entries []entry, width, seconds int) (lines []line) {
	whens := 0
	for _, e := range entries {
		whens = max(whens, len([]rune(e.when)))
	}
	for _, e := range entries {
		first, s := b.columnsOf(e, width, whens), e.style()
		switch {
		case e.text == "":
			lines = append(lines, line{first, s})
		case seconds > 0 && e.mark != waiting && e.mark != ended && len([]rune(first))+2+len([]rune(e.text)) > width:
			lines, seconds = append(lines, line{first, s}, line{formatLine("      %s", e.text), s}), seconds-1
		default:
			lines = append(lines, line{first + formatLine("  %s", e.text), s})
		}
	}
	return lines
}

func (e entry) style() style {
	if e.late {
		return yellow
	}
	return map[mark]style{broken: red, onHold: yellow, waiting: faint, ended: faint, missed: faint}[e.mark]
}

// columnsOf is an entry without what it does.
func (b *board) columnsOf(e entry, width, whens int) string {
	name := e.rows[0].name
	if len(e.rows) > 1 {
		name = fmt.Sprintf("%d rows", len(e.rows))
		if !slices.ContainsFunc(e.rows, func(r *row) bool { return b.node[r.name] != r }) {
			name = fmt.Sprintf("%d nodes", len(e.rows))
		}
	}
	how := ""
	switch {
	case e.mark == working && width >= wideLine:
		how = bar(e.share, 10)
	case e.mark == working:
		how = fmt.Sprintf("%3d%%", int(100*e.share))
	case len(e.rows) == 1:
		how = fmt.Sprintf("%3d/%-3d", b.done(e.rows[0]), len(e.rows[0].steps))
	}
	wide := map[bool]int{true: len("[##########] 100%"), false: len("  1/12 ")}[width >= wideLine]
	return strings.TrimRight(formatLine("%s %-*s  %-*s  %-*s  %-*s", e.mark, min(widest, max(b.columns[0], len("512 nodes"))), name, min(widest, b.columns[1]), e.at, wide, how, whens, e.when), " ")
}

// entries are the rows as they are shown, the most urgent first: what is broken or held, what is late, what
// works with the slowest first, what waits, and what is over.
func (b *board) entries(rows []*row, now time.Time, together bool) (list []entry) {
	at := map[string]int{}
	for _, r := range rows {
		e := b.entryOf(r, now)
		key := fmt.Sprintf("%s\x00%s\x00%t", e.mark, e.at, len(r.active) > 0 && r.active[len(r.active)-1].waits)
		i, same := at[key]
		if !together || e.late || e.mark == onHold || !same {
			if !e.late {
				at[key] = len(list)
			}
			list = append(list, e)
			continue
		}
		list[i].join(e)
	}
	for i := range list {
		list[i].describeTogether()
	}
	rank := map[mark]int{broken: 0, onHold: 1, working: 3, waiting: 4, missed: 5, ended: 6}
	urgent := func(e entry) int {
		if e.late {
			return 2
		}
		return rank[e.mark]
	}
	if !together {
		return list // in the order of the plan: they all fit
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(urgent(a), urgent(b)), cmp.Compare(b.ratio, a.ratio), b.since.Compare(a.since))
	})
	return list
}

// entryOf is one row by itself.
func (b *board) entryOf(r *row, now time.Time) entry {
	at, when, text := b.cells(r, now)
	e := entry{mark: b.currentMark(r), rows: []*row{r}, at: at, when: when, text: text, since: r.changed}
	if e.mark != working {
		return e
	}
	t := r.active[len(r.active)-1]
	e.since = t.since
	s := b.planned[t.id]
	e.share = t.share(now, s)
	if s != nil && !t.waits && s.Deadline.Expected > 0 {
		e.when = formatAgo(t.since, now) + " of " + clock.Text(roundly(s.Deadline.Expected))
	}
	if s != nil && !t.waits && s.Deadline.Slow > 0 {
		e.ratio = float64(now.Sub(t.since)) / float64(s.Deadline.Slow)
	}
	if e.late = e.ratio > 1; e.late {
		e.when += ", LATE: P95 is " + clock.Text(s.Deadline.Slow)
	}
	return e
}

// share is how far a task is: by what it counts, or else by what such steps take.
func (t task) share(now time.Time, s *plan.Step) float64 {
	switch {
	case t.total > 0:
		return float64(t.done) / float64(t.total)
	case s == nil || s.Deadline.Expected <= 0 || t.waits:
		return 0
	}
	return min(float64(now.Sub(t.since))/float64(s.Deadline.Expected), 0.99)
}

// join adds an entry of one row that stands the same way.
func (e *entry) join(o entry) {
	n := float64(len(e.rows))
	e.share = (e.share*n + o.share) / (n + 1)
	if o.ratio > e.ratio || e.when == "" {
		e.ratio, e.when = o.ratio, o.when // the slowest of them
	}
	if o.since.After(e.since) {
		e.since = o.since
	}
	e.rows = append(e.rows, o.rows...)
}

// describeTogether names the rows of an entry in the place of what one of them does.
func (e *entry) describeTogether() {
	if len(e.rows) < 2 {
		return
	}
	names := make([]string, len(e.rows))
	for i, r := range e.rows {
		names[i] = r.name
	}
	e.text = fold.Names(names)
	if e.mark == waiting {
		e.when = ""
	}
}
