// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
)

// readOnlyRun is the stage.Run of a look: stages observe with it outside of a run. It
// records nothing and refuses every effect.
type readOnlyRun struct {
	step plan.Step
	Memory
}

// Memory is the facts that stages observe with, and what becomes of those that
// they learn meanwhile.
type Memory interface {
	Fact(fact.Key) (fact.Fact, bool)
	Learn(context.Context, ...fact.Fact) error
}

// readOnlyFacts is a Memory that keeps nothing.
type readOnlyFacts func(fact.Key) (fact.Fact, bool)

// Fact implements Memory.
func (f readOnlyFacts) Fact(k fact.Key) (fact.Fact, bool) { return f(k) }

// Learn implements Memory.
func (readOnlyFacts) Learn(context.Context, ...fact.Fact) error { return nil }

var _ stage.Run = readOnlyRun{}

// Examined implements stage.Run: nobody is out of what is only looked at.
func (o readOnlyRun) Examined() []subject.ID { return nil }

// Members implements stage.Run.
func (o readOnlyRun) Members() []subject.ID {
	if o.step.Group != nil {
		return slices.Clone(o.step.Group.Members)
	}
	return []subject.ID{o.step.Subject}
}

// errReadOnly refuses what a look must not record.
var errReadOnly = errkind.New(errkind.Refused, "this is a look: nothing is done and nothing is recorded")

// Effect implements stage.Run.
func (readOnlyRun) Effect(_ context.Context, e stage.Effect) error {
	return errkind.New(errkind.Refused, "%s: nothing is changed while only looking", e.Does)
}

// Blame implements stage.Run.
func (readOnlyRun) Blame(context.Context, stage.Finding) error { return errReadOnly }

// Release implements stage.Run.
func (readOnlyRun) Release(string) {}

// Emit implements stage.Run.
func (readOnlyRun) Emit(event.Event) {}

// Attach implements stage.Run.
func (readOnlyRun) Attach(string, []byte) (string, error) { return "", errReadOnly }

// Clock implements stage.Run.
func (readOnlyRun) Clock() clock.Clock { return clock.Wall{} }

// StepState is what a stage says of one of its steps.
type StepState struct {
	Step plan.Step
	stage.Observation
}

// NodeObserver asks the stages that configure installed nodes, drivers and fabrics,
// whether their steps are so already. Answers come by node, in the order of the
// steps. The function that it returns may be called for several nodes at the same time.
func (ob Observer) NodeObserver(nodes onnode.Nodes, facts Memory) func(ctx context.Context, node string) []StepState {
	type work struct {
		stage.Stage
		plan.Step
	}
	of := map[string][]work{}
	for _, st := range ob.NodeStages(nodes) {
		steps, _ := st.Plan(facts) // what cannot be planned is not asked
		for _, x := range steps {
			if x.Subject.Kind == subject.Node {
				of[x.Subject.Name] = append(of[x.Subject.Name], work{st, x})
			}
		}
	}
	return func(ctx context.Context, node string) (all []StepState) {
		for _, x := range of[node] {
			o, err := x.Observe(ctx, readOnlyRun{x.Step, facts}, x.Step)
			if err != nil {
				o = stage.Observation{State: stage.Unknown, Evidence: err.Error()}
			}
			all = append(all, StepState{x.Step, o})
		}
		return all
	}
}
