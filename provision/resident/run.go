// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// loan is the right of one command to change the state.
type loan struct {
	id string
	by control.Borrower
}

// running is a run, from its beginning on.
type running struct {
	by       control.Borrower
	id       string                    // of the run; "" while it is being checked
	from     uint64                    // number of its first event
	backend  *provision.Backend        // nil while it is being checked
	counters func() provision.Counters // nil while it is being checked
	cancel   context.CancelCauseFunc
	drain    func()        // closes drained
	drained  chan struct{} // nothing new is started
	done     chan struct{} // closed at its end
	end      control.RunEnd
}

// Borrow implements control.Lender.
func (r *Resident) Borrow(_ context.Context, b control.Borrower) (string, func(), error) {
	if b.Program != r.cfg.Version {
		return "", nil, errkind.New(errkind.Refused, "%s is ironrail %s, and %s is %s: they may not understand each other's plans", r.cfg.Owner.Command, r.cfg.Version, b.Command, b.Program).
			Do("Restart the one that is older, such as with `systemctl restart ironrail`.")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return "", nil, errEnding
	case r.run != nil:
		return "", nil, errkind.New(errkind.Refused, "%s, which %s began, is active: one run at a time", r.run.name(), r.run.by.Identity).
			Do("`ironrail status` says how far it is, `ironrail apply --attach` shows it.")
	case r.loan != nil:
		return "", nil, errkind.New(errkind.Refused, "%s works on the state: one at a time", r.loan.by.Identity).
			Do("Wait until it ends, or answer what it asks.")
	}
	l := &loan{rand.Text(), b}
	r.loan = l
	r.breakDrift() // somebody waits
	return l.id, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.loan == l {
			r.loan = nil
			r.endReview()
		}
	}, nil
}

var errEnding = errkind.New(errkind.Interrupted, "serve is ending").Do("Run the command again once it is up.")

// name is what a run is called.
func (x *running) name() string {
	if x.id == "" {
		return "a run that is being checked"
	}
	return "run " + x.id
}

// check refuses what is not asked by the borrower; r.mu is held.
func (r *Resident) check(id string) error {
	switch {
	case r.ended:
		return errEnding
	case r.loan == nil || r.loan.id != id:
		return errkind.New(errkind.Refused, "this command does not have the state any more").Do("Run it again.")
	}
	return nil
}

// checkNow is check for who does not hold r.mu.
func (r *Resident) checkNow(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check(id)
}

// Append implements control.Lender.
func (r *Resident) Append(ctx context.Context, id string, b state.Batch) (uint64, error) {
	r.mu.Lock()
	err := r.check(id)
	if err == nil && r.run != nil {
		err = errkind.New(errkind.Refused, "%s is active", r.run.name())
	}
	r.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return r.cfg.Store.Append(ctx, r.cfg.Fence, b)
}

// Review implements control.Lender.
func (r *Resident) Review(_ context.Context, id string, q control.ReviewRequest, sealed io.Reader) error {
	r.mu.Lock()
	site, err := r.site, r.check(id)
	r.mu.Unlock()
	if err != nil || r.cfg.Reviews == nil {
		return err
	}
	p, err := openPlan(site, q.Sum, sealed)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.check(id); err == nil && r.run == nil {
		r.cfg.Reviews.Review(p, q.Expected)
	}
	return err
}

// endReview shows no plan any more; r.mu is held.
func (r *Resident) endReview() {
	if r.cfg.Reviews != nil {
		r.cfg.Reviews.ReviewOver()
	}
}

