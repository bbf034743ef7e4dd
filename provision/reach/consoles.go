// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
)

// Bounds of the consoles that a run reads.
const (
	consolesMost = 256      // at a time; nodes beyond are booted unread
	consoleBytes = 64 << 10 // that are kept of each, its last
)

// Consoles reads the serial consoles of nodes with an IPMI BMC while steps wait for
// them: one session for each, besides the one that the run works with. It is safe
// for concurrent use.
type Consoles struct {
	bmcs  BMCs
	open  Terminal
	slots chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	last map[string]*tap // by node
}

// Terminal copies what a node prints on its console until ctx ends, and types what comes from keys
// (nil: nothing), as bmc.Terminal does.
type Terminal func(ctx context.Context, t bmc.Target, to io.Writer, keys <-chan string, up func()) error

// NewConsoles are consoles of these BMCs.
func NewConsoles(b BMCs, open Terminal) *Consoles {
	return &Consoles{bmcs: b, open: open, slots: make(chan struct{}, consolesMost), last: map[string]*tap{}}
}

// TerminalOn opens consoles over a network.
func TerminalOn(n network.Network) Terminal {
	return func(ctx context.Context, t bmc.Target, to io.Writer, keys <-chan string, up func()) error {
		return bmc.Terminal(ctx, t, bmc.Options{Network: n}, to, keys, up)
	}
}

// Open implements install.Dependencies.Console. A console of the same node that was closed
// a moment ago is given back first.
func (c *Consoles) Open(ctx context.Context, node string) install.Console {
	n, ok := c.bmcs.Inv.Node(node)
	if !ok || !oob.HasConsole(n) {
		return nil
	}
	t, ctx, before := c.tap(ctx, node)
	c.wg.Go(func() { _ = c.run(ctx, node, t, before, nil, nil, nil) }) // the tap keeps the error
	return t
}

// Type implements install.Dependencies.Type. What the console prints is kept besides, as with
// Open, and forgotten at its end.
func (c *Consoles) Type(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error {
	n, ok := c.bmcs.Inv.Node(node)
	if !ok || !oob.HasConsole(n) {
		return errkind.New(errkind.Unsupported, "%s has no console that can be typed at", node)
	}
	t, ctx, before := c.tap(ctx, node)
	defer t.Close()
	return c.run(ctx, node, t, before, to, keys, up)
}

// tap makes a console of a node the one that is read, and returns the one before it.
func (c *Consoles) tap(ctx context.Context, node string) (t *tap, _ context.Context, before *tap) {
	ctx, end := context.WithCancel(ctx)
	t = &tap{end: end, ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.last[node] = c.last[node], t
	return t, ctx, before
}

// run reads a console once the one before it was given back.
func (c *Consoles) run(ctx context.Context, node string, t, before *tap, to io.Writer, keys <-chan string, up func()) error {
	defer close(t.ended)
	if before != nil {
		select {
		case <-before.ended:
		case <-ctx.Done():
			return nil
		}
	}
	err := c.read(ctx, node, t, to, keys, up)
	t.stopped(err)
	return err
}

// read copies a node's console into t, and to another writer where there is one, until ctx ends or
// it cannot be read.
func (c *Consoles) read(ctx context.Context, node string, t *tap, to io.Writer, keys <-chan string, up func()) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return errkind.New(errkind.Refused, "%d consoles are read already, which is the most at a time", consolesMost)
	}
	n, _ := c.bmcs.Inv.Node(node)
	target, err := c.bmcs.Target(n, n.Serial)
	if err != nil {
		return err
	}
	screen := why.Screen{Line: t.add}
	defer screen.Flush()
	all := io.Writer(&screen)
	if to != nil {
		all = io.MultiWriter(all, to)
	}
	return c.open(ctx, target, all, keys, up)
}

// Wait waits until all consoles were given back. None is opened any more.
func (c *Consoles) Wait() { c.wg.Wait() }

// Of is what the console of a node says while a step waits for it; nil when none
// is read.
func (c *Consoles) Of(node string, step plan.StepID) *control.Console {
	c.mu.Lock()
	t := c.last[node]
	c.mu.Unlock()
	if t == nil || t.isClosed() {
		return nil
	}
	lines, err := t.Lines()
	x := &control.Console{Step: step, At: time.Now().UTC(), Lines: lines[max(0, len(lines)-install.TailLines):]}
	if err != nil {
		x.Error = err.Error()
	}
	return x
}

// Printed is what the console of a node has said since a step waits for it, and how many
// lines that were in all; nothing when none is read.
func (c *Consoles) Printed(node string) (lines []string, ever int) {
	c.mu.Lock()
	t := c.last[node]
	c.mu.Unlock()
	if t == nil {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...), t.ever
}

// tap is one console that is read. It implements install.Console.
type tap struct {
	end   context.CancelFunc
	ended chan struct{} // closed when session and payload are given back

	mu     sync.Mutex // guards what follows
	closed bool
	lines  []string
	bytes  int // Of lines
	ever   int // lines, those let go included
	err    error
}

// add takes a line, and lets the oldest go.
func (t *tap) add(text string) {
	text = event.Escape(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.lines, t.bytes = append(t.lines, text), t.bytes+len(text)+1
	t.ever++
	for t.bytes > consoleBytes && len(t.lines) > 1 {
		t.bytes -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
}

func (t *tap) stopped(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Lines implements install.Console.
func (t *tap) Lines() ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...), t.err
}

// Close implements install.Console. What was read is forgotten.
func (t *tap) Close() {
	t.mu.Lock()
	t.closed, t.lines = true, nil
	t.mu.Unlock()
	t.end()
}

// isClosed reports whether the step has ended that it was read for.
func (t *tap) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}
