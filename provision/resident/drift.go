// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"fmt"
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
// that was broken off for a command.
const (
	driftFirst = 10 * time.Minute
	driftAgain = 30 * time.Minute
)

// mostLine bounds what is said of a change, in bytes.
const mostLine = 160

// watch is the look at the site that is taken at times. Resident.mu guards it.
type watch struct {
	due   time.Time          // of the next look; zero: none is taken
	stop  context.CancelFunc // breaks the look that is taken off; nil: none is
	done  chan struct{}      // closed at its end
	text  string             // what the last look has shown; empty: there was none
	notes map[string][]string
}

// lookForDrift looks at the site where that is due, while nothing else is done; r.turn is held.
func (r *Resident) lookForDrift(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch.due.IsZero() || time.Now().Before(r.watch.due) || r.idle == nil || r.run != nil || r.loan != nil || r.watch.stop != nil || r.ended {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.watch.stop, r.watch.done = cancel, done
	site := r.idle.site
	go func() {
		defer close(done)
		ob, err := site.Observer(ctx, r.cfg.Store)
		var d observe.Drift
		if err == nil {
			d, err = ob.Drift(ctx, r.cfg.Store, r.cfg.Fence, observe.DriftOptions{Now: time.Now()})
		}
		r.takeDrift(d, err, ctx.Err() != nil)
		cancel()
	}()
}

// lookAfterRun has the site looked at soon where a run may have fixed what the last look has
// shown, so that it does not stand below a node for a day; r.mu is held.
func (w *watch) lookAfterRun(now time.Time) {
	if soon := now.Add(driftFirst); len(w.notes) > 0 && soon.Before(w.due) {
		w.due = soon
	}
}

// takeDrift keeps what a look has shown, and says what is new in it.
func (r *Resident) takeDrift(d observe.Drift, err error, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.watch.stop = nil
	r.watch.due = now.Add(r.cfg.Drift)
	switch {
	case broken:
		r.watch.due = now.Add(min(r.cfg.Drift, driftAgain))
		return
	case err != nil:
		r.watch.text = fmt.Sprintf("the look for drift at %s failed: %s", now.Format(time.DateTime), errkind.Line(err))
		return
	}
	notes, known := map[string][]string{}, r.watch.notes
	for _, c := range d.Changes {
		text := describeChange(c)
		notes[c.Node] = append(notes[c.Node], text)
		if !slices.Contains(known[c.Node], text) {
			e := event.Event{Type: event.FindingMade, Text: c.Subject() + " has " + text, Data: map[string]string{"action": c.Action}}
			if c.Of == "" {
				e.Node = c.Node
			}
			r.cfg.Bus.Emit(e)
		}
	}
	r.watch.notes = notes
	r.watch.text = fmt.Sprintf("no drift on %d nodes at %s", d.Nodes, now.Format(time.DateTime))
	if n := len(d.Changes); n > 0 {
		r.watch.text = fmt.Sprintf("drift: %d changes since acceptance, of %d nodes looked at, at %s; `ironrail drift` has all", n, d.Nodes, now.Format(time.DateTime))
	}
	if n := len(d.Unknown); n > 0 {
		r.watch.text += fmt.Sprintf("; %d things could not be seen", n)
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

// addDrift adds to a status what the last look has shown; r.mu is held.
func (r *Resident) addDrift(s *control.Status) {
	if r.watch.text != "" {
		s.Serves = append(s.Serves, r.watch.text)
	}
	for _, n := range s.Nodes {
		for _, text := range r.watch.notes[n.Name] {
			addNote(s, n.Name, text)
		}
	}
}

// addNote adds to what a status says of a node.
func addNote(s *control.Status, node, text string) {
	if s.Notes == nil {
		s.Notes = map[string][]string{}
	}
	s.Notes[node] = append(s.Notes[node], text)
}