// Begin implements control.Lender. The run goes on whatever becomes of who asked.
func (r *Resident) Begin(ctx context.Context, id string, q control.RunRequest, sealed io.Reader) (control.RunBegun, error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	err := r.check(id)
	var by control.Borrower
	if err == nil {
		by = r.loan.by
		if r.cfg.Reviews != nil {
			r.cfg.Reviews.ReviewApproved()
		}
	}
	r.mu.Unlock()
	if err != nil {
		return control.RunBegun{}, err
	}
	begun, err := r.launch(ctx, by, func() error { return r.checkNow(id) }, func(ctx context.Context) (*provision.Site, provision.RunOptions, error) {
		site, _, err := r.cfg.Load(true)
		if err != nil {
			return nil, provision.RunOptions{}, err
		}
		p, err := r.admit(ctx, site, q, sealed)
		return site, provision.RunOptions{Plan: p, Resume: q.Resume, Approval: q.Approval}, err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loan == nil || r.loan.id == id {
		r.endReview()
	}
	return begun, err
}

// prepare makes or reads what a run is to do, and checks it.
type prepare func(context.Context) (*provision.Site, provision.RunOptions, error)

// launch begins a run for somebody, unless still says that it is not wanted any more; r.turn is held.
func (r *Resident) launch(ctx context.Context, by control.Borrower, still func() error, prepared prepare) (control.RunBegun, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	drain := make(chan struct{})
	x := &running{by: by, done: make(chan struct{}), cancel: cancel, drained: drain, drain: sync.OnceFunc(func() { close(drain) })}
	r.mu.Lock()
	var err error
	switch {
	case r.run != nil:
		err = errkind.New(errkind.Refused, "%s is active", r.run.name())
	case r.works():
		err = errkind.New(errkind.Refused, "an operator's command works on nodes at this moment").Do("Run it again once that has ended; `ironrail events` shows it.")
	default:
		r.run = x
	}
	r.mu.Unlock()
	if err != nil {
		cancel(nil)
		return control.RunBegun{}, err
	}
	begun, err := r.begin(life, x, still, prepared)
	if err != nil {
		if life.Err() != nil {
			err = context.Cause(life) // it was stopped
		}
		cancel(nil)
		r.mu.Lock()
		r.run, x.end = nil, control.NewRunEnd(apply.Result{}, err)
		r.mu.Unlock()
		close(x.done)
		r.settle(context.WithoutCancel(ctx))
	}
	return begun, err
}

// begin checks a plan and begins to do it, unless whoever asked is gone by then: a Ctrl-C before
// the first step means that there is none; r.turn is held.
func (r *Resident) begin(ctx context.Context, x *running, still func() error, prepared prepare) (begun control.RunBegun, err error) {
	site, o, err := prepared(ctx)
	if gone := still(); gone != nil {
		err = gone
	}
	if err != nil {
		return begun, err
	}
	if r.cfg.Before != nil {
		r.cfg.Before(ctx)
	}
	notifier, err := site.Notifier(r.note)
	if err != nil {
		return begun, err
	}
	r.awaitDrift()
	if err := r.closeIdle(ctx); err != nil {
		return begun, err
	}
	if err := still(); err != nil { // the copy of the state, consoles and the like may have taken long
		return begun, err
	}
	o.Store, o.Fence, o.Bus, o.Drain = r.cfg.Store, r.cfg.Fence, r.cfg.Bus, x.drained
	if o.Approval != nil {
		o.EraseApproved = o.Approval.Erase
	}
	from := r.cfg.Bus.Newest() + 1
	r.closeBoot() // the run has its own, of the site as its plan wants it, which read what comes from now on
	run, err := site.Begin(ctx, o)
	if err != nil {
		return begun, err
	}
	r.mu.Lock()
	r.site, x.id, x.from = site, run.ID(), from
	x.backend, x.counters = run.Backend(r.cfg.Bus, r.cfg.Owner), run.Counters
	r.mu.Unlock()
	noticed := make(chan struct{})
	go func() {
		defer close(noticed)
		if !notifier.Empty() {
			notifier.Follow(ctx, untilEnd(r.cfg.Bus.Subscribe(from)))
		}
	}()
	go r.do(ctx, x, run, noticed)
	return control.RunBegun{Run: x.id, From: from}, nil
}

// admit reads a plan, and checks that it is the one that was approved and still fits. What
// it needs of the state is checked when the run begins.
func (r *Resident) admit(ctx context.Context, site *provision.Site, q control.RunRequest, sealed io.Reader) (*plan.Plan, error) {
	p, err := openPlan(site, q.Sum, sealed)
	if err != nil {
		return nil, err
	}
	if q.Approval == nil || q.Approval.Sum != p.Sum {
		return nil, errNotThat
	}
	if q.Resume {
		left, _, err := state.ReadUnfinishedPlan(ctx, r.cfg.Store)
		if err != nil {
			return nil, err
		}
		if left == nil || left.ID != p.ID {
			return nil, errkind.New(errkind.Refused, "plan %s is not the one that was interrupted", p.ID).Do("Run `ironrail apply` again.")
		}
	}
	why, err := site.Outdated(ctx, r.cfg.Store, p)
	if err == nil && why != "" {
		err = errkind.New(errkind.Refused, "plan %s no longer fits the site's files: %s", p.ID, why).Do("Plan again, look at what is new, and apply that.")
	}
	return p, err
}

// errNotThat refuses a plan that is another one than was said.
var errNotThat = errkind.New(errkind.Refused, "the plan is not the one that was approved")

// openPlan reads a plan that a borrower sends, whose digest is sum.
func openPlan(site *provision.Site, sum string, sealed io.Reader) (*plan.Plan, error) {
	p, problem, err := plan.Open(sealed, site.Keys.Plan)
	if err == nil && problem != "" {
		err = errors.New(problem)
	}
	if err != nil {
		return nil, errkind.New(errkind.Refused, "the plan is not taken: %w", err)
	}
	if p.Sum, err = p.Digest(); err == nil && p.Sum != sum {
		err = errNotThat
	}
	return p, err
}

// do does a run to its end, and opens what is idle again.
func (r *Resident) do(ctx context.Context, x *running, run *provision.Running, noticed <-chan struct{}) {
	res, err := run.Run(ctx)
	r.cfg.Bus.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("run %s has ended: %s", x.id, res.Outcome), Data: map[string]string{endOf: x.id}})
	<-noticed
	if r.cfg.After != nil {
		r.cfg.After(context.WithoutCancel(ctx), run.Site())
	}
	x.cancel(nil)
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	x.end = control.NewRunEnd(res, err)
	r.run, r.last, r.counted = nil, x, r.counted.Plus(run.Counters())
	r.watch.lookAfterRun(time.Now())
	r.restart.takeRun(run.Booted())
	r.mu.Unlock()
	r.settle(context.WithoutCancel(ctx))
	close(x.done)
}

