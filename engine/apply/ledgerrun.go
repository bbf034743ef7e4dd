package apply

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// recordRunStart makes the start of a run durable, with its plan. A fresh run takes those
// nodes out of quarantine whose finding its plan looks into again.
func (l *ledger) recordRunStart(ctx context.Context, r state.Run, p *plan.Plan, resume bool) error {
	var n entry
	n.addRecordOf(state.Record{Kind: state.RunStarted}, state.LastRun, r)
	n.putObject(state.PlanKey(p.ID), p)
	if !resume {
		last, _, err := state.Get[state.Run](ctx, l.store, state.LastRun)
		if err != nil {
			return err
		}
		if last.Plan != "" && last.Plan != p.ID {
			n.puts = append(n.puts, state.Put{Key: state.PlanKey(last.Plan), Want: state.Any})
		}
		if err := l.forgetUnreached(ctx, &n); err != nil {
			return err
		}
		l.clearQuarantines(&n, p)
	}
	return l.write(n)
}

// forgetUnreached takes back the good ends of steps that the plan which is replaced did not
// come to on nodes that it had begun to change. Until now its being unfinished said
// so; a plan about other nodes ends that.
func (l *ledger) forgetUnreached(ctx context.Context, n *entry) error {
	left, err := state.ReadUnreachedSteps(ctx, l.store)
	for _, id := range left {
		n.puts = append(n.puts, state.Put{Key: state.StepKey(id), Want: state.Any})
	}
	return err
}

// clearQuarantines takes the nodes of p out of quarantine whose finding came from a step
// that p repeats, in whatever wave. A finding that nothing repeats stands: the node
// stays out. A node that p is to accept is in doubt until it has.
func (l *ledger) clearQuarantines(n *entry, p *plan.Plan) {
	if !l.anyQuarantined() {
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
			if m := l.condition(name); m.finding == nil || !repeated[string(plan.StepID(m.finding.Step).Base())] {
				continue
			}
			l.mu.Lock()
			l.conditions[name] = condition{hold: l.conditions[name].hold, accepted: l.conditions[name].accepted}
			l.mu.Unlock()
			n.addRecord(state.Record{Kind: state.Cleared, Subject: subject.OfNode(name)})
			n.changeNode(name, func(x *state.Node) {
				if accepts[name] && x.Quarantine != nil {
					x.Doubt = x.Quarantine.Finding.Cause
				}
				x.Quarantine = nil
			})
		}
	}
}

// recordRunEnd makes the outcome of a run durable.
func (l *ledger) recordRunEnd(r state.Run) error {
	var n entry
	n.addRecordOf(state.Record{Kind: state.RunEnded}, state.LastRun, r)
	return l.write(n)
}

// recordStepStart makes the start of a step durable, with its frozen members if it is a
// group's: from here on its earlier good end counts no more.
func (l *ledger) recordStepStart(t *task) error {
	n := newStepEntry()
	if t.step.Group != nil {
		f := state.Frozen{Plan: l.plan, Step: t.step.ID, Members: t.members, Lost: t.lost}
		n.addRecordOf(state.Record{Kind: state.GroupFrozen, Step: string(t.step.ID), Subject: t.step.Subject}, state.FrozenKey(l.plan, t.step.ID), f)
	}
	n.addRecord(state.Record{Kind: state.StepStarted, Step: string(t.step.ID), Subject: t.step.Subject})
	n.putObject(state.StepKey(t.step.ID), l.stepObject(t, state.StepRunning))
	n.changeNode(nodeOf(t.step), nil)
	return l.write(n)
}

// stepObject is the object of a step as it stands now.
func (l *ledger) stepObject(t *task, s state.StepState) state.Step {
	return state.Step{ID: t.step.ID, State: s, Version: t.step.Version, Inputs: t.step.Inputs,
		Plan: l.plan, Run: l.run, Started: t.started}
}

// How the end of a step is recorded and stored.
var (
	endKinds  = map[taskState]state.RecordKind{done: state.StepDone, failed: state.StepFailed, interrupted: state.StepInterrupted}
	endStates = map[taskState]state.StepState{done: state.StepIsDone, failed: state.StepIsFailed, interrupted: state.StepIsCut}
)

