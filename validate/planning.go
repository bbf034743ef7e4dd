// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// planning is the work of one Plan.
type planning struct {
	s       *Stage
	steps   []plan.Step
	of      []*Check            // of each step
	earlier map[*Check][]*Check // checks of a node before each check, found once
	// provisional are the nodes that were accepted provisionally. Once the others of their
	// group come, it is tested whole, and they are accepted anew.
	provisional map[string]bool
}

// findProvisional finds the nodes that were accepted provisionally.
func findProvisional(nodes []*inventory.Node, view stage.View) map[string]bool {
	found := map[string]bool{}
	if view == nil {
		return found
	}
	for _, n := range nodes {
		f, known := view.Fact(result.AcceptedFact.Of(subject.OfNode(n.Name)))
		if !known || n.Retired {
			continue
		}
		if a, err := result.AcceptedFact.Get(f); err == nil && len(a.Provisional) > 0 {
			found[n.Name] = true
		}
	}
	return found
}

// plan adds the steps of a target.
func (p *planning) plan(t target.Target, scope func(*Check) bool) {
	for i := range p.s.checks {
		if c := &p.s.checks[i]; scope(c) && c.For(t) {
			p.add(c, t)
		}
	}
}

func (p *planning) add(c *Check, t target.Target) {
	earlier, found := p.earlier[c]
	if !found {
		earlier = p.s.before(c, func(o *Check) bool { return o.Scope == target.EachNode })
		p.earlier[c] = earlier
	}
	after := func(needs []plan.Need, n *inventory.Node) []plan.Need {
		for _, o := range earlier {
			if o.For(target.Target{Name: n.Name, Node: n}) {
				needs = append(needs, waitNeed(c, o, n.Name))
			}
		}
		return needs
	}
	tests := p.s.tests(c, t)
	for i := range tests {
		tests[i].Need.Triggers = tests[i].Need.Triggers || t.Node != nil && p.provisional[t.Name]
	}
	st := c.Plan(target.Request{Target: t, ID: target.StepID(t.Name, c.Name), After: after, Tests: tests})
	st.Test = c.Scope == target.EachNode
	if c.Together() {
		st.Group.Whole = slices.ContainsFunc(t.Group.Nodes, func(n *inventory.Node) bool { return p.provisional[n.Name] })
	}
	p.steps, p.of = append(p.steps, st), append(p.of, c)
}

// compare adds the steps of a check that compares nodes by what others have read, and
// lets what needs it wait for it: an outlier is taken out before it is tested, and
// before it is accepted.
func (p *planning) compare(c *Check) {
	of := map[string]plan.Need{} // by node
	for _, t := range p.s.compared(c) {
		for _, n := range t.Group.Nodes {
			of[n.Name] = plan.Need{Step: target.StepID(t.Name, c.Name), On: plan.Settled}
		}
		p.add(c, t)
	}
	for i := range p.steps {
		st := &p.steps[i]
		if !p.s.needs(p.of[i], c) {
			continue
		}
		var needs []plan.Need
		if need, ok := of[st.Subject.Name]; ok && st.Group == nil {
			needs = append(needs, need)
		}
		if st.Group != nil {
			for _, m := range st.Group.Members {
				if need, ok := of[m.Name]; ok && !slices.Contains(needs, need) {
					needs = append(needs, need)
				}
			}
		}
		st.Needs = append(st.Needs[:len(st.Needs):len(st.Needs)], needs...)
	}
}

// afterAll lets every step wait for one of another stage.
func (p *planning) afterAll(id plan.StepID) {
	for i := range p.steps {
		p.steps[i].Needs = append(p.steps[i].Needs, plan.Need{Step: id, On: plan.Settled})
	}
}
