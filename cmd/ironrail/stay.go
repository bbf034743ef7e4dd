// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/internal/systemd"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/resident"
)

// residentCommand is the command whose process stays and lends the state.
const residentCommand = "serve"

// stay owns the site, which own takes, until it is stopped.
func (a *app) stay(ctx context.Context, f serveFlags, own func(context.Context) (ownership, error)) (err error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	manager := systemd.Find(a.environ, os.Getpid())
	if a.kept == nil { // else a standby has taken them
		a.keepSockets(manager)
	}
	page, err := a.openPage(f.Listen)
	if err != nil {
		return err
	}
	if _, _, err := a.loadAgain(false); err != nil { // also makes the keys of a site that has none, for which nobody may own the state
		return errors.Join(err, page.Close())
	}
	o, err := own(ctx)
	if err != nil {
		return errors.Join(err, page.Close())
	}
	defer o.giveBack()
	bus := event.NewBus(ringSize)
	c := a.residentConfig(f, o, bus)
	c.Reviews = page
	r, err := resident.Open(ctx, c)
	if err != nil {
		return errors.Join(err, page.Close())
	}
	page.CountServices(r.Counters)
	socket, err := o.Listen()
	if err != nil {
		return errors.Join(err, page.Close(), r.Close(ctx))
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	serving := func(what string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				end(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	serving("control socket", func() error { return control.Serve(life, socket, r, thisVersion()) })
	serving("state", func() error { return o.awaitLoss(life) })
	serving("page", func() error { return page.Serve(life) })
	log := &event.Log{Dir: filepath.Join(a.stateDir(), "events"), Trouble: func(err error) { a.sayf("warning: events are not kept: %v", err) }}
	wg.Go(func() { _ = log.Follow(life, bus.Subscribe(0)) }) // it has said its trouble
	wg.Go(func() { r.Serve(life, a.signs(life, manager)) })
	if err = a.sayPage(page); err == nil {
		a.sayf("serve owns the site. It %s.", strings.Join(r.Serves(), "; "))
		a.notify(ctx, manager, systemd.Ready)
		err = a.awaitStop(ctx, life, signals, r)
	}
	a.notify(ctx, manager, systemd.Stopping)
	err = errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	end(nil)
	bus.Close()
	wg.Wait()
	return err
}

// keepSockets takes the sockets that a manager of services has handed over.
func (a *app) keepSockets(m systemd.Manager) {
	a.kept = sockets.Keep(m, m.Inherited(), func(err error) { a.sayf("warning: %v", err) })
}

// ownToStay takes the state for a process that lends it.
func (a *app) ownToStay(ctx context.Context) (ownership, error) {
	return a.ownAlone(ctx, residentCommand)
}

// awaitLoss returns an error when the lease of the ownership ends, and nil when ctx does.
func (o ownership) awaitLoss(ctx context.Context) error {
	select {
	case <-o.store.Lease(o.fence).Ended(): // nil: never
		return state.LeaseEnded()
	case <-ctx.Done():
		return nil
	}
}

// residentConfig is what the owner that stays is opened with.
func (a *app) residentConfig(f serveFlags, o ownership, bus *event.Bus) resident.Config {
	return resident.Config{Store: o.store, Fence: o.fence, Owner: o.Identity, Bus: bus, Boot: resident.Boot(f.boot), Kept: a.kept, Drift: f.drift, Version: thisVersion(),
		Load: a.loadAgain,
		Before: func(ctx context.Context) {
			if s, ok := o.store.(*state.Bolt); ok {
				a.copyDaily(ctx, s)
			}
		},
		After: func(ctx context.Context, site *provision.Site) { a.saveReport(ctx, site, o.store) }}
}

// loadAgain opens the site as its files are now, without showing what is wrong with them.
func (a *app) loadAgain(strict bool) (*provision.Site, *inventory.Sources, error) {
	inv, diags, _ := a.loadInventory()
	if !inventory.Complete(diags) || strict && withoutGaps(diags).HasErrors() {
		return nil, inv.Sources, hasErrors(diags)
	}
	agent, err := agentProgram()
	if err != nil {
		return nil, inv.Sources, err
	}
	site, err := a.openSite(inv, provision.Options{Agent: agent, Kept: a.kept})
	return site, inv.Sources, err
}

// notify says something to the manager of services; one that does not listen is no reason to stop.
func (a *app) notify(ctx context.Context, m systemd.Manager, states ...string) {
	if err := m.Notify(context.WithoutCancel(ctx), states...); err != nil {
		a.sayf("warning: %v", err)
	}
}

// answerMost is how long the owner may take to answer itself.
const answerMost = 10 * time.Second

// signs returns what is called each time that the owner's own loop has gone round: it gives
// the manager of services a sign of life when it is due, once the control socket has answered
// with where all nodes stand.
func (a *app) signs(ctx context.Context, m systemd.Manager) func() {
	every := m.SignEvery()
	c, last := control.NewClient(a.stateDir()), time.Time{}
	return func() {
		if every == 0 || time.Since(last) < every/2 {
			return
		}
		ask, cancel := context.WithTimeout(ctx, min(answerMost, every))
		defer cancel()
		if _, err := c.Status(ask); err == nil || ctx.Err() != nil {
			last = time.Now()
			a.notify(ctx, m, systemd.Alive)
		}
	}
}

// awaitStop waits for a signal, or the end of life, and for the run that is active then.
func (a *app) awaitStop(ctx, life context.Context, signals <-chan os.Signal, r *resident.Resident) error {
	select {
	case <-ctx.Done():
		return nil
	case <-life.Done():
		return context.Cause(life)
	case s := <-signals:
		if s != os.Interrupt || r.Drain(ctx) != nil {
			return nil // what runs is stopped
		}
	}
	a.sayf("Running steps are let end and nothing new starts; serve ends then. Ctrl-C again stops at once.")
	ended := make(chan struct{})
	go func() {
		r.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-signals:
		a.sayf("Stopping at once.")
	case <-life.Done():
	}
	return nil
}
