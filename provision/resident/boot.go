// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// booting are the boot services while no run is active. Resident.mu guards it.
type booting struct {
	up    *provision.Booting // nil: they are not up
	end   func()             // ends them, and waits for that
	why   string             // they are not up
	again time.Time          // when they are opened again; zero: not by time
}

// isDue reports whether services that are not up are to be opened again.
func (b *booting) isDue() bool {
	return b.up == nil && !b.again.IsZero() && !time.Now().Before(b.again)
}

// openBoot opens the boot services where they are wanted; r.turn is held, or nobody else has r yet.
func (r *Resident) openBoot(ctx context.Context) error {
	b, err := r.tryBoot(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boot.up != nil {
		return nil
	}
	if err != nil {
		r.cfg.Kept.Drop() // what waits in them would wait for nobody
		r.boot = booting{why: errkind.Line(err), again: time.Now().Add(bootAgain)}
		if r.cfg.Boot == BootNever {
			r.boot.again = time.Time{}
		}
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	r.boot = booting{up: b, end: func() { stop(); <-done }}
	go func() {
		defer close(done)
		if err := b.Serve(serving, r.report); err != nil {
			r.failBoot(b, err)
		}
	}()
	return nil
}

// tryBoot opens the services, or says why they are not.
func (r *Resident) tryBoot(ctx context.Context) (*provision.Booting, error) {
	r.mu.Lock()
	here := r.idle
	r.mu.Unlock()
	switch {
	case r.cfg.Boot == BootNever:
		return nil, errkind.New(errkind.Unsupported, "--boot never: they are there while a run is active")
	case here == nil:
		return nil, errkind.New(errkind.Interrupted, "a run begins or ends")
	}
	if r.cfg.Boot == BootAuto {
		_, version, err := state.Get[state.Run](ctx, r.cfg.Store, state.LastRun)
		if err != nil {
			return nil, err
		}
		if version == state.Absent {
			return nil, errkind.New(errkind.Unsupported, "no plan of this site was applied from here yet (--boot yes answers before)")
		}
	}
	return here.site.OpenBooting(ctx, r.cfg.Store, r.cfg.Bus)
}

// failBoot takes services that have failed away, and lets them be opened again.
func (r *Resident) failBoot(b *provision.Booting, err error) {
	r.cfg.Kept.Drop() // they may be what is broken
	r.note("the boot services have failed, and are opened again: " + errkind.Line(err))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boot.up == b {
		r.counted = r.counted.Plus(b.Counters())
		r.restart.noteBoots(b.Booted())
		r.boot = booting{why: errkind.Line(err), again: time.Now().Add(bootAgain)}
	}
}

// closeBoot ends the boot services, if they are up.
func (r *Resident) closeBoot() {
	r.mu.Lock()
	up, end := r.boot.up, r.boot.end
	r.boot = booting{}
	if up != nil {
		r.counted = r.counted.Plus(up.Counters())
	}
	r.mu.Unlock()
	if end != nil {
		end()
	}
	if up != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.restart.noteBoots(up.Booted())
	}
}

// describeBoot says whether nodes that boot are answered; r.mu is held.
func (r *Resident) describeBoot() string {
	switch {
	case r.run != nil:
		return "the boot services are those of the run"
	case r.boot.up != nil:
		return "answers nodes that boot: DHCP, TFTP, " + r.boot.up.Root() + " and the agent API"
	}
	return "does not answer nodes that boot: " + r.boot.why
}
