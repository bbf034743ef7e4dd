// SPDX-License-Identifier: Apache-2.0

// Package apply executes a plan: every step when its needs are met and its resources
// are free, each under its deadline, each side effect journaled before and after. It
// does not know what the steps do: a stage does their work (stage.Stage). A failure
// has one root cause and stops only what depends on it. Killing the process at any
// moment and resuming the plan converges.
//
// This file is the loop, from top to bottom:
//
//	Run         records the start of the run, loops, records its outcome
//	loop        plans rounds until nothing runs and nothing can start
//	schedule    one round: released nodes, stragglers, ready tasks
//	startReady  ready tasks, the most urgent first: admitted? resources free? then start
//	start       gives a task to a worker
//	runStep     journals the start, calls the stage, journals the end
//	finish      returns the resources
//	settle      makes the dependents ready, or skips them
//
// The other files hold what it calls: task.go and graph.go the tasks, admit.go,
// gate.go and group.go who may start, resources.go the limits, step.go and steprun.go
// the work of one step, ledger.go the records, straggler.go and release.go what a round
// begins with.
package apply

import (
	"context"
	"sync"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
)

// Executor is one run of one plan. Hold, Release, Report, Drain, Status, Waiting and
// Waits are safe for concurrent use while Run runs.
//
// One goroutine, the loop, decides what starts. Workers run steps and pass on their
// ends. What both use is guarded by mu, which is never held during a write to disk or a
// call of a stage.
type Executor struct {
	cfg    Config
	run    state.Run
	clock  clock.Clock
	ledger *ledger
	raw    *evidence.Folder // nil: raw output is not kept

	wg          sync.WaitGroup
	wake        chan struct{}   // holds one token when the loop has something to look at
	assignments chan assignment // from the loop to idle workers
	cancel      context.CancelCauseFunc

	begun     chan struct{} // closed when the start of the run is recorded
	reporting sync.Mutex    // guards over, and is held while a finding of no step is recorded
	over      bool          // the outcome is being recorded

	holding sync.Mutex // one hold or release at a time: the state and the run agree on the last

	mu                sync.Mutex // guards all that follows, and the graph's tasks
	graph             *graph
	running           int             // steps
	stopping          bool            // nothing new is started
	drained           bool            // stopping, at the operator's request
	lookForStragglers bool            // in the next round
	released          []string        // nodes whose steps are to be resumed
	skips             []*task         // settled without a start, not journaled yet
	found             []stage.Finding // of no step
}

// assignment is a task for a worker.
type assignment struct {
	ctx    context.Context // of the step; done when it is to stop
	cancel context.CancelCauseFunc
	task   *task
}

// Run executes the plan. It is called once, and returns when every step that it
// started has ended. For the error see the function Run.
func (e *Executor) Run(ctx context.Context) (Result, error) {
	ctx, e.cancel = context.WithCancelCause(ctx)
	defer e.cancel(nil)
	e.ledger.onFailure = e.abortRun
	if err := e.ledger.recordRunStart(ctx, e.run, e.cfg.Plan, e.cfg.Resume); err != nil {
		return Result{}, err
	}
	e.emitRunStart()
	close(e.begun)
	watching, enough := context.WithCancel(ctx)
	e.wg.Go(func() { e.watchLease(watching) })
	if e.graph.anyMayLeaveStragglers() {
		e.wg.Go(func() { e.watchStragglers(watching) })
	}
	e.loop(ctx)
	enough()
	close(e.assignments)
	e.wg.Wait()
	return e.endRun()
}

