// SPDX-License-Identifier: Apache-2.0

// Package resident is the owner of a site that stays: it answers nodes that boot, commands
// and the web page while no run is active, lends the state to one command at a time, and
// does the plans that these begin. By itself it begins one thing: to start nodes again whose
// system was in memory.
package resident

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// Boot says when nodes that boot are answered while no run is active.
type Boot string

// The choices.
const (
	BootAuto  Boot = "auto"  // once a run was begun, where the addresses of the controller are on this machine
	BootYes   Boot = "yes"   // always; it is an error where that cannot be
	BootNever Boot = "never" // by runs alone
)

// How often is looked whether the site's files have changed, and how long boot services that
// failed are left before they are opened again.
const (
	lookEach  = 2 * time.Second
	bootAgain = 15 * time.Second
)

// Config is what a Resident is opened with.
type Config struct {
	Store state.Store
	Fence state.Fence
	Owner control.Identity
	Bus   *event.Bus // for as long as the Resident lives
	Boot  Boot
	Kept  *sockets.Kept // that Load gives its sites; nil: sockets are closed with their services
	Drift time.Duration // how often the site is looked at for drift while nothing is done; 0: never
	// Load opens the site as its files are now. strict refuses files with errors, as for a
	// plan; else what can be looked at is enough. Also beside an error it returns what it has read.
	Load    func(strict bool) (*provision.Site, *inventory.Sources, error)
	Reviews Reviewer // shows plans that wait for their approval; nil: nobody does
	Version string   // of this program
	// Before is called before a run begins, such as to keep a copy of the state; nil: nothing is.
	Before func(context.Context)
	// After is called when a run has ended, with the site as its plan had it, such as to write its
	// report; nil: nothing is.
	After func(context.Context, *provision.Site)
}

// Reviewer shows a plan that waits for its approval. Its methods return at once, and call
// nothing of the Resident.
type Reviewer interface {
	Review(p *plan.Plan, expected []string) // that has its Sum; in place of the one before
	ReviewApproved()                        // its run is being begun
	ReviewOver()                            // its run has begun, or will not
}

// Resident owns the state of a site. It implements control.Backend and all that goes with it,
// and is safe for concurrent use.
type Resident struct {
	cfg Config

	turn sync.Mutex // held while what is idle, or a run, is opened or closed

	mu      sync.Mutex // guards what follows
	idle    *idle
	trouble string             // why the site's files, as they are now, are not in use
	files   *inventory.Sources // that were read last; nil: they are read anew
	site    *provision.Site    // that was opened last
	loan    *loan
	run     *running // nil: none is active
	last    *running // that ended last; nil: none did
	boot    booting
	watch   watch
	restart restart
	ended   bool
	counted provision.Counters // of services and runs that have ended
}

// idle is what answers while no run is active.
type idle struct {
	direct *provision.Direct
	site   *provision.Site
	users  sync.WaitGroup  // requests under way
	work   atomic.Int32    // of them, those that do direct work
	life   context.Context // until it is closed
	end    context.CancelCauseFunc
}