// recordStepEnd makes the end of a step durable, with what it means for its node.
func (l *ledger) recordStepEnd(t *task, end ending) error {
	s := l.stepObject(t, endStates[end.state])
	s.Ended, s.Observed, s.Evidence, s.Blamed = end.at, end.observed, end.evidence, t.run.findings()
	if end.err != nil {
		s.Kind, s.Error = end.kind, errkind.Line(end.err)
	}
	n := newStepEntry()
	name := nodeOf(t.step)
	n.changeNode(name, nil)
	if end.state == failed {
		s.Finding = &end.finding
		n.changeNode(name, l.quarantineNode(end.finding, end.kind))
	}
	n.addRecordOf(state.Record{Kind: endKinds[end.state], Step: string(t.step.ID), Subject: t.step.Subject}, state.StepKey(t.step.ID), s)
	if end.observed {
		l.addProvenEffects(&n, t, end.evidence)
	}
	if t.step.Accepts && name != "" && end.state != interrupted {
		l.addVerdict(&n, t, end.state == done)
	}
	return l.write(n)
}

// addProvenEffects settles the effects of a step that were in doubt since an earlier
// process: the step was found to be so, which proves them.
func (l *ledger) addProvenEffects(n *entry, t *task, seen string) {
	for _, x := range l.effectsInDoubt[t.step.ID] {
		x.State, x.Detail, x.Run, x.At = state.EffectIsDone, "found so: "+seen, l.run, l.now()
		n.addRecordOf(state.Record{Kind: state.EffectOutcome, Step: string(t.step.ID), Subject: t.step.Subject}, state.EffectKey(x.Key), x)
	}
}

// addVerdict records the verdict of an accepting step. A node that was quarantined
// meanwhile is not accepted.
func (l *ledger) addVerdict(n *entry, t *task, good bool) {
	good = good && l.condition(t.step.Subject.Name).finding == nil
	if good {
		n.addRecord(state.Record{Kind: state.Accepted, Step: string(t.step.ID), Subject: t.step.Subject})
	}
	n.changeNode(t.step.Subject.Name, func(x *state.Node) {
		x.Accepted = good && x.Quarantine == nil
		if x.Accepted {
			x.AcceptedAt, x.AcceptedRun, x.Doubt = l.now(), l.run, ""
		}
	})
}

// recordSkips makes skips durable, and the quarantines that came with them. What it
// cannot write ends the run.
func (l *ledger) recordSkips(ts []*task) {
	var n entry
	for _, t := range ts {
		if t.state == failed {
			s := l.stepObject(t, state.StepIsFailed)
			s.Started, s.Ended, s.Finding, s.Error, s.Kind = l.now(), l.now(), &t.root.finding, errkind.Line(t.err), t.root.kind
			s.Blamed = t.blamed
			n.addRecordOf(state.Record{Kind: state.StepFailed, Step: string(t.step.ID), Subject: t.step.Subject}, state.StepKey(t.step.ID), s)
			continue
		}
		// It was planned for a reason that still holds, so that an earlier good end
		// counts no more: the next plan has to see that it is to be done.
		if !l.nextPlanSees(t) {
			n.puts = append(n.puts, state.Put{Key: state.StepKey(t.step.ID), Want: state.Any})
		}
		n.addRecord(state.Record{Kind: state.StepSkipped, Step: string(t.step.ID), Subject: t.step.Subject}.With(t.cause))
		if t.root.quarantinesDependents() {
			n.changeNode(nodeOf(t.step), l.quarantineNode(t.root.finding, t.root.kind))
		}
	}
	_ = l.write(n) // remembered by the ledger; the run ends with it
}

// nextPlanSees reports whether the next plan sees by the inputs alone that a step which
// a stopped rollout did not come to is still to be done. Its last good end then
// stays on record: it says what the node, which was not touched, is made of.
func (l *ledger) nextPlanSees(t *task) bool {
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

// recordHold makes a hold or a release durable.
func (l *ledger) recordHold(node string, kind state.RecordKind, h state.Hold) error {
	var n entry
	n.addRecord(state.Record{Kind: kind, Subject: subject.OfNode(node)}.With(h))
	n.changeNode(node, func(x *state.Node) {
		x.Hold = nil
		if kind == state.Held {
			x.Hold = &h
		}
	})
	return l.write(n)
}
