// SPDX-License-Identifier: Apache-2.0

// Package capture reads the serial consoles of nodes while a run brings them up: from the first step that may
// switch a node until the node is accepted, or the run ends. What they print is in a log of each node, and the
// end of it explains the step that the node is in. A console is read beside the steps: none waits for it, and
// none fails with it.
package capture

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/install"
)

// Bounds of what is read.
const (
	consolesMost = 1024     // at a time; nodes beyond wait until others are accepted
	tailBytes    = 64 << 10 // of each console, its last, for the steps
)

// Waits between two tries to open a console.
const (
	firstTry = 3 * time.Second
	lastTry  = time.Minute
)

// takenWait is how long a console that is to be typed at is asked for while somebody else has it: the session of
// a controller that was killed ends after a minute.
const takenWait = 75 * time.Second

// Config is what consoles are read with. All but Begun must be set.
type Config struct {
	// Has reports whether a node has a console that can be read.
	Has func(node string) bool
	// Open copies a console to a writer until ctx ends, which is no error, and types what comes from keys;
	// up is called each time that it is open.
	Open   func(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error
	Folder string           // the state folder: of the logs
	Now    func() time.Time // of the lines of the logs
	Bus    *event.Bus
	Begun  map[string]bool // nodes that an earlier process may have switched in this run
}

// Recorder reads consoles. It is safe for concurrent use.
type Recorder struct {
	cfg   Config
	slots chan struct{}
	wg    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	nodes  map[string]*recording
	closed bool
	full   bool // that logs cannot be written was said
}

// NewRecorder returns a recorder, which is to be closed.
func NewRecorder(c Config) *Recorder {
	return &Recorder{cfg: c, slots: make(chan struct{}, consolesMost), nodes: map[string]*recording{}}
}

// Begin reads the console of a node from now on, where it has one. It does not wait.
func (r *Recorder) Begin(node string) {
	if !r.cfg.Has(node) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.nodes[node] != nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	x := &recording{end: end, log: log{folder: filepath.Join(r.cfg.Folder, Folder), node: node}}
	r.nodes[node] = x
	r.wg.Go(func() { r.record(ctx, node, x) })
}

// End ends the reading of a node. Its log stays.
func (r *Recorder) End(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.nodes[node]; x != nil {
		x.end()
		delete(r.nodes, node)
	}
}

// Close ends all, and waits until the consoles are given back. None is begun any more.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closed = true
	for _, x := range r.nodes {
		x.end()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// of is the console of a node; nil where it is not read.
func (r *Recorder) of(node string) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node]
}

// record reads one console until ctx ends. A BMC that is lost, and a console that somebody else has open, are
// tried again.
func (r *Recorder) record(ctx context.Context, node string, x *recording) {
	select {
	case r.slots <- struct{}{}:
	default:
		r.lost(x, errkind.New(errkind.Refused, "%d consoles are read already, which is the most at a time", consolesMost))
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	defer func() { <-r.slots }()
	defer x.closeLog()
	screen := &why.Screen{Line: func(text string) { r.take(x, Line{At: r.cfg.Now(), Text: event.Escape(text)}) }}
	defer screen.Flush()
	wait := firstTry
	for {
		err := r.cfg.Open(ctx, node, screen, nil, func() {
			wait = firstTry
			x.setError(nil)
			r.take(x, Line{At: r.cfg.Now(), Text: "the console is open", Note: true})
		})
		if ctx.Err() != nil {
			return
		}
		r.lost(x, err)
		if k := errkind.Of(err); k == errkind.Unsupported || k == errkind.Auth {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, lastTry)
	}
}

// lost keeps why a console is not read.
func (r *Recorder) lost(x *recording, err error) {
	if x.setError(err) {
		r.take(x, Line{At: r.cfg.Now(), Text: "the console is not read: " + event.Escape(errkind.Line(err)), Note: true})
	}
}

// take keeps a line.
func (r *Recorder) take(x *recording, l Line) {
	err := x.add(l)
	if err == nil {
		return
	}
	r.mu.Lock()
	said := r.full
	r.full = true
	r.mu.Unlock()
	if !said {
		r.cfg.Bus.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("warning: consoles are not kept: %v", err)})
	}
}

// Type implements install.Dependencies.Type. What the console prints meanwhile may hold what is typed: it is in
// no log, and is forgotten at the end.
func (r *Recorder) Type(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error {
	if !r.cfg.Has(node) {
		return errkind.New(errkind.Unsupported, "%s has no console that can be typed at", node)
	}
	if x := r.of(node); x != nil {
		x.beginTyping()
		defer x.endTyping()
	}
	opened := false
	for by := time.Now().Add(takenWait); ; {
		err := r.cfg.Open(ctx, node, to, keys, func() { opened = true; up() })
		if opened || errkind.Of(err) != errkind.Refused || time.Now().After(by) {
			return err
		}
		select {
		case <-time.After(firstTry):
		case <-ctx.Done():
			return nil
		}
	}
}

// Printed implements install.Dependencies.Printed: what the console of a node has printed since its newest step
// began, and how many lines that were in all.
func (r *Recorder) Printed(node string) (lines []string, ever int) {
	x := r.of(node)
	if x == nil {
		return nil, 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.steps) == 0 {
		return nil, 0
	}
	from := x.steps[len(x.steps)-1].from
	return x.from(from), x.ever - from
}

// Of is what the console of a node has printed since a step began that is under way; nil where it is not
// read, and for another step.
func (r *Recorder) Of(node string, step plan.StepID) *control.Console {
	x := r.of(node)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.steps, func(s mark) bool { return s.step == step })
	if i < 0 {
		return nil
	}
	lines := x.from(x.steps[i].from)
	c := &control.Console{Step: step, At: time.Now().UTC(), Lines: lines[max(0, len(lines)-install.TailLines):]}
	if x.err != nil {
		c.Error = x.err.Error()
	}
	return c
}
