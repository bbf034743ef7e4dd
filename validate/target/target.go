// SPDX-License-Identifier: Apache-2.0

// Package target holds what checks are about and what they are given: a node, the
// nodes of a role or of a validation block, how a step of them is planned, and the run
// that a step is done in.
package target

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/result"
)

// StageName is the name of the stage in plans.
const StageName = "validate"

// Target is what one step of a check is about.
type Target struct {
	Name  string          // of the node, the group or the role; the step's id begins with it
	Node  *inventory.Node // nil but for checks of nodes
	Group *Group          // the nodes that are tested together; of a node that of its validation, nil: none
}

// StepID names the step of a check of a target.
func StepID(target, check string) plan.StepID {
	return plan.StepID(target + "/" + StageName + "." + check)
}

// Request is what a check is asked to plan.
type Request struct {
	Target
	ID plan.StepID // of the step
	// After adds the needs on those checks before it that are about one node.
	After func(needs []plan.Need, n *inventory.Node) []plan.Need
	// Tests are the checks before it that are about the target's group.
	Tests []Test
}

// Test is another check of a group: how to wait for it, and where its report is.
type Test struct {
	Need plan.Need
	Fact fact.Name[result.Report]
}

// Job is a step of a check that is run.
type Job struct {
	Target
	Inv    *inventory.Inventory
	Nodes  onnode.Nodes
	Run    stage.Run
	Step   plan.Step
	BMCs   func(node string) (chassis.BMC, error) // nil: none is asked
	Tests  []Test                                 // as those of its request
	Judged *result.Judgements
	// Counters reads what the switches of a fabric count; nil: they are not asked.
	Counters CounterReader
	// LastSweep looks at the fabrics of a node once more, as its acceptance does. An error of type
	// stage.BlockedError says that what could be read before could not be read now.
	LastSweep func(context.Context, stage.Run, *inventory.Node) ([]stage.Finding, error)
}

// CounterReader reads the counters of the ports of a fabric's switches, as
// fabric.Counting does.
type CounterReader func(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error)

// Together runs a test of a group over the members that are left, unless there is nobody to
// test. Partners alone work: they are not loaded for nothing.
func (j *Job) Together(ctx context.Context, name fact.Name[result.Report], left []*inventory.Node, do func() error) error {
	if focus, _ := InFocus(j.Step, left); j.Step.Group != nil && len(j.Step.Group.Focus) > 0 && len(focus) == 0 {
		j.Run.Emit(event.Event{Type: event.Note, Text: "none of the nodes that the test is about is left; their partners are left in peace"})
		return nil
	}
	if len(left) == 1 {
		return LearnReport(ctx, j.Run, j.Step, name, j.Name, j.reportAlone(left[0]))
	}
	return do()
}

// reportAlone returns the report of a test between nodes of which one is left. The site's
// quorum allows it, or it is tested again without any other; nothing is measured.
func (j *Job) reportAlone(n *inventory.Node) result.Report {
	why := n.Name + " is the only node left of its group, and the quorum lets it through: it was measured against no other"
	if g := j.Step.Group; g != nil && len(g.Focus) == len(g.Members) && len(g.Focus) > 0 {
		text := UnmeasuredRails(j.Inv, n, func(m *inventory.Node) bool {
			_, accepted := ReadFact(j.Run, result.AcceptedFact, subject.OfNode(m.Name))
			return accepted
		})
		if text != "" {
			why = text
			j.Run.Emit(event.Event{Type: event.Note, Text: text})
		}
	}
	return result.Report{At: j.Run.Clock().Now().UTC(), Members: []string{n.Name}, NotJudged: []string{why},
		Proves: "Nothing about " + n.Name + "'s rails: they carry no data before a second node is there."}
}

// LearnReport makes the report of a test of a group durable. Where fewer nodes than the
// quorum took part, the report says so.
func LearnReport(ctx context.Context, run stage.Run, st plan.Step, name fact.Name[result.Report], set string, rep result.Report) error {
	if n := len(run.Members()) - len(run.Examined()); st.Group.Provisional > 0 && n < st.Group.Min {
		rep.Provisional = fmt.Sprintf("provisional: %d of %d nodes of %s took part, and its quorum is %d", n, len(st.Group.Members), set, st.Group.Min)
		rep.NotJudged = append(rep.NotJudged, rep.Provisional)
	}
	return LearnFact(ctx, run, name, ReportOf(st, name, set), rep)
}

// FrozenMembers returns the nodes among the frozen members of the run.
func FrozenMembers(inv *inventory.Inventory, run stage.Run) []*inventory.Node {
	var list []*inventory.Node
	for _, m := range run.Members() {
		if n, ok := inv.Node(m.Name); ok && m.Kind == subject.Node {
			list = append(list, n)
		}
	}
	return list
}

// SplitOut returns the nodes among the frozen members, and apart those that are out for a
// bad part and only examined.
func SplitOut(inv *inventory.Inventory, run stage.Run) (members, out []*inventory.Node) {
	examined := run.Examined()
	for _, n := range FrozenMembers(inv, run) {
		if slices.Contains(examined, subject.OfNode(n.Name)) {
			out = append(out, n)
		} else {
			members = append(members, n)
		}
	}
	return members, out
}

// NodeNames returns those of nodes.
func NodeNames(nodes []*inventory.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

// ReadFact returns a fact's value; false when it is not known or not readable.
func ReadFact[T any](run interface {
	Fact(fact.Key) (fact.Fact, bool)
}, name fact.Name[T], of subject.ID) (T, bool) {
	var zero T
	f, ok := run.Fact(name.Of(of))
	if !ok {
		return zero, false
	}
	v, err := name.Get(f)
	return v, err == nil
}

// LearnFact makes one fact durable.
func LearnFact[T any](ctx context.Context, run stage.Run, name fact.Name[T], of subject.ID, v T) error {
	f, err := name.New(of, v, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}
