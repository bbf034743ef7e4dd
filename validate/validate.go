// SPDX-License-Identifier: Apache-2.0

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

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bundle"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// StageName is the name of the stage in plans.
const StageName = target.StageName

// Stage plans and runs the checks of a site.
type Stage struct {
	inv    *inventory.Inventory
	nodes  onnode.Nodes
	checks []Check
	groups func() []target.Group // of the inventory, found once
	judged result.Judgements
	bmcs   func(node string) (chassis.BMC, error) // nil: none is asked
	keep   bool                                   // vendors' programs collect of what is found bad
	last   lastSweeps
}

// New returns the stage.
func New(inv *inventory.Inventory, nodes onnode.Nodes) *Stage {
	return &Stage{inv: inv, nodes: nodes, checks: Checks, groups: sync.OnceValue(func() []target.Group { return target.ListGroups(inv) }),
		last: newLastSweeps(inv)}
}

// copied is a stage of the same site that reaches the same, and has looked at nothing yet.
func (s *Stage) copied() *Stage {
	c := New(s.inv, s.nodes)
	c.bmcs, c.keep = s.bmcs, s.keep
	c.last.read, c.last.sweep, c.last.verify, c.last.manage = s.last.read, s.last.sweep, s.last.verify, s.last.manage
	return c
}

// Asking lets the stage ask the BMCs of nodes. Without it none is asked.
func (s *Stage) Asking(open func(node string) (chassis.BMC, error)) *Stage {
	c := s.copied()
	c.bmcs = open
	return c
}

// Counting lets the stage read what the switches of fabrics count. Without it they are
// not asked.
func (s *Stage) Counting(read target.CounterReader) *Stage {
	c := s.copied()
	c.last.read = read
	return c
}

// Collecting lets the stage have vendors' programs collect what they know of parts that are
// found bad. Without it none is run.
func (s *Stage) Collecting() *Stage {
	c := s.copied()
	c.keep = true
	return c
}

// Sweeping lets the stage compare the cables of fabrics, and the settings of nodes' ports, once
// more when nodes are accepted. Without it that is not done.
func (s *Stage) Sweeping(sweep Sweeper, verify Verifier) *Stage {
	c := s.copied()
	c.last.sweep, c.last.verify = sweep, verify
	return c
}

// Managing lets the stage look once more who manages fabrics when nodes are accepted. Without it that is
// not done.
func (s *Stage) Managing(check ManagerCheck) *Stage {
	c := s.copied()
	c.last.manage = check
	return c
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return 1 }

// Check implements stage.Checker.
func (s *Stage) Check() hcl.Diagnostics { return s.CheckView(nil) }

// CheckView implements stage.ViewChecker.
func (s *Stage) CheckView(view stage.View) (diags hcl.Diagnostics) {
	for _, g := range s.groups() {
		diags = append(diags, checkGroup(g, view)...)
	}
	return diags
}

// Plan implements stage.Stage.
func (s *Stage) Plan(view stage.View) ([]plan.Step, hcl.Diagnostics) {
	p := planning{s: s, earlier: map[*Check][]*Check{}, provisional: findProvisional(s.inv.Nodes, view), steps: make([]plan.Step, 0, len(s.inv.Nodes)+8)}
	var diags hcl.Diagnostics
	for i := range s.groups() {
		g := &s.groups()[i]
		found := checkGroup(*g, view)
		diags = append(diags, found...)
		if !found.HasErrors() {
			p.plan(target.Target{Name: g.Set, Group: g}, (*Check).Together)
		}
	}
	p.steps = slices.Grow(p.steps, len(s.inv.Nodes))
	for _, n := range s.inv.Nodes {
		if !n.Retired {
			p.plan(s.ofNode(n), func(c *Check) bool { return c.Scope == target.EachNode })
		}
	}
	for i := range s.checks {
		if c := &s.checks[i]; isComparison(c) {
			p.compare(c)
		}
	}
	if cabling.Any(s.inv) { // a node on a wrong cable is taken out before it is tested
		p.afterAll(cabling.StepID)
	}
	for _, gate := range nvlink.GateSteps(s.inv) { // and one that is not in its NVLink domain
		p.afterAll(gate)
	}
	return p.steps, diags
}