// endOf is the key of an event's data by which the end of a run is known.
const endOf = "end-of-run"

// IsEnd reports whether an event is the last of a run.
func IsEnd(e event.Event, run string) bool { return e.Type == event.Note && e.Data[endOf] == run }

// untilEnd yields the events of a run, and then io.EOF.
func untilEnd(s *event.Subscription) func(context.Context) (event.Event, error) {
	over := false
	return func(ctx context.Context) (event.Event, error) {
		if over {
			return event.Event{}, io.EOF
		}
		e, err := s.Next(ctx)
		over = e.Data[endOf] != ""
		return e, err
	}
}

// settle opens what is idle when a run has ended or did not begin; r.turn is held.
func (r *Resident) settle(ctx context.Context) {
	r.mu.Lock()
	ended, there, before := r.ended, r.idle != nil, r.site
	r.mu.Unlock()
	if ended || there {
		return
	}
	if err := r.openIdle(ctx); err != nil { // somebody edits the files: nodes are answered as before
		again := r.openSite(ctx, before, notInUse(err))
		if again != nil {
			r.mu.Lock()
			r.trouble = errkind.Line(again)
			r.mu.Unlock()
			return
		}
	}
	_ = r.openBoot(ctx) // it is said by Status
}

// Result implements control.Lender.
func (r *Resident) Result(ctx context.Context, run string) (control.RunEnd, error) {
	r.mu.Lock()
	x := r.run
	if x == nil || run != "" && x.id != run {
		x = r.last
	}
	r.mu.Unlock()
	if x == nil || run != "" && x.id != run {
		return control.RunEnd{}, errkind.New(errkind.NotFound, "%s has no run %s", r.cfg.Owner.Command, strings.TrimSpace(run)).Do("`ironrail status` says how the last one ended.")
	}
	select {
	case <-x.done:
		return x.end, nil
	case <-ctx.Done():
		return control.RunEnd{}, context.Cause(ctx)
	}
}

// active is the run that is active, from the moment on at which its plan is checked; nil: there is none.
func (r *Resident) active() *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.run
}

// Wait waits for the end of the run that is active.
func (r *Resident) Wait() {
	if x := r.active(); x != nil {
		<-x.done
	}
}

// Drain implements control.Backend.
func (r *Resident) Drain(context.Context) error {
	x := r.active()
	if x == nil {
		return errNoRun
	}
	x.drain()
	return nil
}

// Stop implements control.Lender.
func (r *Resident) Stop(context.Context) error {
	x := r.active()
	if x == nil {
		return errNoRun
	}
	x.cancel(errkind.New(errkind.Interrupted, "stopped by the operator"))
	return nil
}

var errNoRun = errkind.New(errkind.Refused, "no run is active")
