package apply

import (
	"context"

	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/subject"
)

// begin makes the start of a run durable, with its plan. A fresh run takes those
// nodes out of quarantine whose finding its plan looks into again.
func (l *ledger) begin(ctx context.Context, r state.Run, p *plan.Plan, resume bool) error {
	var n entry
	n.record(state.Record{Kind: state.RunStarted}.With(r))
	n.put(state.LastRun, r)
	n.put(state.PlanKey(p.ID), p)
	if !resume {
		last, _, err := state.Get[state.Run](ctx, l.store, state.LastRun)
		if err != nil {
			return err
		}
		if last.Plan != "" && last.Plan != p.ID {
			n.puts = append(n.puts, state.Put{Key: state.PlanKey(last.Plan), Want: state.Any})
		}
		l.clear(&n, p)
	}
	return l.write(n)
}

// clear takes the nodes of p out of quarantine whose finding came from a step
// that p repeats. A finding that nothing repeats stands: the node stays out.
func (l *ledger) clear(n *entry, p *plan.Plan) {
	repeated := map[string]bool{}
	for _, s := range p.Steps {
		repeated[string(s.ID)] = true
	}
	for _, s := range p.Steps {
		for _, name := range nodesOf(s) {
			if m := l.mark(name); m.bad == nil || !repeated[m.bad.Step] {
				continue
			}
			l.mu.Lock()
			l.marks[name] = mark{hold: l.marks[name].hold}
			l.mu.Unlock()
			n.record(state.Record{Kind: state.Cleared, Subject: subject.OfNode(name)})
			n.node(name, func(x *state.Node) { x.Quarantine = nil })
		}
	}
}

// end makes the outcome of a run durable.
func (l *ledger) end(r state.Run) error {
	var n entry
	n.record(state.Record{Kind: state.RunEnded}.With(r))
	n.put(state.LastRun, r)
	return l.write(n)
}

// started makes the start of a step durable, with its frozen members if it is a
// group's: from here on its earlier good end counts no more.
func (l *ledger) started(t *task) error {
	var n entry
	if t.step.Group != nil {
		f := state.Frozen{Plan: l.plan, Step: t.step.ID, Members: t.members, Lost: t.lost}
		n.record(state.Record{Kind: state.GroupFrozen, Step: string(t.step.ID), Subject: t.step.Subject}.With(f))
		n.put(state.FrozenKey(l.plan, t.step.ID), f)
	}
	n.record(state.Record{Kind: state.StepStarted, Step: string(t.step.ID), Subject: t.step.Subject})
	n.put(state.StepKey(t.step.ID), l.step(t, state.StepRunning))
	n.node(nodeOf(t.step), nil)
	return l.write(n)
}

// step is the object of a step as it stands now.
func (l *ledger) step(t *task, s state.StepState) state.Step {
	return state.Step{ID: t.step.ID, State: s, Version: t.step.Version, Inputs: t.step.Inputs,
		Plan: l.plan, Run: l.run, Started: t.started}
}

// ended makes the end of a step durable, with what it means for its node.
func (l *ledger) ended(t *task, end ending, s state.Step) error {
	kinds := map[taskState]state.RecordKind{done: state.StepDone, failed: state.StepFailed, interrupted: state.StepInterrupted}
	var n entry
	n.record(state.Record{Kind: kinds[end.state], Step: string(t.step.ID), Subject: t.step.Subject}.With(s))
	n.put(state.StepKey(t.step.ID), s)
	if end.observed {
		l.proven(&n, t, s.Evidence)
	}
	name := nodeOf(t.step)
	n.node(name, nil)
	if end.state == failed {
		n.node(name, l.quarantine(end.finding, end.kind))
	}
	if t.step.Accepts && name != "" && end.state != interrupted {
		l.accept(&n, t, end.state == done)
	}
	return l.write(n)
}

// proven settles the effects of a step that were in doubt since an earlier
// process: the step was found to be so, which proves them.
func (l *ledger) proven(n *entry, t *task, seen string) {
	for _, x := range l.doubts[t.step.ID] {
		x.State, x.Detail, x.Run, x.At = state.EffectIsDone, "found so: "+seen, l.run, l.now()
		n.record(state.Record{Kind: state.EffectOutcome, Step: string(t.step.ID), Subject: t.step.Subject}.With(x))
		n.put(state.EffectKey(x.Key), x)
	}
}

// accept records the verdict of an accepting step. A node that was quarantined
// meanwhile is not accepted.
func (l *ledger) accept(n *entry, t *task, good bool) {
	good = good && l.mark(t.step.Subject.Name).bad == nil
	if good {
		n.record(state.Record{Kind: state.Accepted, Step: string(t.step.ID), Subject: t.step.Subject})
	}
	n.node(t.step.Subject.Name, func(x *state.Node) {
		x.Accepted = good && x.Quarantine == nil
		if x.Accepted {
			x.AcceptedAt, x.AcceptedRun = l.now(), l.run
		}
	})
}

// skipped makes skips durable, and the quarantines that came with them. What it
// cannot write ends the run.
func (l *ledger) skipped(ts []*task) {
	var n entry
	for _, t := range ts {
		if t.state == failed {
			s := l.step(t, state.StepIsFailed)
			s.Started, s.Ended, s.Finding, s.Error, s.Kind = l.now(), l.now(), &t.root.finding, t.err.Error(), t.root.kind
			s.Blamed = t.blamed
			n.record(state.Record{Kind: state.StepFailed, Step: string(t.step.ID), Subject: t.step.Subject}.With(s))
			n.put(state.StepKey(t.step.ID), s)
			continue
		}
		// It was planned for a reason that still holds, so that an earlier good end
		// counts no more: the next plan has to see that it is to be done.
		n.puts = append(n.puts, state.Put{Key: state.StepKey(t.step.ID), Want: state.Any})
		n.record(state.Record{Kind: state.StepSkipped, Step: string(t.step.ID), Subject: t.step.Subject}.With(t.cause))
		if t.root != nil && nodeOf(t.root.task.step) == "" {
			n.node(nodeOf(t.step), l.quarantine(t.root.finding, t.root.kind))
		}
	}
	_ = l.write(n) // remembered by the ledger; the run ends with it
}

// hold makes a hold or a release durable.
func (l *ledger) hold(node string, kind state.RecordKind, h state.Hold) error {
	var n entry
	n.record(state.Record{Kind: kind, Subject: subject.OfNode(node)}.With(h))
	n.node(node, func(x *state.Node) {
		x.Hold = nil
		if kind == state.Held {
			x.Hold = &h
		}
	})
	return l.write(n)
}