// Observe implements stage.Stage. A test has no state in the world to look at:
// one that is planned is run.
func (s *Stage) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown, Evidence: "tests are run, not observed"}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	of, name := parseStepID(st.ID)
	for i := range s.checks {
		c := &s.checks[i]
		if c.Name != name {
			continue
		}
		if t, ok := s.target(c, of); ok {
			j := &target.Job{Target: t, Inv: s.inv, Nodes: s.nodes, Run: run, Step: st, BMCs: s.bmcs, Tests: s.tests(c, t), Judged: &s.judged, Counters: s.last.counters(run), LastSweep: s.last.look}
			if !s.keep {
				return c.Run(ctx, j)
			}
			watched := bundle.Watch(run, st, s.inv, s.nodes, s.bmcs)
			j.Run = watched
			err := c.Run(ctx, j)
			if kept := watched.Collect(ctx); err == nil {
				err = kept
			}
			return err
		}
	}
	return errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}

// parseStepID takes the id of a step apart, of whatever wave; empty when it is of no check.
func parseStepID(id plan.StepID) (of, check string) {
	base := string(id.Base())
	i := strings.LastIndexByte(base, '/') // names of targets may have one
	if check, ok := strings.CutPrefix(base[i+1:], target.StageName+"."); ok && i > 0 {
		return base[:i], check
	}
	return "", ""
}

// target finds what a step of a check is about; false when the check is not asked for
// there.
func (s *Stage) target(c *Check, name string) (target.Target, bool) {
	switch {
	case c.Scope == target.EachNode:
		if n, ok := s.inv.Node(name); ok && c.For(s.ofNode(n)) {
			return s.ofNode(n), true
		}
	case c.Together():
		for i := range s.groups() {
			if t := (target.Target{Name: name, Group: &s.groups()[i]}); t.Group.Set == name && c.For(t) {
				return t, true
			}
		}
	default:
		for _, t := range s.compared(c) {
			if t.Name == name {
				return t, true
			}
		}
	}
	return target.Target{}, false
}

// ofNode is a node with the group of its validation, if it has one.
func (s *Stage) ofNode(n *inventory.Node) target.Target {
	t := target.Target{Name: n.Name, Node: n}
	for i := range s.groups() {
		if g := &s.groups()[i]; g.Validation == n.Validation {
			t.Group = g
		}
	}
	return t
}

// compared are the roles that a check compares the nodes of, or the whole site.
func (s *Stage) compared(c *Check) (list []target.Target) {
	about := func(n *inventory.Node) bool { return c.For(target.Target{Name: n.Name, Node: n}) }
	if c.Scope == target.WholeSite {
		g := target.Group{Set: "site"}
		for _, n := range s.inv.Nodes {
			if !n.Retired && about(n) {
				g.Nodes = append(g.Nodes, n)
			}
		}
		if len(g.Nodes) < max(c.Fewest, 1) {
			return nil
		}
		return []target.Target{{Name: g.Set, Group: &g}}
	}
	for _, g := range target.ByRole(s.inv, c.Fewest, about) {
		list = append(list, target.Target{Name: g.Set, Group: &g})
	}
	return list
}

// tests are the checks of the target's group that a check comes after.
func (s *Stage) tests(c *Check, t target.Target) (list []target.Test) {
	if t.Group == nil || t.Group.Validation == nil { // a role is no group of a test
		return nil
	}
	for _, o := range s.before(c, (*Check).Together) {
		if o.For(target.Target{Name: t.Group.Set, Group: t.Group}) {
			list = append(list, target.Test{Need: waitNeed(c, o, t.Group.Set), Fact: fact.Name[result.Report](o.Kind())})
		}
	}
	return list
}
