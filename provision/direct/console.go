// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// holdLook is from one look for a hold to the next while nobody types.
const holdLook = time.Second

// ErrMoved is the cause of a context that ends a console because the owner of the state continues with it.
var ErrMoved = errkind.New(errkind.Interrupted, "the owner of the state continues with the console")

// Typist connects a person with the console of a node, by the rules of direct work: a node that somebody
// else has on hold is not typed at, nor one whose BMC says that it is of another node, and who typed, from
// when to when, is in the journal. What was typed is not, nor anywhere else but where a run keeps what the
// node prints of it.
type Typist struct {
	Identify func(ctx context.Context, node string) error                // refuses a BMC of another node
	Hold     func(ctx context.Context, node string) (*state.Hold, error) // as it is now; nil: there is none
	Record   func(context.Context, state.Direct) error                   // makes the record durable
	Now      func() time.Time
}

// Type checks, and copies a console as open opens it, with what the watcher types. When somebody else puts
// the node on hold meanwhile, or nobody can say whether, typing ends and reading goes on: the watcher gets a
// note, the record ends, and no key reaches the node any more, also after a release. ErrMoved leaves the
// record as it is.
func (t Typist) Type(ctx context.Context, q control.ConsoleRequest, w control.Watcher, open func(keys <-chan string) error) error {
	refused := t.check(ctx, q)
	if refused != nil && q.Since.IsZero() {
		return refused
	}
	x := state.Direct{Node: q.Node, Verb: "console", Does: "type at its console", By: q.By, At: t.Now(), State: state.EffectIntended}
	if !q.Since.IsZero() {
		x.At = q.Since
	}
	record := context.WithoutCancel(ctx)
	if err := t.Record(record, x); err != nil {
		return err
	}
	end := func(s state.EffectState, why error) error {
		x.Ended, x.State = t.Now(), s
		x.Detail = fmt.Sprintf("open to type at for %s", x.Ended.Sub(x.At).Round(time.Second))
		if why != nil {
			x.Detail += ": " + errkind.Line(why)
		}
		return t.Record(record, x)
	}
	watch, stop := context.WithCancel(ctx)
	allowed := make(chan string)
	var over, unrecorded error // over: why typing has ended before reading
	var wg sync.WaitGroup
	wg.Go(func() {
		if over = refused; over == nil {
			over = t.passKeys(watch, q, w.Keys, allowed)
		}
		if over == nil {
			return
		}
		unrecorded = end(state.EffectIsDone, over)
		if w.Note != nil {
			w.Note("nothing is typed any more: " + errkind.Line(over) + "; reading goes on")
		}
		drop(watch, w.Keys)
	})
	err := open(allowed)
	stop()
	wg.Wait()
	switch {
	case over != nil || context.Cause(ctx) == ErrMoved:
	case err != nil:
		unrecorded = end(state.EffectNotDone, err)
	default:
		unrecorded = end(state.EffectIsDone, nil)
	}
	return errors.Join(err, unrecorded)
}

// check refuses to type at a node that somebody else has on hold, or whose BMC is of another node.
func (t Typist) check(ctx context.Context, q control.ConsoleRequest) error {
	if err := t.checkHold(ctx, q); err != nil {
		return err
	}
	return t.Identify(ctx, q.Node)
}

// checkHold refuses a node that somebody else has on hold. Who holds a node types at it.
func (t Typist) checkHold(ctx context.Context, q control.ConsoleRequest) error {
	h, err := t.Hold(ctx, q.Node)
	if err == nil && h != nil && h.By != q.By {
		err = errHeldBy(q.Node, h)
	}
	return err
}

// passKeys passes on what is typed until ctx ends, or somebody else holds the node, which is the error. Each
// text waits for a look.
func (t Typist) passKeys(ctx context.Context, q control.ConsoleRequest, from <-chan string, to chan<- string) error {
	look := time.NewTicker(holdLook)
	defer look.Stop()
	next, in, out := "", from, chan<- string(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case out <- next:
			in, out = from, nil
			continue
		case next = <-in: // one text at a time
			in, out = nil, to
		case <-look.C:
		}
		if err := t.checkHold(ctx, q); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// drop takes what is typed and passes nothing on, so that who types can still end.
func drop(ctx context.Context, keys <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-keys:
		}
	}
}

// HoldOf returns the hold of a node by a state; nil where there is none.
func HoldOf(ctx context.Context, r state.Reader, node string) (*state.Hold, error) {
	n, _, err := state.Get[state.Node](ctx, r, state.NodeKey(node))
	return n.Hold, err
}

// CheckIdentity refuses a node whose BMC says that it is of another one.
func CheckIdentity(ctx context.Context, inv *inventory.Inventory, open func(node string) (BMC, error), node string) error {
	n, ok := inv.Node(node)
	if !ok {
		return errkind.New(errkind.NotFound, "%s is not in the inventory", node)
	}
	d := Desk{cfg: Config{Inv: inv, BMC: open}}
	_, _, err := d.reach(ctx, n)
	return err
}

// Console copies a console to a watcher, as open opens it, and types where the request asks for it, as a
// Typist does. Close ends it.
func (d *Desk) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher, open func(ctx context.Context, keys <-chan string) error) error {
	if !q.Type {
		return open(ctx, nil)
	}
	ctx, done, err := d.beginTyping(ctx)
	if err != nil {
		return err
	}
	defer done()
	t := Typist{Now: d.now, Record: d.recordTyping,
		Identify: func(ctx context.Context, node string) error { return CheckIdentity(ctx, d.cfg.Inv, d.cfg.BMC, node) },
		Hold:     func(ctx context.Context, node string) (*state.Hold, error) { return HoldOf(ctx, d.cfg.Store, node) }}
	return t.Type(ctx, q, w, func(keys <-chan string) error { return open(ctx, keys) })
}

// beginTyping counts a console that is typed at, which ends before the desk has closed: its record has to be
// written while the process owns the state.
func (d *Desk) beginTyping(ctx context.Context) (context.Context, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errkind.New(errkind.Interrupted, "the process that owns the state is ending").Do("Open the console again.")
	}
	d.wg.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.life, cancel)
	return ctx, func() { stop(); cancel(); d.wg.Done() }, nil
}

// recordTyping writes the record, and shows it as an event.
func (d *Desk) recordTyping(ctx context.Context, x state.Direct) error {
	text := "console: " + x.Detail
	if x.State == state.EffectIntended {
		text = "console opened to type at by " + x.By
	}
	d.cfg.Bus.Emit(event.Event{Type: event.Direct, Node: x.Node, Text: text, Data: map[string]string{"verb": "console", "by": x.By}})
	return state.RecordDirect(ctx, d.cfg.Store, d.cfg.Fence, x)
}
