// Package apply executes a plan: every step when its needs are met and its
// resources are free, each under its deadline, each touch on the world journaled
// before and after. It never learns what it schedules. A failure has one root
// cause and stops only what depends on it; killing the process at any moment and
// resuming the plan converges.
package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
)

// Config is everything a run needs. Plan, Stages, Store and Fence must be set.
type Config struct {
	Plan   *plan.Plan
	Stages map[string]stage.Stage // by the name that steps call
	Store  state.Store
	Fence  state.Fence // from Store.Claim
	Bus    *event.Bus  // nil: nobody listens
	Clock  clock.Clock // nil: the wall clock

	// Capacity is how many units of each resource there are. A name that ends
	// in a slash stands for every resource that begins with it; the longest
	// match counts. A resource that a step uses and that is not here is an
	// error before anything starts.
	Capacity map[string]int
	Units    func(resource string, used, limit int) string // in words; nil: "3 of 8 in use"
	Parallel int                                           // steps at once; zero: 512
	Grace    time.Duration                                 // for a step to end after its deadline or cancellation; zero: 30 s

	EvidenceDir   string          // for Attach; made when it is not there
	Resume        bool            // go on with this very plan, which was begun before
	MaxErase      int             // nodes that the site lets one run erase; the plan's own word is not asked
	EraseApproved int             // erasures that a person approved, past MaxErase
	Approval      *state.Approval // recorded with the run; nil: nobody was asked
	Drain         <-chan struct{} // closed: start nothing new, let what runs end
}

// Run executes the plan of c and returns how every step and node ended. The
// error is about the run as a whole: it was refused before anything started, or
// its records could not be made durable. Failed steps are in the Result only.
func Run(ctx context.Context, c Config) (Result, error) {
	e, err := New(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return e.Run(ctx)
}

// Executor is one run of one plan. Hold, Release, Drain and Status are safe for
// concurrent use while Run runs.
type Executor struct {
	cfg    Config
	run    state.Run
	clock  clock.Clock
	ledger *ledger

	wg          sync.WaitGroup
	wake        chan struct{}   // holds one token when the loop has something to look at
	assignments chan assignment // from the loop to workers that have nothing to do
	cancel      context.CancelCauseFunc

	begun     chan struct{} // closed when the start of the run is recorded
	reporting sync.Mutex    // guards over, and is held while a finding of no step is recorded
	over      bool          // the outcome is being recorded

	holding sync.Mutex // one hold or release at a time: the state and the run agree on the last

	mu                sync.Mutex // guards all that follows, and the graph's tasks
	graph             *graph
	running           int
	stopping          bool // nothing new is started
	lookForStragglers bool // for late nodes
	drained           bool
	skips             []*task         // skipped, not journaled yet
	released          []string        // nodes that are to be taken up again
	found             []stage.Finding // of no step
}

// errHeld is the cause with which steps of a held node are cancelled.
var errHeld = errors.New("the node is held")

// New checks the plan against the state and the safety rules, and loads what an
// earlier run of it has done. It changes nothing.
func New(ctx context.Context, c Config) (*Executor, error) {
	if c.Clock == nil {
		c.Clock = clock.Wall{}
	}
	if c.Parallel <= 0 {
		c.Parallel = 512
	}
	if c.Grace <= 0 {
		c.Grace = 30 * time.Second
	}
	prior, err := checkPlan(ctx, c)
	if err != nil {
		return nil, err
	}
	g, err := newGraph(c)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now().UTC()
	e := &Executor{cfg: c, clock: c.Clock, graph: g, wake: make(chan struct{}, 1), assignments: make(chan assignment), begun: make(chan struct{}),
		run: state.Run{ID: runID(now), Plan: c.Plan.ID, Started: now, Resumes: prior.ID}}
	if c.Resume {
		e.run.Approvals = slices.Clone(prior.Approvals)
	}
	if c.Approval != nil {
		e.run.Approvals = append(e.run.Approvals, *c.Approval)
	}
	e.ledger, err = newLedger(ctx, c, e.run.ID)
	if err != nil {
		return nil, err
	}
	if c.Resume {
		err = e.replay(ctx)
	}
	return e, err
}

// runID names a run; names sort by time.
func runID(now time.Time) string {
	return fmt.Sprintf("%s-%s", now.Format("20060102T150405"), rand.Text()[:6])
}

// ID returns the name of this run.
func (e *Executor) ID() string { return e.run.ID }

// Run executes the plan. It is called once, and returns when every step that it
// started has ended.
func (e *Executor) Run(ctx context.Context) (Result, error) {
	ctx, e.cancel = context.WithCancelCause(ctx)
	defer e.cancel(nil)
	e.ledger.onFailure = e.abortRun
	if err := e.beginRun(ctx); err != nil {
		return Result{}, err
	}
	close(e.begun)
	looking, enough := context.WithCancel(ctx)
	if e.graph.anyMayLeaveStragglers() {
		e.wg.Go(func() { e.watchStragglers(looking) })
	}
	e.loop(ctx)
	enough()
	close(e.assignments)
	e.wg.Wait()
	return e.endRun()
}

// beginRun journals the start of the run. A run that does not resume gives the
// nodes that it works on a new chance.
func (e *Executor) beginRun(ctx context.Context) error {
	if err := e.ledger.recordRunStart(ctx, e.run, e.cfg.Plan, e.cfg.Resume); err != nil {
		return err
	}
	e.emit(event.Event{Type: event.RunStarted, Total: int64(len(e.graph.tasks)), Text: "plan " + e.cfg.Plan.ID})
	if a := e.cfg.Approval; a != nil {
		e.emit(approvalEvent(*a))
	}
	return nil
}

// approvalEvent is the event that tells of an approval.
func approvalEvent(a state.Approval) event.Event {
	data := map[string]string{"by": a.By, "host": a.Host, "how": string(a.How), "erase": strconv.Itoa(a.Erase), "sum": a.Sum}
	if a.MaxErase != nil {
		data["max_erase"] = strconv.Itoa(*a.MaxErase)
	}
	return event.Event{Type: event.Approved, Text: a.String(), Data: data}
}

// loop starts what can be started until nothing runs and nothing can be.
func (e *Executor) loop(ctx context.Context) {
	drain, done := e.cfg.Drain, ctx.Done()
	for {
		e.mu.Lock()
		var said []event.Event
		if len(e.skips) == 0 && len(e.released) > 0 {
			said = e.resumeReleased()
		}
		if e.lookForStragglers {
			e.lookForStragglers = false
			said = append(said, e.leaveStragglers()...)
		}
		e.startReady(ctx)
		idle := e.running == 0
		skips := e.skips
		e.skips = nil
		e.mu.Unlock()
		for _, v := range said {
			e.emit(v)
		}
		if len(skips) > 0 {
			e.ledger.recordSkips(skips)
			for _, t := range skips {
				kind := event.StepSkipped
				if t.state == failed {
					kind = event.StepFailed
				}
				e.emitStep(t, event.Event{Type: kind, Text: t.cause.Text})
			}
			continue
		}
		if idle {
			return
		}
		select {
		case <-e.wake:
		case <-drain:
			e.Drain()
			drain = nil
		case <-done:
			e.stopStarting()
			done = nil
		}
	}
}

// Drain starts nothing new and lets what runs end.
func (e *Executor) Drain() {
	e.mu.Lock()
	e.stopping, e.drained = true, true
	e.mu.Unlock()
	e.emit(event.Event{Type: event.Note, Text: "draining: steps that run are let end, nothing new is started"})
	e.wakeLoop()
}

func (e *Executor) stopStarting() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
}

