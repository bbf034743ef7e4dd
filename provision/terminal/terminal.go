// SPDX-License-Identifier: Apache-2.0

// Package terminal connects a person with the serial console of a node: through the owner of the state,
// which opens each console once and shares it, or with a session of this process's own while there is none.
// It stays open where owners begin and end: a run that begins gets the console, since it reads it as well,
// and when it has ended this process opens it again.
package terminal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/onrecord"
)

// Times of a console that moves between this process and owners.
const (
	ownerLook  = 2 * time.Second // from one look for an owner to the next
	openAgain  = time.Second     // between two tries to open it again
	triesMost  = 60              // without the console being open, once it was
	recordWait = 10 * time.Second
	recordTry  = 200 * time.Millisecond
)

// Config is what a console is found with. All must be set.
type Config struct {
	Marker onrecord.Marker                 // of the state; it records who typed
	Site   func() (*provision.Site, error) // loads the site, when there is no owner
}

// Open copies the console of a node to a watcher until ctx ends, which is no error, and types what the watcher
// types where the request asks for it, by the rules of direct.Typist. Nothing of the state is open while the
// console is, so that any command may begin. Where an owner begins or ends, what the node prints within a
// second or two may be missing; the watcher's Note says so.
func (c Config) Open(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	failed, ever, up := 0, false, w.Up
	w.Up = func() {
		failed, ever = 0, true
		if up != nil {
			up()
		}
	}
	for {
		moved, err := c.once(ctx, &q, w)
		switch {
		case ctx.Err() != nil:
			return notMoved(err)
		case moved:
			c.note(w, "the console continues with the process that owns the state now")
			continue
		case !ever, failed >= triesMost, err != nil && !passes(err):
			return err
		case failed == 0:
			c.note(w, "the process that shared the console has ended; it is opened again")
		}
		failed++
		select {
		case <-time.After(openAgain):
		case <-ctx.Done():
		}
	}
}

// notMoved leaves out that the console was moved: its end came at the same time.
func notMoved(err error) error {
	if errors.Is(err, direct.ErrMoved) {
		return nil
	}
	return err
}

// passes reports whether an error comes of owners that begin or end.
func passes(err error) bool {
	if _, owned := errors.AsType[onrecord.OwnedError](err); owned {
		return true
	}
	return errkind.Of(err) == errkind.Interrupted
}

// note says something to the watcher.
func (c Config) note(w control.Watcher, text string) {
	if w.Note != nil {
		w.Note(text)
	}
}

// once opens the console by the owner, or in this process until an owner begins that continues with it. The
// request keeps since when this process has typed.
func (c Config) once(ctx context.Context, q *control.ConsoleRequest, w control.Watcher) (moved bool, err error) {
	there := w
	there.Up = func() {
		q.Since = time.Time{} // the owner has recorded it
		w.Up()
	}
	asked := *q
	owned, err := onrecord.AskOwner(c.Marker.Place.Folder, func(o *control.Client) error { return o.Console(ctx, asked, there) })
	if owned || err != nil {
		return false, err
	}
	site, err := c.Site()
	if err != nil {
		return false, err
	}
	console, hold, err := c.find(ctx, site, q.Node)
	if err != nil {
		return false, err
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	go c.awaitOwner(life, end)
	if !q.Type {
		err = console.Open(life, w.To, nil, w.Up)
	} else {
		err = c.typist(site, console, hold, &q.Since).Type(life, *q, w, func(keys <-chan string) error {
			return console.Open(life, w.To, keys, w.Up)
		})
	}
	moved = context.Cause(life) == direct.ErrMoved
	if !moved {
		q.Since = time.Time{}
	}
	return moved, err
}

// find finds the console of a node, and who has the node on hold.
func (c Config) find(ctx context.Context, site *provision.Site, node string) (console observe.Console, hold *state.Hold, err error) {
	r, closeState, err := c.Marker.Place.Read(ctx)
	if err != nil {
		return console, nil, err
	}
	defer closeState()
	ob, err := site.Observer(ctx, r)
	if err != nil {
		return console, nil, err
	}
	if hold, err = direct.HoldOf(ctx, r, node); err != nil {
		return console, nil, err
	}
	console, err = ob.FindConsole(r, node)
	return console, hold, err
}

// awaitOwner ends the console in this process once a process owns the state that continues with it: one that
// does a run, or stays. It ends with ctx.
func (c Config) awaitOwner(ctx context.Context, end context.CancelCauseFunc) {
	look := time.NewTicker(ownerLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		who, owned, err := control.FindOwner(c.Marker.Place.Folder)
		if err != nil || !owned || !who.Resident && !slices.Contains(runs, who.Command) {
			continue
		}
		if _, err := control.NewClient(c.Marker.Place.Folder).Version(ctx); err == nil { // it may wait for an approval until then
			end(direct.ErrMoved)
			return
		}
	}
}

// runs are the commands whose process reads the consoles of nodes. Others own the state for a moment, and
// leave a console to who has it.
var runs = []string{"apply", "rebuild", "test"}

// typist types while there is no owner. since becomes when typing began.
func (c Config) typist(site *provision.Site, console observe.Console, hold *state.Hold, since *time.Time) direct.Typist {
	h := &holdReader{site: onrecord.Site{State: c.Marker.Place.Folder, Inv: site.Inv, Now: c.Marker.Now}, last: hold, at: time.Now()}
	return direct.Typist{
		Now:      func() time.Time { return c.Marker.Now().UTC() },
		Identify: func(ctx context.Context, _ string) error { return console.CheckIdentity(ctx, site.Inv) },
		Hold:     h.read,
		Record: func(ctx context.Context, x state.Direct) error {
			if x.State == state.EffectIntended {
				*since = x.At
			}
			return c.record(ctx, x)
		},
	}
}

// record writes who types, in a moment without another owner.
func (c Config) record(ctx context.Context, x state.Direct) error {
	for by := time.Now().Add(recordWait); ; time.Sleep(recordTry) {
		err := c.Marker.Own(ctx, func(s state.Store, f state.Fence) error { return state.RecordDirect(ctx, s, f, x) })
		if _, owned := errors.AsType[onrecord.OwnedError](err); !owned || time.Now().After(by) {
			return err
		}
	}
}