// Open opens the site. The caller owns the state, and calls Serve or Close.
func Open(ctx context.Context, c Config) (*Resident, error) {
	r := &Resident{cfg: c}
	r.watch.begin(c.Drift, time.Now())
	if err := r.openIdle(ctx); err != nil {
		return nil, err
	}
	if err := r.openBoot(ctx); err != nil && c.Boot == BootYes {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// Close ends what is idle. A run that is active is stopped at once, and waited for.
func (r *Resident) Close(ctx context.Context) error {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	_ = r.Stop(ctx) // there may be no run
	r.Wait()
	r.awaitDrift()
	r.turn.Lock()
	defer r.turn.Unlock()
	r.closeBoot()
	return r.closeIdle(ctx)
}

// Serve looks after the boot services and the site's files until ctx is done. beat is called
// each time that this has gone round.
func (r *Resident) Serve(ctx context.Context, beat func()) {
	for each := time.NewTicker(lookEach); ; {
		select {
		case <-ctx.Done():
			each.Stop()
			return
		case <-each.C:
		}
		r.refresh(ctx)
		beat()
	}
}

// refresh opens what is idle anew where the site's files have changed, and boot services that
// are not up where they should be.
func (r *Resident) refresh(ctx context.Context) {
	if !r.turn.TryLock() { // a run begins or ends
		return
	}
	defer r.turn.Unlock()
	r.mu.Lock()
	active, files, idle, due := r.run != nil || r.works(), r.files, r.idle, r.boot.isDue()
	r.mu.Unlock()
	switch {
	case active:
	case idle == nil || files.HaveChanged():
		r.reopen(ctx)
	case due:
		_ = r.openBoot(ctx) // it is said by Status
	case r.restartNodes(ctx):
	default:
		r.lookAround(ctx)
	}
}

// works reports whether direct work is under way while no run is active; r.mu is held.
func (r *Resident) works() bool { return r.idle != nil && r.idle.work.Load() > 0 }

// reopen replaces what is idle; r.turn is held. Files that cannot be used leave what was.
func (r *Resident) reopen(ctx context.Context) {
	r.mu.Lock()
	old := r.idle // answers until the new one does
	r.mu.Unlock()
	if err := r.openIdle(ctx); err != nil {
		r.mu.Lock()
		r.trouble = notInUse(err)
		r.mu.Unlock()
		return
	}
	if old != nil {
		_ = old.close(ctx)
	}
	r.closeBoot()
	_ = r.openBoot(ctx) // it is said by Status
}

// notInUse says that the site's files cannot be used.
func notInUse(err error) string {
	return "the site's files have changed and are not in use yet: " + errkind.Line(err)
}

// openIdle opens what is idle, of the site's files as they are now.
func (r *Resident) openIdle(ctx context.Context) error {
	site, files, err := r.cfg.Load(false)
	r.mu.Lock()
	r.files = files // those that are wrong are not read again before they change
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.openSite(ctx, site, "")
}

// openSite opens what is idle, of a site; trouble says why the files, as they are now, are not in use.
func (r *Resident) openSite(ctx context.Context, site *provision.Site, trouble string) error {
	d, err := site.OpenDirect(ctx, r.cfg.Store, r.cfg.Fence, r.cfg.Bus, r.cfg.Owner)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle, r.site, r.trouble = &idle{direct: d, site: site}, site, trouble
	r.idle.life, r.idle.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return nil
}

// take takes what is idle away from further requests.
func (r *Resident) take() *idle {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.idle
	r.idle = nil
	return old
}

// closeIdle closes what is idle; r.turn is held.
func (r *Resident) closeIdle(ctx context.Context) error {
	if old := r.take(); old != nil {
		return old.close(ctx)
	}
	return nil
}

// close ends consoles and questions, lets direct work that has begun end, and gives sessions back.
func (i *idle) close(ctx context.Context) error {
	i.end(errkind.New(errkind.Interrupted, "a run begins, or the site's files have changed"))
	i.users.Wait()
	return i.direct.Close(ctx)
}

// Counters are the counts of all runs and boot services since Open.
func (r *Resident) Counters() provision.Counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.counted
	if r.boot.up != nil {
		sum = sum.Plus(r.boot.up.Counters())
	}
	if r.run != nil && r.run.counters != nil {
		sum = sum.Plus(r.run.counters())
	}
	return sum
}

// note says something to who follows.
func (r *Resident) note(text string) {
	r.cfg.Bus.Emit(event.Event{Type: event.Note, Text: text})
}

// report says what the boot services find while no run is active.
func (r *Resident) report(_ context.Context, f stage.Finding) error {
	r.cfg.Bus.Emit(event.Event{Type: event.FindingMade, Text: f.Cause, Data: map[string]string{"action": f.Action}})
	return nil
}
