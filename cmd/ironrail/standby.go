// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/internal/systemd"
	"github.com/ironrail/ironrail/provision/onrecord"
)

// standbyPause is between two tries to be the owner where others were first.
const standbyPause = time.Second

// standbyKeeps is for how long a standby keeps the sockets that a former process has handed over: longer than
// a lease.
const standbyKeeps = time.Minute

// dropLate closes sockets in a while, unless stop is called before: a standby serves none, and what has waited in
// them for long is not answered as if it were asked now.
func dropLate(k *sockets.Kept, in time.Duration) (stop func()) {
	t := time.AfterFunc(in, k.Drop)
	return func() { t.Stop() }
}

// standBy owns the site as soon as no other controller does, and shows its page until then.
func (a *app) standBy(ctx context.Context, f serveFlags) error {
	o, stopped, err := a.awaitOwnership(ctx, f)
	if stopped || err != nil {
		return err
	}
	taken := false
	err = a.stay(ctx, f, func(context.Context) (ownership, error) {
		taken = true
		return o, nil
	})
	if !taken {
		o.giveBack()
	}
	return err
}

// awaitOwnership serves the page until it has taken the state; stopped: the process is to end
// before.
func (a *app) awaitOwnership(ctx context.Context, f serveFlags) (o ownership, stopped bool, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	page, err := a.openPage(f.Listen)
	if err != nil {
		return o, false, err
	}
	life, end := context.WithCancelCause(ctx)
	manager := systemd.Find(a.environ, os.Getpid())
	a.keepSockets(manager)
	defer dropLate(a.kept, standbyKeeps)()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := page.Serve(life); err != nil {
			end(err)
		}
	})
	wg.Go(func() { a.signStandby(life, manager) })
	if err = a.sayPage(page); err == nil {
		a.sayf("serve is a standby: it owns the site as soon as no other controller does.")
		a.notify(ctx, manager, systemd.Ready)
		o, err = a.ownWhenFree(life)
	}
	end(nil)
	wg.Wait()
	if ctx.Err() != nil { // also once the state was taken, while the page was closed: nobody else hears of that signal
		if err == nil {
			o.giveBack()
		}
		return o, true, nil
	}
	return o, false, err
}

// ownWhenFree takes the state once nobody else has it.
func (a *app) ownWhenFree(ctx context.Context) (o ownership, err error) {
	for {
		if err = a.place().AwaitFree(ctx); err != nil {
			return o, err
		}
		if _, _, err = a.loadAgain(false); err != nil { // also makes keys
			return o, err
		}
		o, err = a.ownToStay(ctx)
		if _, owned := errors.AsType[onrecord.OwnedError](err); !owned {
			return o, err
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(standbyPause):
		}
	}
}

// signStandby gives the manager of services its signs of life until ctx is done.
func (a *app) signStandby(ctx context.Context, m systemd.Manager) {
	every := m.SignEvery()
	if every == 0 {
		return
	}
	for tick := time.NewTicker(every / 2); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			a.notify(ctx, m, systemd.Alive)
		}
	}
}
