// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/ironrail/ironrail/internal/subject"
)

// drainFirst makes every step that disturbs a node in use wait for the node's
// drain, but for those that the drain itself waits for.
func (d *differ) drainFirst() {
	drains := map[string]int{} // of each node: its drain in the plan
	for i := range d.plan.Steps {
		if s := &d.plan.Steps[i]; s.Only == WhenDisturbed {
			drains[nodeOf(s)] = i
		}
	}
	if len(drains) == 0 {
		return
	}
	behind := map[StepID]bool{} // steps that wait for the drain of their node
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		if s.Group != nil {
			d.drainMembers(s, drains)
			continue
		}
		at, drained := drains[nodeOf(s)]
		if !drained || i == at {
			continue
		}
		drain := &d.plan.Steps[at]
		if slices.ContainsFunc(s.Needs, func(n Need) bool { return n.Step == drain.ID || behind[n.Step] }) {
			behind[s.ID] = true
			continue
		}
		if !disturbsNode(s) && !changesBesideOthers(s) && !d.opt.Retest[nodeOf(s)] || d.waitsFor(d.from[at], d.from[i]) {
			continue
		}
		behind[s.ID] = true
		s.Needs = append(slices.Clip(s.Needs), Need{Step: drain.ID, On: Success})
		d.resort = true
	}
}

// drainMembers makes a group step wait for the drains of its members that are tested again: nothing else
// keeps a test between nodes from loading one that works.
func (d *differ) drainMembers(s *Step, drains map[string]int) {
	for _, m := range s.Group.Members {
		at, drained := drains[m.Name]
		if m.Kind != subject.Node || !drained || !d.opt.Retest[m.Name] {
			continue
		}
		s.Needs = append(slices.Clip(s.Needs), Need{Step: d.plan.Steps[at].ID, On: Settled})
		d.resort = true
	}
}

// changesBesideOthers reports whether a step that is there for others changes its node all the
// same: the site's own program before a stage. It is no reason for a drain; where
// there is one, it waits for it.
func changesBesideOthers(s *Step) bool {
	return s.Only == WhenNeeded && s.Subject.Kind == subject.Node && s.May&^Effects(Load) != 0
}

// waitsFor reports whether step i comes after step j. The drains of nodes wait for
// a few steps of theirs, so that the walk is short.
func (d *differ) waitsFor(i, j int32) bool {
	for _, k := range d.needs[i] {
		if k == j || d.waitsFor(k, j) {
			return true
		}
	}
	return false
}
