// SPDX-License-Identifier: Apache-2.0

// Package direct does what an operator asks of nodes outside of a plan, through their BMCs: power, the
// boot device, the light that locates a chassis; and the outlets of nodes whose BMCs are dead.
// It keeps the rules that a run keeps: a node on hold is left alone, and so is a protected one, one
// that a run has work for, and one under jobs; who the BMC says that it is comes before any effect;
// no more nodes are switched on at a time than their circuits bear; the intent is durable before the
// effect, so that a command that was killed is not repeated blindly; and what was done is read back.
//
// A Desk serves one site for as long as its process owns the state: plan.go says what would be done,
// work.go does it, verb.go is the table of what there is to do.
package direct

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/pdu"
)

// BMC is what direct work asks of a BMC; *bmc.Handle implements it.
type BMC interface {
	bmc.Power
	bmc.Identifier
	bmc.BootDevice
	bmc.Locator
	ShutDown(context.Context) (bmc.Outcome, error)
}

// Limits are the resources of a run; *apply.Executor implements it.
type Limits interface {
	// Borrow claims all units of all uses, in line behind earlier claims. wait returns once they
	// are granted; end gives them back, or leaves the line, and is called once.
	Borrow(uses []plan.Use) (wait func(context.Context) error, end func(), err error)
}

// Config is what a desk works with. All but Limits, NextStep and Bus must be set.
type Config struct {
	Inv      *inventory.Inventory
	BMC      func(node string) (BMC, error)
	Jobs     func(ctx context.Context, node string) ([]handover.Job, error)                                           // as handover.Stage.Jobs
	JobsOf   func(ctx context.Context, nodes []string) func(ctx context.Context, node string) ([]handover.Job, error) // as handover.Stage.JobsOf; nil: each node is asked for by itself
	Outlets  func(p *inventory.PDU) (pdu.Outlets, error)
	Store    state.Store
	Fence    state.Fence
	Capacity map[string]int                // of circuits, as of a run: what is switched on at a time
	Limits   Limits                        // the run's, of that capacity; nil: the desk has its own
	NextStep func(node string) plan.StepID // what a run still has for a node; nil: there is no run
	Bus      *event.Bus                    // nil: nobody listens
	Clock    clock.Clock
}

// Desk plans and does direct work. It is safe for concurrent use.
type Desk struct {
	cfg    Config
	inrush *power.Inrush
	plugs  func() map[plug][]owner // listed when they are first asked for

	life context.Context // of consoles that are typed at: until Close
	end  context.CancelFunc

	mu     sync.Mutex // guards what follows
	plans  map[string]*shown
	active map[string]context.CancelCauseFunc // of the nodes under work
	closed bool
	wg     sync.WaitGroup // work under way
}

// shown is a plan that somebody was shown and may have done.
type shown struct {
	control.DirectPlan
	request control.DirectRequest
	jobs    *jobReader
}

// NewDesk returns a desk.
func NewDesk(c Config) *Desk {
	if c.Limits == nil {
		c.Limits = apply.NewLimits(c.Capacity)
	}
	life, end := context.WithCancel(context.Background())
	return &Desk{life: life, end: end, cfg: c, inrush: power.NewInrush(c.Inv), plugs: sync.OnceValue(func() map[plug][]owner { return listPlugs(c.Inv) }), plans: map[string]*shown{}, active: map[string]context.CancelCauseFunc{}}
}

// keep keeps a plan for whoever has it done, and forgets those that are too old.
func (d *Desk) keep(p control.DirectPlan, q control.DirectRequest, jobs *jobReader) control.DirectPlan {
	p.ID = rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, x := range d.plans {
		if p.At.Sub(x.At) > control.DirectKept {
			delete(d.plans, id)
		}
	}
	d.plans[p.ID] = &shown{p, q, jobs}
	return p
}

// take takes a plan out, so that it is done once, and counts the work that begins.
func (d *Desk) take(id string) (*shown, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.plans[id]
	delete(d.plans, id)
	switch {
	case d.closed:
		return nil, errkind.New(errkind.Interrupted, "the process that owns the state is ending; nothing was done").Do("Run the command again.")
	case p == nil || d.cfg.Clock.Now().Sub(p.At) > control.DirectKept:
		return nil, errkind.New(errkind.Refused, "this was shown too long ago, or was done already").Do("Run the command again and read what it shows.")
	}
	d.wg.Add(1)
	return p, nil
}

// Stop stops what is under way on a node: it was put on hold.
func (d *Desk) Stop(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stop := d.active[node]; stop != nil {
		stop(errHeld)
	}
}

var errHeld = errkind.New(errkind.Refused, "the node was put on hold")

// IsActive reports whether work is under way on a node.
func (d *Desk) IsActive(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active[node] != nil
}

// begin makes a node this work's alone, until the lease of the state ends at the latest. Its end function
// is to be called.
func (d *Desk) begin(ctx context.Context, node string) (context.Context, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active[node] != nil {
		return nil, nil, errkind.New(errkind.Refused, "another command works on %s at this moment", node).Do("Wait until it ends; `ironrail why " + node + "` shows it.")
	}
	ctx, stop := context.WithCancelCause(ctx)
	d.active[node] = stop
	go func() { // ends with the work
		select {
		case <-d.cfg.Store.Lease(d.cfg.Fence).Ended(): // nil: never
			stop(state.LeaseEnded())
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		stop(nil)
		delete(d.active, node)
	}, nil
}

// Close lets what is under way end and begins nothing any more.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	if len(d.active) > 0 {
		d.cfg.Bus.Emit(event.Event{Type: event.Note, Text: "waits for what operators began on " + strings.Join(slices.Sorted(maps.Keys(d.active)), ", ")})
	}
	d.mu.Unlock()
	d.end()
	d.wg.Wait()
}

// now is the time, as it is recorded.
func (d *Desk) now() time.Time { return d.cfg.Clock.Now().UTC() }