// loop plans rounds until nothing runs and nothing can be started. Between two rounds
// it waits for an event: a step ended, a resource was released early, a node was put on hold
// or released, stragglers are due, or the run is to stop.
func (e *Executor) loop(ctx context.Context) {
	drain, done := e.cfg.Drain, ctx.Done()
	for {
		notes, skips, idle := e.schedule(ctx)
		for _, v := range notes {
			e.emit(v)
		}
		if len(skips) > 0 {
			e.recordSkips(skips)
			continue // a skip can make a task ready that needs it settled only
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

// schedule is one round: it resumes the steps of released nodes, lets tests go on
// without stragglers, and starts what can start. It returns what to say about it, the
// tasks to record as skipped, and whether no step runs.
func (e *Executor) schedule(ctx context.Context) (notes []event.Event, skips []*task, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.skips) == 0 && len(e.released) > 0 {
		notes = e.resumeReleased()
	}
	if e.lookForStragglers {
		e.lookForStragglers = false
		notes = append(notes, e.leaveStragglers()...)
	}
	e.startReady(ctx)
	skips, e.skips = e.skips, nil
	return notes, skips, e.running == 0 && (e.stopping || ctx.Err() != nil || !e.graph.resources.awaitsBorrowers())
}

// startReady tries every ready task, the most urgent first: one that is admitted and
// gets its resources is started, one that lacks a resource is parked on it, any other
// is settled. Called with e.mu held.
func (e *Executor) startReady(ctx context.Context) {
	limits := e.graph.resources
	for !e.stopping && ctx.Err() == nil {
		t := e.graph.popReady()
		if t == nil {
			return
		}
		lacked := t.lacks
		switch {
		case !e.admit(t):
			limits.withdraw(t)
		case limits.acquire(t):
			e.start(ctx, t)
		case t.lacks != lacked:
			e.emitStep(t, event.Event{Type: event.StepReady, Text: limits.describeWait(t.lacks)})
		}
	}
}

// admit reports whether a ready task may start as things stand: its gate has something
// to judge, its group a quorum, its node is neither on hold nor in quarantine. It sets
// the members that the step works on, and settles a task that may not start. Called
// with e.mu held.
func (e *Executor) admit(t *task) bool {
	var by *obstacle
	switch {
	case t.step.Gate != nil:
		by = e.findGateObstacle(t)
	case t.step.Group != nil:
		by = e.findGroupObstacle(t)
	default:
		by = e.findNodeObstacle(t)
	}
	switch {
	case by == nil:
		return true
	case by.finding != nil:
		e.failBeforeStart(t, *by.finding)
	default:
		e.skip(t, by.cause, by.root)
		e.settle(t, skipped)
	}
	return false
}

// start gives t, whose resources are acquired, to an idle worker, else to a new one.
// Called with e.mu held, by the loop alone.
func (e *Executor) start(ctx context.Context, t *task) {
	ctx, cancel := context.WithCancelCause(ctx)
	t.state, t.started, t.cancel = running, e.clock.Now().UTC(), cancel
	t.run = newStepRun(e, t)
	e.running++
	next := assignment{ctx, cancel, t}
	select {
	case e.assignments <- next:
	default:
		e.wg.Go(func() { e.runSteps(next) })
	}
}

// runSteps is a worker: it runs steps, one after another, until the loop ends. A
// goroutine that is used again need not grow its stack again.
func (e *Executor) runSteps(next assignment) {
	for more := true; more; next, more = <-e.assignments {
		end := e.runStep(next.ctx, next.task)
		next.cancel(nil)
		e.finish(next.task, end)
	}
}

// runStep runs one step from its first record to its last. It does not touch the
// graph: how the step ended is passed on by finish.
func (e *Executor) runStep(ctx context.Context, t *task) ending {
	if err := e.ledger.recordStepStart(t); err != nil {
		return e.endUnrecorded(err)
	}
	e.emitStep(t, event.Event{Type: event.StepStarted, Text: t.step.Title, Until: t.started.Add(t.step.Deadline.Limit)})
	limited, cancel := e.clock.WithTimeout(ctx, t.step.Deadline.Limit)
	defer cancel()
	o, err := e.callStage(limited, t)
	t.run.close()
	end := e.judgeEnd(ctx, limited, t, o, err)
	if err := e.ledger.recordStepEnd(t, end); err != nil {
		return e.endUnrecorded(err)
	}
	e.emitEnd(t, end)
	return end
}

// finish takes over how t ended, returns its resources and settles it.
func (e *Executor) finish(t *task, end ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	t.blamed = t.run.findings()
	t.ended, t.err, t.kind, t.observed, t.cause = end.at, end.err, end.kind, end.observed, end.cause
	if end.state == failed {
		t.setRoot(end.finding, end.kind)
	}
	e.graph.resources.release(t, "")
	e.settle(t, end.state)
	e.wakeLoop()
}

// settle gives t its final state and passes it on: a task whose needs are now all met
// becomes ready, one that needed the success of a task that did not succeed is skipped
// for the same root cause, and so on. A worklist keeps long chains of skips off the
// stack. Called with e.mu held.
func (e *Executor) settle(t *task, s taskState) {
	t.state = s
	for work := []*task{t}; len(work) > 0; work = work[1:] {
		on := work[0]
		if on.state == interrupted && on.cause.Kind == state.ByInterrupt {
			continue // the run that resumes does it again, and what needs it
		}
		for _, tr := range on.triggers {
			switch {
			case tr.task.state.settled(), tr.task.goesOnWithout(on):
			case tr.on == plan.Success && !tr.task.isMetBy(on):
				e.skip(tr.task, on.cause, on.root)
				work = append(work, tr.task)
			default:
				if tr.task.unmet--; tr.task.unmet == 0 {
					e.graph.makeReady(tr.task)
				}
			}
		}
	}
}

// skip marks t as never to be started in this run. The failure of something that is no
// node, such as an image, quarantines the nodes that depend on it; that of a gate does
// not. Called with e.mu held; the caller settles t.
func (e *Executor) skip(t *task, cause state.Cause, root *failure) {
	t.state, t.cause, t.root = skipped, cause, root
	if n := nodeOf(t.step); n != "" && root.quarantinesDependents() {
		e.ledger.setFinding(n, root)
	}
	e.skips = append(e.skips, t)
}

// recordSkips journals tasks that were settled without a start, and shows them.
func (e *Executor) recordSkips(ts []*task) {
	e.ledger.recordSkips(ts)
	for _, t := range ts {
		kind := event.StepSkipped
		if t.state == failed {
			kind = event.StepFailed
		}
		e.emitStep(t, event.Event{Type: kind, Text: t.cause.Text})
	}
}
