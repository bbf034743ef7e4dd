// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
)

// When the site is looked at for drift by itself: so long after the owner began, and after a look
// that was broken off for a command. BMCs are asked how their chassis are, and what is new in their
// event logs, so many times as often.
const (
	driftFirst   = 10 * time.Minute
	driftAgain   = 30 * time.Minute
	chassisOften = 24
	chassisLeast = 10 * time.Second
)

// mostLine bounds what is said of a change, in bytes.
const mostLine = 160

// watch are the looks at the site that are taken at times, one after the other. Resident.mu guards it.
type watch struct {
	stop    context.CancelFunc // breaks the look that is taken off; nil: none is
	done    chan struct{}      // closed at its end
	drift   look
	chassis look

	memory observe.ChassisMemory // of one look at chassis to the next
}

// look is one kind of look.
type look struct {
	due   time.Time // of the next one; zero: none is taken
	text  string    // what the last one has shown; empty: there was none
	notes map[string][]string
}

// begin sets when the first looks are taken; each is how often drift is looked for, 0: never.
func (w *watch) begin(each time.Duration, now time.Time) {
	if each > 0 {
		w.drift.due, w.chassis.due = now.Add(min(each, driftFirst)), now.Add(min(each, driftFirst))
	}
}

// chassisEach is how often chassis are looked at.
func (r *Resident) chassisEach() time.Duration { return max(r.cfg.Drift/chassisOften, chassisLeast) }

// lookAround takes the look that is due, while nothing else is done; r.turn is held.
func (r *Resident) lookAround(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	isDue := func(l look) bool { return !l.due.IsZero() && !now.Before(l.due) }
	drifts, chassis := isDue(r.watch.drift), isDue(r.watch.chassis)
	if !drifts && !chassis || r.idle == nil || r.run != nil || r.loan != nil || r.watch.stop != nil || r.ended {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.watch.stop, r.watch.done = cancel, done
	site := r.idle.site
	go func() {
		defer close(done)
		ob, err := site.Observer(ctx, r.cfg.Store)
		if drifts {
			var d observe.Drift
			if err == nil {
				d, err = ob.Drift(ctx, r.cfg.Store, r.cfg.Fence, observe.DriftOptions{Now: time.Now()})
			}
			r.takeDrift(d, err, ctx.Err() != nil)
		} else {
			var c observe.ChassisReport
			if err == nil {
				c, err = ob.LookAtChassis(ctx, r.cfg.Store, &r.watch.memory)
			}
			r.takeChassis(c, err, ctx.Err() != nil)
		}
		cancel()
	}()
}

// lookAfterRun has the site looked at soon where a run may have fixed what the last look has
// shown, so that it does not stand below a node for a day; r.mu is held.
func (w *watch) lookAfterRun(now time.Time) {
	soon := now.Add(driftFirst)
	for _, l := range []*look{&w.drift, &w.chassis} {
		if len(l.notes) > 0 && soon.Before(l.due) {
			l.due = soon
		}
	}
}

// taken notes that a look has ended, and reports whether it has shown anything; r.mu is held.
func (r *Resident) taken(l *look, each time.Duration, what string, err error, broken bool) bool {
	now := time.Now()
	r.watch.stop = nil
	l.due = now.Add(each)
	switch {
	case broken:
		l.due = now.Add(min(each, driftAgain))
		return false
	case err != nil:
		l.text = fmt.Sprintf("the look for %s at %s failed: %s", what, now.Format(time.DateTime), errkind.Line(err))
		return false
	}
	return true
}

// find says what is new in what was found of a node, and adds it to notes.
func (r *Resident) find(notes, known map[string][]string, node, text string, e event.Event) {
	notes[node] = append(notes[node], text)
	if !slices.Contains(known[node], text) {
		e.Type = event.FindingMade
		r.cfg.Bus.Emit(e)
	}
}

// takeDrift keeps what a look has shown, and says what is new in it.
func (r *Resident) takeDrift(d observe.Drift, err error, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.watch.drift
	if !r.taken(l, r.cfg.Drift, "drift", err, broken) {
		return
	}
	notes, at := map[string][]string{}, time.Now().Format(time.DateTime)
	for _, c := range d.Changes {
		text := describeChange(c)
		e := event.Event{Text: c.Subject() + " has " + text, Data: map[string]string{"action": c.Action}}
		if c.Of == "" {
			e.Node = c.Node
		}
		r.find(notes, l.notes, c.Node, text, e)
	}
	l.notes = notes
	l.text = fmt.Sprintf("no drift on %d nodes at %s", d.Nodes, at)
	if n := len(d.Changes); n > 0 {
		l.text = fmt.Sprintf("drift: %d changes since acceptance, of %d nodes looked at, at %s; `ironrail drift` has all", n, d.Nodes, at)
	}
	if n := len(d.Unknown); n > 0 {
		l.text += fmt.Sprintf("; %d things could not be seen", n)
	}
}

// takeChassis keeps what BMCs have said, and says what is new in it.
func (r *Resident) takeChassis(c observe.ChassisReport, err error, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.watch.chassis
	if !r.taken(l, r.chassisEach(), "what BMCs say", err, broken) {
		return
	}
	notes := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(c.Faults)) {
		for _, f := range c.Faults[node] {
			text := "by its BMC: " + clip(f.Part+": "+f.Cause)
			r.find(notes, l.notes, node, text, event.Event{Node: node, Text: text, Data: map[string]string{"action": f.Action}})
		}
	}
	l.notes = notes
	l.text = fmt.Sprintf("%d BMCs were asked at %s, and %d nodes have faults by what they say", c.Asked, time.Now().Format(time.DateTime), len(notes))
	if n := len(c.Silent); n > 0 {
		l.text += fmt.Sprintf("; %d could not be read whole", n)
	}
}

// describeChange says in a line what is not as it was.
func describeChange(c drift.Change) string {
	what := strings.Join(strings.Fields(c.Part+" "+c.Name), " ")
	return fmt.Sprintf("drifted: %s: %s: %s -> %s", c.Kind, what, clip(c.Was), clip(c.Is))
}

// clip cuts a text that is long for a line.
func clip(text string) string {
	if text = strings.Join(strings.Fields(text), " "); len(text) > mostLine {
		return strings.ToValidUTF8(text[:mostLine], "") + "..."
	}
	return text
}

// breakDrift ends a look that is taken, and does not wait for that; r.mu is held.
func (r *Resident) breakDrift() {
	if r.watch.stop != nil {
		r.watch.stop()
	}
}

// awaitDrift ends a look that is taken, and waits for that.
func (r *Resident) awaitDrift() {
	r.mu.Lock()
	r.breakDrift()
	done := r.watch.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
}

// addDrift adds to a status what the last looks have shown; r.mu is held.
func (r *Resident) addDrift(s *control.Status) {
	for _, l := range []*look{&r.watch.drift, &r.watch.chassis} {
		if l.text != "" {
			s.Serves = append(s.Serves, l.text)
		}
	}
	for _, n := range s.Nodes {
		for _, text := range r.watch.notesOf(n.Name) {
			addNote(s, n.Name, text)
		}
	}
}

// notesOf is what the last looks have shown of a node.
func (w *watch) notesOf(node string) []string {
	return slices.Concat(w.drift.notes[node], w.chassis.notes[node])
}

// addNote adds to what a status says of a node.
func addNote(s *control.Status, node, text string) {
	if s.Notes == nil {
		s.Notes = map[string][]string{}
	}
	s.Notes[node] = append(s.Notes[node], text)
}
