package apply

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// begin makes the start of a run durable, with its plan. A fresh run takes those
// nodes out of quarantine whose finding its plan looks into again.
func (l *ledger) begin(ctx context.Context, r state.Run, p *plan.Plan, resume bool) error {
	var n entry
	n.recordAndPut(state.Record{Kind: state.RunStarted}, state.LastRun, r)
	n.put(state.PlanKey(p.ID), p)
	if !resume {
		last, _, err := state.Get[state.Run](ctx, l.store, state.LastRun)
		if err != nil {
			return err
		}
		if last.Plan != "" && last.Plan != p.ID {
			n.puts = append(n.puts, state.Put{Key: state.PlanKey(last.Plan), Want: state.Any})
		}
		if err := l.forget(ctx, &n); err != nil {
			return err
		}
		l.clear(&n, p)
	}
	return l.write(n)
}

// forget takes back the good ends of steps that the plan which is replaced did not
// come to on nodes that it had begun to change. Until now its being unfinished said
// so; a plan about other nodes ends that.
func (l *ledger) forget(ctx context.Context, n *entry) error {
	left, err := state.ReadUnreachedSteps(ctx, l.store)
	for _, id := range left {
		n.puts = append(n.puts, state.Put{Key: state.StepKey(id), Want: state.Any})
	}
	return err
}

// clear takes the nodes of p out of quarantine whose finding came from a step
// that p repeats, in whatever wave. A finding that nothing repeats stands: the node
// stays out. A node that p is to accept is in doubt until it has.
func (l *ledger) clear(n *entry, p *plan.Plan) {
	if !l.anyBad() {
		return
	}
	repeated, accepts := map[string]bool{}, map[string]bool{}
	for i := range p.Steps {
		repeated[string(p.Steps[i].ID.Base())] = true
		if p.Steps[i].Accepts {
			accepts[p.Steps[i].Subject.Name] = true
		}
	}
	for i := range p.Steps {
		for _, name := range nodesOf(&p.Steps[i]) {
			if m := l.mark(name); m.bad == nil || !repeated[string(plan.StepID(m.bad.Step).Base())] {
				continue
			}
			l.mu.Lock()
			l.marks[name] = mark{hold: l.marks[name].hold, accepted: l.marks[name].accepted}
			l.mu.Unlock()
			n.record(state.Record{Kind: state.Cleared, Subject: subject.OfNode(name)})
			n.node(name, func(x *state.Node) {
				if accepts[name] && x.Quarantine != nil {
					x.Doubt = x.Quarantine.Finding.Cause
				}
				x.Quarantine = nil
			})
		}
	}
}

// end makes the outcome of a run durable.
func (l *ledger) end(r state.Run) error {
	var n entry
	n.recordAndPut(state.Record{Kind: state.RunEnded}, state.LastRun, r)
	return l.write(n)
}

// started makes the start of a step durable, with its frozen members if it is a
// group's: from here on its earlier good end counts no more.
func (l *ledger) started(t *task) error {
	n := ofStep()
	if t.step.Group != nil {
		f := state.Frozen{Plan: l.plan, Step: t.step.ID, Members: t.members, Lost: t.lost}
		n.recordAndPut(state.Record{Kind: state.GroupFrozen, Step: string(t.step.ID), Subject: t.step.Subject}, state.FrozenKey(l.plan, t.step.ID), f)
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

// endKinds is what is recorded of an end.
var endKinds = map[taskState]state.RecordKind{done: state.StepDone, failed: state.StepFailed, interrupted: state.StepInterrupted}

// ended makes the end of a step durable, with what it means for its node.
func (l *ledger) ended(t *task, end ending, s state.Step) error {
	n := ofStep()
	n.recordAndPut(state.Record{Kind: endKinds[end.state], Step: string(t.step.ID), Subject: t.step.Subject}, state.StepKey(t.step.ID), s)
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
		n.recordAndPut(state.Record{Kind: state.EffectOutcome, Step: string(t.step.ID), Subject: t.step.Subject}, state.EffectKey(x.Key), x)
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
			x.AcceptedAt, x.AcceptedRun, x.Doubt = l.now(), l.run, ""
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
			s.Started, s.Ended, s.Finding, s.Error, s.Kind = l.now(), l.now(), &t.root.finding, errkind.Line(t.err), t.root.kind
			s.Blamed = t.blamed
			n.recordAndPut(state.Record{Kind: state.StepFailed, Step: string(t.step.ID), Subject: t.step.Subject}, state.StepKey(t.step.ID), s)
			continue
		}
		// It was planned for a reason that still holds, so that an earlier good end
		// counts no more: the next plan has to see that it is to be done.
		if !l.shows(t) {
			n.puts = append(n.puts, state.Put{Key: state.StepKey(t.step.ID), Want: state.Any})
		}
		n.record(state.Record{Kind: state.StepSkipped, Step: string(t.step.ID), Subject: t.step.Subject}.With(t.cause))
		if t.root != nil && nodeOf(t.root.task.step) == "" && !t.root.gated() {
			n.node(nodeOf(t.step), l.quarantine(t.root.finding, t.root.kind))
		}
	}
	_ = l.write(n) // remembered by the ledger; the run ends with it
}

// shows reports whether the next plan sees by the inputs alone that a step which
// a stopped rollout did not come to is still to be done. Its last good end then
// stays on record: it says what the node, which was not touched, is made of.
func (l *ledger) shows(t *task) bool {
	if t.cause.Kind == state.ByJobs {
		return true // an edit shows, and what was asked for by name is asked for again
	}
	if t.cause.Kind != state.ByRollout {
		return false
	}
	s, _, err := state.Get[state.Step](context.Background(), l.store, state.StepKey(t.step.ID))
	if err != nil || s.State != state.StepIsDone {
		return false
	}
	return slices.ContainsFunc(t.step.Inputs, func(in plan.Input) bool {
		return slices.ContainsFunc(s.Inputs, func(was plan.Input) bool { return was.Name == in.Name && was.Value != in.Value })
	})
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
