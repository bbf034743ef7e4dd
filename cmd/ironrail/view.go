package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/subject"
)

// view shows a run while it goes: on a terminal one line a node, redrawn; else
// one plain line for each thing that happens; with --json every event as a line.
type view struct {
	app   *app
	rows  map[string]*row
	order []string
	last  map[string]string // last phase shown of each step, on plain output
	begun time.Time
}

// row is one node, or one group or other thing that steps work on.
type row struct {
	name  string
	stage string
	text  string
	since time.Time
	until time.Time
	done  int
	total int
	mark  string // " " working, "✓", "✗", "-" skipped
}

func newView(a *app, _ *inventory.Inventory, p *plan.Plan) *view {
	v := &view{app: a, rows: map[string]*row{}, last: map[string]string{}, begun: time.Now()}
	for _, s := range p.Steps {
		r := v.row(rowName(s))
		r.total++
	}
	return v
}

// rowName is the line that a step is shown in.
func rowName(s plan.Step) string {
	if s.Subject.Kind == subject.Node {
		return s.Subject.Name
	}
	return s.Subject.String()
}

func (v *view) row(name string) *row {
	r := v.rows[name]
	if r == nil {
		r = &row{name: name, mark: " ", text: "waits for its first step"}
		v.rows[name] = r
		v.order = append(v.order, name)
	}
	return r
}

// follow shows events until the run has ended.
func (v *view) follow(sub *event.Subscription) {
	ctx := context.Background()
	live := !v.app.json && isTerminal(v.app.err)
	drawn := 0
	for {
		wait, cancel := context.WithTimeout(ctx, time.Second/2)
		e, err := sub.Next(wait)
		timedOut := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			v.take(e)
		case !timedOut:
			if live {
				v.draw(drawn)
			}
			return
		}
		if live {
			for e, ok := sub.Ready(); ok; e, ok = sub.Ready() {
				v.take(e)
			}
			drawn = v.draw(drawn)
		}
	}
}

// take updates the rows, and prints where lines are printed.
func (v *view) take(e event.Event) {
	if v.app.json {
		v.app.printLine(e)
		return
	}
	name := e.Node
	if name == "" && e.Step != "" {
		kind, _, _ := strings.Cut(e.Step, "/")
		name = kind
		for _, n := range v.order {
			if _, short, ok := strings.Cut(n, "/"); ok && strings.HasPrefix(e.Step, short+"/") || ok && kind == "site" && strings.HasSuffix(e.Step, "/"+short) {
				name = n
			}
		}
	}
	if name != "" && e.Type != event.Evidence {
		v.update(v.row(name), e)
	}
	if !isTerminal(v.app.err) {
		v.plain(name, e)
	}
}

func (v *view) update(r *row, e event.Event) {
	_, short, _ := strings.Cut(e.Step, "/")
	switch e.Type {
	case event.StepStarted:
		r.stage, r.text, r.since, r.until, r.mark = short, e.Text, e.Time, e.Until, " "
	case event.StepProgress, event.StepReady:
		r.stage, r.text = short, e.Text
		if e.Total > 0 {
			r.text = fmt.Sprintf("%s %d%% of %s", e.Text, 100*e.Done/e.Total, size(e.Total))
		}
		if !e.Until.IsZero() {
			r.until = e.Until
		}
	case event.StepDone:
		r.done++
		r.stage, r.text, r.until = short, "done", time.Time{}
		if r.done == r.total {
			r.mark = "✓"
		}
	case event.StepFailed, event.FindingMade:
		r.stage, r.text, r.mark, r.until = short, e.Text, "✗", time.Time{}
	case event.StepSkipped:
		if r.mark == " " {
			r.mark, r.text = "-", e.Text
		}
	case event.Held:
		r.mark, r.text = "‖", e.Text
	}
}

// draw redraws all rows over the last drawing, at most as many as fit.
func (v *view) draw(drawn int) int {
	b := &strings.Builder{}
	if drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA\x1b[J", drawn)
	}
	const most = 40
	shown, ended := 0, 0
	for _, name := range v.order {
		r := v.rows[name]
		if len(v.order) > most && (r.mark == "✓" || shown >= most) {
			ended++
			continue
		}
		shown++
		fmt.Fprintln(b, clip(v.line(r), v.app.width()))
	}
	fmt.Fprintf(b, "%s elapsed", time.Since(v.begun).Round(time.Second))
	if ended > 0 {
		fmt.Fprintf(b, ", %d lines not shown", ended)
	}
	fmt.Fprintln(b, "  (Ctrl-C: drain)")
	io.WriteString(v.app.err, b.String())
	return shown + 1
}

// line is one row: what it does, since when, until when at the latest.
func (v *view) line(r *row) string {
	s := fmt.Sprintf("%s %-14s %2d/%-2d %-20s %s", r.mark, r.name, r.done, r.total, r.stage, event.Escape(r.text))
	if r.mark == " " && !r.since.IsZero() {
		s += fmt.Sprintf("  (%s", time.Since(r.since).Round(time.Second))
		if !r.until.IsZero() {
			s += ", until " + r.until.Local().Format(time.TimeOnly)
		}
		s += ")"
	}
	return s
}

// plain prints what happens as lines; progress only when its phase changes.
func (v *view) plain(name string, e event.Event) {
	text := event.Escape(e.Text)
	switch e.Type {
	case event.StepProgress:
		if v.last[e.Step] == e.Text {
			return
		}
		v.last[e.Step] = e.Text
	case event.EffectDone, event.FactLearned, event.Evidence, event.StepReady:
		return
	}
	_, short, _ := strings.Cut(e.Step, "/")
	fmt.Fprintf(v.app.err, "%s %-12s %-22s %-13s %s\n", e.Time.Local().Format(time.TimeOnly), name, short, strings.TrimPrefix(string(e.Type), "step-"), text)
}

// clip cuts a line to the width of the terminal, in runes.
func clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}

// size shows bytes.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