// abortRun stops the run because its records cannot be made durable.
func (e *Executor) abortRun(err error) {
	e.cancel(err)
	e.wakeLoop()
}

func (e *Executor) wakeLoop() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// endRun journals the outcome and makes the result.
func (e *Executor) endRun() (Result, error) {
	e.reporting.Lock()
	e.over = true
	e.reporting.Unlock()
	e.mu.Lock()
	r := e.result()
	e.mu.Unlock()
	if err := e.ledger.failure(); err != nil {
		r.Outcome = state.RunInterrupted
		return r, fmt.Errorf("run %s stopped: its records cannot be written: %w", e.run.ID, err)
	}
	e.run.Ended, e.run.Outcome = e.clock.Now().UTC(), r.Outcome
	r.Ended = e.run.Ended
	if err := e.ledger.recordRunEnd(e.run); err != nil {
		return r, fmt.Errorf("run %s: %w", e.run.ID, err)
	}
	e.emit(event.Event{Type: event.RunEnded, Text: r.Outcome})
	return r, nil
}

// emit fills in the run and the time.
func (e *Executor) emit(v event.Event) {
	v.Run = e.run.ID
	if v.Time.IsZero() {
		v.Time = e.clock.Now().UTC()
	}
	e.cfg.Bus.Emit(v)
}

// emitStep fills in what is known of a step.
func (e *Executor) emitStep(t *task, v event.Event) {
	v.Stage, v.Step = t.step.Stage, string(t.step.ID)
	v.Node = nodeOf(t.step)
	e.emit(v)
}
