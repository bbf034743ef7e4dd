// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// recordStepStart makes the start of a step durable, with its frozen members if it is a
// group's. From here on its earlier good end no longer counts.
func (l *ledger) recordStepStart(t *task) error {
	n := newStepEntry()
	if t.step.Group != nil {
		f := state.Frozen{Plan: l.plan, Step: t.step.ID, Members: t.members, Lost: t.lost}
		put, data, err := state.PutFrozen(context.Background(), l.store, l.fence, f)
		if err != nil {
			return l.setFailure(err)
		}
		r := stepRecord(state.GroupFrozen, t)
		r.Data, n.puts = data, append(n.puts, put)
		n.addRecord(r)
	}
	n.addRecord(stepRecord(state.StepStarted, t))
	n.putObject(state.StepKey(t.step.ID), l.stepObject(t, state.StepRunning))
	n.changeNode(nodeOf(t.step), nil)
	return l.write(n)
}

// stepObject is the object of a step as it stands now.
func (l *ledger) stepObject(t *task, s state.StepState) state.Step {
	return state.Step{ID: t.step.ID, State: s, Version: t.step.Version, Inputs: t.step.Inputs,
		Plan: l.plan, Run: l.run, Started: t.started}
}

// readEffect returns what is known of an effect; false when it was never begun.
func (l *ledger) readEffect(ctx context.Context, key string) (state.Effect, bool, error) {
	x, version, err := state.Get[state.Effect](ctx, l.store, state.EffectKey(key))
	return x, version != state.Absent, err
}

// wasExamined reports whether an earlier run has examined a node that is out again for the
// very same cause: nothing was repaired, and a burn-in would say the same.
func (l *ledger) wasExamined(t *task, c condition) bool {
	if c.doubt == "" || c.doubt != c.finding.Cause {
		return false
	}
	s, _, err := state.Get[state.Step](context.Background(), l.store, state.StepKey(t.step.ID))
	return err == nil && s.State == state.StepIsExamined && s.Error == ""
}

// recordEffect makes the state of an effect durable. Once the intent to erase is
// written, the node is in service no more.
func (l *ledger) recordEffect(t *task, x state.Effect) error {
	kind := state.EffectOutcome
	if x.State == state.EffectIntended {
		kind = state.EffectIntent
	}
	var n entry
	n.addRecordOf(stepRecord(kind, t), state.EffectKey(x.Key), x)
	if x.Kind == plan.Erase && x.State == state.EffectIntended {
		n.changeNode(nodeOf(t.step), func(x *state.Node) { x.Accepted, x.Adopted = false, false })
	}
	return l.write(n)
}

// recordRetry makes durable that a step failed and is tried again after a pause.
func (l *ledger) recordRetry(t *task, r state.Retry) error {
	var n entry
	n.addRecord(stepRecord(state.StepRetried, t).With(r))
	return l.write(n)
}

// How the end of a step is recorded and stored.
var (
	endKinds  = map[taskState]state.RecordKind{done: state.StepDone, failed: state.StepFailed, interrupted: state.StepInterrupted, examined: state.StepExamined}
	endStates = map[taskState]state.StepState{done: state.StepIsDone, failed: state.StepIsFailed, interrupted: state.StepIsCut, examined: state.StepIsExamined}
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
	n.addRecordOf(stepRecord(endKinds[end.state], t), state.StepKey(t.step.ID), s)
	if t.step.Accepts && name != "" && end.state != interrupted {
		l.addVerdict(&n, t, end.state == done)
	}
	var parts []entry
	if end.observed {
		parts = l.provenEffects(t, end.evidence)
	}
	return l.writeParts(append(parts, n))
}

// provenEffects settles the effects of a step that were in doubt since an earlier
// process: the step was found to be so, which proves them, whether its end is recorded
// or not.
func (l *ledger) provenEffects(t *task, seen string) (parts []entry) {
	for _, x := range l.effectsInDoubt[t.step.ID] {
		x.State, x.Detail, x.Run, x.At = state.EffectIsDone, "found so: "+seen, l.run, l.now()
		var n entry
		n.addRecordOf(stepRecord(state.EffectOutcome, t), state.EffectKey(x.Key), x)
		parts = append(parts, n)
	}
	return parts
}

// addVerdict accepts the node of an accepting step, or takes its acceptance back. A node
// that was quarantined meanwhile is not accepted.
func (l *ledger) addVerdict(n *entry, t *task, good bool) {
	good = good && l.condition(t.step.Subject.Name).finding == nil
	if good {
		n.addRecord(stepRecord(state.Accepted, t))
	}
	n.changeNode(t.step.Subject.Name, func(x *state.Node) {
		x.Accepted = good && x.Quarantine == nil
		if x.Accepted {
			x.AcceptedAt, x.AcceptedRun, x.Doubt = l.now(), l.run, ""
		}
	})
}

// recordSkips makes durable that tasks were settled without a start, with the
// quarantines that came with it. A failure to write is kept by the ledger and ends the
// run.
func (l *ledger) recordSkips(ts []*task) {
	parts := make([]entry, len(ts)) // a task whose skip is not recorded is settled again by the run that goes on
	for i, t := range ts {
		n := &parts[i]
		if t.state == failed {
			s := l.stepObject(t, state.StepIsFailed)
			s.Started, s.Ended, s.Finding, s.Error, s.Kind = l.now(), l.now(), &t.root.finding, errkind.Line(t.err), t.root.kind
			s.Blamed = t.blamed
			n.addRecordOf(stepRecord(state.StepFailed, t), state.StepKey(t.step.ID), s)
			continue
		}
		// The reason why it was planned still holds. An earlier good end is dropped, so
		// that the next plan sees that the step is to be done.
		if !l.nextPlanSees(t) {
			n.deleteObject(state.StepKey(t.step.ID))
		}
		n.addRecord(stepRecord(state.StepSkipped, t).With(t.cause))
		if t.root.quarantinesDependents() {
			n.changeNode(nodeOf(t.step), l.quarantineNode(t.root.finding, t.root.kind))
		}
	}
	_ = l.writeParts(parts) // see failure
}

// nextPlanSees reports whether the next plan sees without this record that a skipped step
// is still to be done: by its inputs, when a stopped rollout did not come to it. Its last
// good end is then kept, since it says how the node, which was not touched, was made.
func (l *ledger) nextPlanSees(t *task) bool {
	if t.cause.Kind == state.ByJobs {
		return true // an edit shows, and what was asked for by name is asked for again
	}
	if t.cause.Kind != state.ByRollout && !t.step.Examines {
		return false
	}
	s, _, err := state.Get[state.Step](context.Background(), l.store, state.StepKey(t.step.ID))
	switch {
	case err == nil && s.State == state.StepIsExamined:
		return true // and a node that was not repaired is not examined again
	case err != nil || t.cause.Kind != state.ByRollout || s.State != state.StepIsDone:
		return false
	}
	return slices.ContainsFunc(t.step.Inputs, func(in plan.Input) bool {
		return slices.ContainsFunc(s.Inputs, func(was plan.Input) bool { return was.Name == in.Name && was.Value != in.Value })
	})
}
