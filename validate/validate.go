// Package validate is the stage that holds a cluster against what was asked for:
// the parts of each node with GPUs against what they must be (validate/gate), the
// bandwidths of its GPUs (validate/bandwidth), what load does to them (validate/burnin),
// transfers between pairs of nodes over every rail, an all-reduce over all of
// them, and the acceptance of each node that passed. A test that finds something
// bad does not fail itself: it names the parts that it suspects, and the others
// go on.
package validate

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// StageName is the name of the stage in plans.
const StageName = "validate"

// Stage plans and runs the tests of a site.
type Stage struct {
	inv    *inventory.Inventory
	nodes  onnode.Nodes
	groups func() []group // of the inventory, found once
	judged judgements
	bmcs   func(node string) (Chassis, error) // nil: none is asked
}

// New returns the stage.
func New(inv *inventory.Inventory, nodes onnode.Nodes) *Stage {
	return &Stage{inv: inv, nodes: nodes, groups: sync.OnceValue(func() []group { return groups(inv) })}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return 1 }

// PairID, AllReduceID and AcceptID name the steps of the stage.
func PairID(set string) plan.StepID { return plan.StepID(set + "/validate.pair") }

// AllReduceID returns the step of the all-reduce over a group.
func AllReduceID(set string) plan.StepID { return plan.StepID(set + "/validate.all_reduce") }

// AcceptID returns the step that accepts a node.
func AcceptID(node string) plan.StepID { return plan.StepID(node + "/validate.accept") }

// Plan implements stage.Stage.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps := make([]plan.Step, 0, len(s.inv.Nodes)+8)
	var diags hcl.Diagnostics
	for _, g := range s.groups() {
		found := check(g)
		diags = append(diags, found...)
		if found.HasErrors() {
			continue
		}
		if g.pairs() {
			steps = append(steps, g.pairStep())
		}
		if g.reduces() {
			steps = append(steps, g.allReduceStep())
		}
	}
	steps = slices.Grow(steps, len(s.inv.Nodes))
	inputs := map[*inventory.Validation][]plan.Input{} // of acceptances: those of a group have the same
	for _, n := range s.inv.Nodes {
		if n.Retired {
			continue
		}
		g := s.groupOf(n)
		if g != nil && inputs[g.v] == nil {
			inputs[g.v] = g.inputs(WriteBandwidth, AllReduceBandwidth)
		}
		if gated(n) {
			steps = append(steps, gatesStep(n), bandwidthStep(n, g))
		}
		if burns(n) {
			steps = append(steps, burnStep(n))
		}
		steps = append(steps, acceptStep(n, g, inputs[n.Validation]))
	}
	roles := compared(s.inv)
	afterComparison(steps, roles, UniformID)
	for _, g := range roles {
		steps = append(steps, uniformStep(g))
	}
	burnt := heated(s.inv)
	afterComparison(steps, burnt, HeatID)
	for _, g := range burnt {
		steps = append(steps, heatStep(g))
	}
	if cabling.Any(s.inv) { // a node on a wrong cable is taken out before it is tested
		for i := range steps {
			steps[i].Needs = append(steps[i].Needs, plan.Need{Step: cabling.StepID, On: plan.Settled})
		}
	}
	for _, gate := range nvlink.Gates(s.inv) { // and one that is not in its NVLink domain
		for i := range steps {
			steps[i].Needs = append(steps[i].Needs, plan.Need{Step: gate, On: plan.Settled})
		}
	}
	return steps, diags
}

// Observe implements stage.Stage. A test has no state in the world to look at:
// one that is planned is run.
func (s *Stage) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown, Evidence: "tests are run, not observed"}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	for _, g := range s.groups() {
		switch st.ID.Base() {
		case PairID(g.set):
			return s.test(ctx, run, st, PairReport, g, func() error { return newPairTest(s, g, run, st).run(ctx) })
		case AllReduceID(g.set):
			return s.test(ctx, run, st, AllReduceReport, g, func() error {
				if g.onGPUs() {
					return newCollective(s, g, run, st).run(ctx)
				}
				return newAllReduce(s, g, run, st).run(ctx)
			})
		}
	}
	if role, ok := strings.CutSuffix(string(st.ID.Base()), "/validate.uniform"); ok {
		for _, g := range compared(s.inv) {
			if g.set == role {
				return s.uniformity(ctx, run, st, g)
			}
		}
	}
	if name, ok := strings.CutSuffix(string(st.ID), "/validate.gates"); ok {
		if n, ok := s.inv.Node(name); ok {
			return s.gates(ctx, run, n)
		}
	}
	if name, ok := strings.CutSuffix(string(st.ID), "/validate.bandwidth"); ok {
		if n, ok := s.inv.Node(name); ok {
			return s.bandwidth(ctx, run, st, n)
		}
	}
	if name, ok := strings.CutSuffix(string(st.ID), "/validate.burn"); ok {
		if n, ok := s.inv.Node(name); ok && burns(n) {
			return s.burn(ctx, run, st, n)
		}
	}
	if role, ok := strings.CutSuffix(string(st.ID.Base()), "/validate.heat"); ok {
		for _, g := range heated(s.inv) {
			if g.set == role {
				return s.heat(ctx, run, st, g)
			}
		}
	}
	if name, ok := strings.CutSuffix(string(st.ID), "/validate.accept"); ok {
		if n, ok := s.inv.Node(name); ok {
			return s.accept(ctx, run, st, n, s.groupOf(n))
		}
	}
	return errkind.New(errkind.Mismatch, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}

// test runs a test of a group, unless there is nobody left to test. Partners alone
// work: they are not loaded for nothing.
func (s *Stage) test(ctx context.Context, run stage.Run, st plan.Step, name fact.Name[Report], g group, do func() error) error {
	left := members(s.inv, run)
	if focus, _ := inFocus(st, left); st.Group != nil && len(st.Group.Focus) > 0 && len(focus) == 0 {
		run.Emit(event.Event{Type: event.Note, Text: "none of the nodes that the test is about is left; their partners are left in peace"})
		return nil
	}
	if len(left) == 1 {
		return learn(ctx, run, name, reportOf(st, name, g.set), alone(run, left[0]))
	}
	return do()
}

// alone is the report of a test between nodes of which one is left. The site's
// quorum allows it; nothing is measured.
func alone(run stage.Run, n *inventory.Node) Report {
	return Report{At: run.Clock().Now().UTC(), Members: []string{n.Name},
		NotJudged: []string{n.Name + " is the only node left of its group, and the quorum lets it through: it was measured against no other"},
		Proves:    "Nothing about " + n.Name + "'s rails: they carry no data before a second node is there."}
}

// members returns the nodes among the frozen members of the run.
func members(inv *inventory.Inventory, run stage.Run) []*inventory.Node {
	var list []*inventory.Node
	for _, m := range run.Members() {
		if n, ok := inv.Node(m.Name); ok && m.Kind == subject.Node {
			list = append(list, n)
		}
	}
	return list
}

func names(nodes []*inventory.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

// read returns a fact's value; false when it is not known or not readable.
func read[T any](run interface {
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

// learn makes one fact durable.
func learn[T any](ctx context.Context, run stage.Run, name fact.Name[T], of subject.ID, v T) error {
	f, err := name.New(of, v, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}
