package apply

import (
	"container/heap"
	"context"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// startReady starts every ready task whose resources are free, the most urgent
// first. Called with e.mu held.
func (e *Executor) startReady(ctx context.Context) {
	g := e.graph
	for !e.stopping && ctx.Err() == nil {
		for t := g.resources.nextUnparked(); t != nil; t = g.resources.nextUnparked() {
			heap.Push(&g.ready, t)
		}
		if g.ready.Len() == 0 {
			return
		}
		t := heap.Pop(&g.ready).(*task)
		before := t.lacks
		switch {
		case t.state != ready:
		case e.skipBlocked(t):
			t.lacks = ""
			g.resources.offerOthers(t)
		case g.resources.acquire(t):
			e.start(ctx, t)
		case t.lacks != before:
			e.emitStep(t, event.Event{Type: event.StepReady, Text: g.resources.describeWait(t.lacks)})
		}
	}
}

// skipBlocked skips a task that must not start, and says whether it did.
// Called with e.mu held.
func (e *Executor) skipBlocked(t *task) bool {
	if t.step.Gate != nil {
		on := e.stoppedGateBefore(t.step.Gate)
		if on != nil {
			e.skip(t, on.cause, on.root)
			e.settle(t, skipped)
		}
		return on != nil
	}
	if t.step.Group != nil {
		t.members, t.lost = e.survivingMembers(t)
		t.blamed = e.findingsBeforeCrash(t)
		why := e.explainNoQuorum(t)
		if on := e.gateOfLost(t); why != "" && on != nil {
			e.skip(t, on.cause, on.root)
			e.settle(t, skipped)
			return true
		}
		if why != "" {
			e.skip(t, state.Cause{Kind: state.NotJudged, Step: t.step.ID, Text: why}, nil)
			e.settle(t, skipped)
			return true
		}
		return false
	}
	t.members = []subject.ID{t.step.Subject}
	m := e.ledger.condition(nodeOf(t.step))
	switch {
	case m.finding != nil && m.finding.Step == string(t.step.ID):
		e.failBeforeStart(t, *m.finding)
	case m.blocked():
		e.skip(t, m.cause(), nil)
		e.settle(t, skipped)
	}
	return m.blocked()
}

// assignment is a step that a worker is to run.
type assignment struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	task   *task
}

// start gives t to a worker that has nothing to do, else to a new one. Its resources
// are taken. Called with e.mu held, by the loop alone.
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

// runSteps runs steps, one after another, until the loop ends: a goroutine that lives
// on need not grow its stack again.
func (e *Executor) runSteps(next assignment) {
	for more := true; more; next, more = <-e.assignments {
		end := e.runStep(next.ctx, next.task)
		next.cancel(nil)
		e.finish(next.task, end)
	}
}

// finish records how t ended and passes it on.
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

// setRoot makes t the root cause of what depends on it.
func (t *task) setRoot(f stage.Finding, kind errkind.Kind) {
	t.root = &failure{task: t, finding: f, kind: kind}
	t.cause = state.Cause{Kind: state.ByFailure, Step: t.step.ID, Text: f.Cause}
	if t.step.Gate != nil {
		t.cause.Kind = state.ByRollout
	}
}

// settle gives t its final state and passes it on to those that need it. A
// worklist keeps a long chain of skips off the stack. Called with e.mu held.
func (e *Executor) settle(t *task, s taskState) {
	t.state = s
	for work := []*task{t}; len(work) > 0; work = work[1:] {
		on := work[0]
		if on.state == interrupted && on.cause.Kind == state.ByInterrupt {
			continue // it is done again by the run that resumes
		}
		for _, tr := range on.triggers {
			switch {
			case tr.task.state.settled(), tr.task.goesOnWithout(on):
			case tr.on == plan.Success && on.state != done:
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

// failBeforeStart settles a step that took its own node out and died before its end
// was written: the node is not touched again. Called with e.mu held.
func (e *Executor) failBeforeStart(t *task, f stage.Finding) {
	t.err, t.kind = errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action), errkind.Mismatch
	t.setRoot(f, errkind.Mismatch)
	t.blamed = []stage.Finding{f}
	e.skips = append(e.skips, t)
	e.settle(t, failed)
}

// skip marks t as never to be started in this run. A failure of something that
// is not a node, such as an image, quarantines the nodes that depend on it; that
// of a gate does not.
// Called with e.mu held; the caller settles t.
func (e *Executor) skip(t *task, cause state.Cause, root *failure) {
	t.state, t.cause, t.root = skipped, cause, root
	if n := nodeOf(t.step); n != "" && root != nil && nodeOf(root.task.step) == "" && !root.ofGate() {
		e.ledger.setFinding(n, root)
	}
	e.skips = append(e.skips, t)
}
