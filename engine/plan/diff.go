// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"sort"

	"github.com/ironrail/ironrail/internal/subject"
)

// Diff turns everything that the site wants into a plan of what is still to be
// done. desired holds every step of every stage, done or not, in the order of
// the stages. A step is planned when it was never done, when one of its inputs
// changed, when it was observed to be otherwise, when a step that triggers it is
// planned, or when its node is to be replaced. What disturbs nodes in service
// reaches them in waves (see rollout.go), and a test that only a few nodes are
// new to is about these (see focus.go). Diff is pure: no I/O and no clock; the
// caller sets ID and Created.
//
// The error is a defect of the stages (unknown need, cycle), never of the site, or that
// of opt.Ambiguous.
func Diff(desired []Step, prior Prior, opt Options) (*Plan, error) {
	g, err := newGraph(desired)
	if err != nil {
		return nil, err
	}
	d := &differ{graph: g, prior: prior, opt: opt, choices: make([]choice, len(desired)), leftAlone: map[string]bool{}, disturbed: map[string]bool{}, changed: map[string]bool{}, left: map[UnmanagedReason][]string{},
		plan: &Plan{Format: Format, Lineage: prior.Lineage, Site: opt.Site, Versions: map[subject.ID]uint64{}}}
	d.findUnplannedNodes()
	for again := true; again; {
		for _, i := range g.order {
			if !d.choices[i].planned {
				d.planStep(i)
			}
		}
		again = d.keepConditional() // what is drained may have to be handed back
	}
	d.keepNeeded()
	d.addSteps()
	return d.plan, d.finish()
}

// differ is the work of one Diff.
type differ struct {
	*graph
	prior     Prior
	opt       Options
	choices   []choice                     // of each step
	leftAlone map[string]bool              // nodes that this plan leaves alone
	disturbed map[string]bool              // nodes that it keeps from working
	changed   map[string]bool              // nodes that it erases, powers, updates or configures
	left      map[UnmanagedReason][]string // unmanaged nodes that it leaves alone
	plan      *Plan
	from      []int32 // of each step of the plan: which desired one it is
	resort    bool    // needs were added

	// Filled when they are asked for.
	accepts map[string]StepID          // the accepting step of each node
	lacking map[string]bool            // lost nodes that were never given what changed
	members map[StepID]map[string]bool // of group steps: nodes by which they are triggered
}

// choice is what was decided about a step.
type choice struct {
	planned bool
	action  Action
	own     []string // reasons of its own, beside steps that trigger it
}

// disturbsNode reports whether a step keeps its node from working.
func disturbsNode(s *Step) bool { return changesNode(s) && !s.NonDisruptive }

// changesNode reports whether a step changes something on its node.
func changesNode(s *Step) bool {
	return s.Only == "" && s.Subject.Kind == subject.Node && s.May&^Effects(Load) != 0
}

// findUnplannedNodes decides which nodes the plan leaves alone: held ones, ones that run
// unknown to the state, and ones outside the targets.
func (d *differ) findUnplannedNodes() {
	for i := range d.steps {
		eachNode(&d.steps[i], func(n string) {
			if _, seen := d.leftAlone[n]; !seen {
				d.leftAlone[n] = d.mustLeaveNode(n)
			}
		})
	}
}

func (d *differ) mustLeaveNode(n string) bool {
	st := d.prior.Nodes[n]
	if len(d.opt.Targets) > 0 && !d.opt.Targets[n] {
		d.leaveUnmanaged(n, OutsideTarget)
		return true
	}
	if st.Held != "" {
		d.leaveUnmanaged(n, OnHold)
		d.plan.Warnings = append(d.plan.Warnings, fmt.Sprintf("%s is on hold (%s): automation is paused for this node; `ironrail release %s` resumes it", n, st.Held, n))
		return true
	}
	p, looked := d.opt.Presence[n]
	if !looked || !p.Running || d.opt.Replace[n] {
		return false
	}
	d.leaveUnmanaged(n, RunsUnknown)
	d.plan.Offers = append(d.plan.Offers, Offer{Subject: subject.OfNode(n),
		Cause:   fmt.Sprintf("%s is not in this state and is not idle: %s", n, p.Evidence),
		Command: "ironrail adopt " + n})
	return true
}

// leavesOut reports whether the plan has nothing to do with what a step works on.
func (d *differ) leavesOut(s *Step) bool {
	if s.Group == nil {
		return s.Subject.Kind == subject.Node && d.leftAlone[s.Subject.Name]
	}
	return !slices.ContainsFunc(s.Group.Members, d.mayTakePart)
}

// mayTakePart reports whether a member of a group may take part: one that the plan leaves
// alone may only when it is accepted and merely outside the targets, as a partner of the
// nodes under test.
func (d *differ) mayTakePart(m subject.ID) bool {
	if m.Kind != subject.Node || !d.leftAlone[m.Name] {
		return true
	}
	st := d.prior.Nodes[m.Name]
	return st.Accepted && st.Held == ""
}

// planStep plans a step or finds it already so.
func (d *differ) planStep(i int32) {
	s := &d.steps[i]
	if s.Only != "" || d.leavesOut(s) || d.hasNothingToFollow(i) {
		return
	}
	action, own := d.findReasons(s)
	if len(own) == 0 && !d.isTriggered(i) {
		return
	}
	d.choices[i] = choice{planned: true, action: action, own: own}
	if disturbsNode(s) || d.opt.Retest[nodeOf(s)] {
		d.disturbed[s.Subject.Name] = true
	}
	if changesNode(s) {
		d.changed[s.Subject.Name] = true
	}
}

// hasNothingToFollow reports whether a step that only follows others has none to follow:
// nothing that it needs is planned or was ever done. A hand-over of no node, for
// one, would take everything away from a scheduler.
func (d *differ) hasNothingToFollow(i int32) bool {
	s := &d.steps[i]
	if len(s.Needs) == 0 || s.Subject.Kind == subject.Node {
		return false
	}
	for _, j := range d.needs[i] {
		if d.choices[j].planned || d.wasDone(&d.steps[j]) {
			return false
		}
	}
	return true
}

// wasDone reports whether the state has a good end of a step.
func (d *differ) wasDone(s *Step) bool {
	_, done := d.prior.Steps[s.ID]
	return done
}

// keepConditional plans the steps that go with the erasure or the disturbance of
// a node in use, and reports whether it planned any.
func (d *differ) keepConditional() (any bool) {
	erased := map[string]bool{}
	for i := range d.steps {
		if s := &d.steps[i]; d.choices[i].planned && s.May.Has(Erase) {
			erased[nodeOf(s)] = true
		}
	}
	for i := range d.steps {
		s := &d.steps[i]
		n := nodeOf(s)
		if d.choices[i].planned || d.leftAlone[n] || !d.prior.Nodes[n].Known() {
			continue
		}
		switch {
		case s.Only == WhenReinstalled && erased[n]:
			d.choices[i] = choice{planned: true, action: Change, own: []string{"the node is in use and is about to be erased"}}
		case s.Only == WhenDisturbed && d.disturbed[n]:
			why := "the node is in use and is about to be changed"
			if erased[n] {
				why = "the node is in use and is about to be erased"
			}
			d.choices[i] = choice{planned: true, action: Change, own: []string{why}}
		default:
			continue
		}
		any = true
	}
	return any
}

// keepNeeded plans the steps that are there for others. It goes from the last
// step to the first, since what is not planned needs nothing.
func (d *differ) keepNeeded() {
	needed := make([]bool, len(d.steps))
	for _, i := range slices.Backward(d.order) {
		s := &d.steps[i]
		if s.Only == WhenNeeded && needed[i] && !d.leavesOut(s) {
			d.choices[i] = choice{planned: true, action: Read, own: []string{"what depends on it is about to run"}}
		}
		if d.choices[i].planned {
			for _, j := range d.needs[i] {
				needed[j] = true
			}
		}
	}
}

// addSteps makes the steps of the plan, with those needs that are planned.
func (d *differ) addSteps() {
	n := 0
	for i := range d.choices {
		if d.choices[i].planned {
			n++
		}
	}
	if n == 0 {
		return
	}
	d.plan.Steps, d.from = make([]Step, 0, n), make([]int32, 0, n)
	for _, i := range d.order {
		c := &d.choices[i]
		if !c.planned {
			continue
		}
		s := d.steps[i]
		s.Action, s.Needs, s.Why = c.action, d.plannedNeeds(i), c.own
		if ops := d.opt.Observed[s.ID].Operations; len(ops) > 0 {
			d.addOperations(s.ID, ops)
		}
		if s.Group != nil {
			g := *s.Group
			g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(m subject.ID) bool { return !d.mayTakePart(m) })
			s.Title, s.Group = retitleForMembers(s.Title, s.Group, &g), &g
		}
		d.plan.Steps, d.from = append(d.plan.Steps, s), append(d.from, i)
	}
}

// addOperations puts into the plan what a step would write.
func (d *differ) addOperations(id StepID, ops []Operation) {
	if d.plan.Operations == nil {
		d.plan.Operations = map[StepID][]Operation{}
	}
	d.plan.Operations[id] = ops
}

// plannedNeeds are the needs of a step that are not met already.
func (d *differ) plannedNeeds(i int32) []Need {
	all, kept := d.steps[i].Needs, 0
	for _, j := range d.needs[i] {
		if d.choices[j].planned {
			kept++
		}
	}
	switch kept {
	case 0:
		return nil
	case len(all):
		return all // nobody writes to it: what changes needs makes its own
	}
	out := make([]Need, 0, kept)
	for k, j := range d.needs[i] {
		if d.choices[j].planned {
			out = append(out, all[k])
		}
	}
	return out
}

// finish puts drains before what disturbs, makes waves and focus, counts what is
// erased, and notes versions and refusals.
func (d *differ) finish() error {
	d.drainFirst()
	d.rollOut()
	d.focusOriginals()
	if d.resort {
		steps, err := sortSteps(d.plan.Steps)
		if err != nil {
			return err
		}
		d.plan.Steps = steps
	}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		if len(s.Why) == 0 {
			s.Why = d.describeTriggers(s.Needs)
		}
		eachNode(s, func(n string) { d.plan.Versions[subject.OfNode(n)] = d.prior.Nodes[n].Version })
	}
	if err := d.applyEraseRules(); err != nil {
		return err
	}
	d.plan.Unmanaged = d.listUnmanaged()
	d.plan.Orphaned = listOrphaned(d.opt)
	return nil
}

// listOrphaned lists the nodes that the state knows and the site has no more.
func listOrphaned(o Options) (list []OrphanedNode) {
	for _, n := range o.Orphaned {
		if !o.Retired[n] {
			list = append(list, OrphanedNode{Node: n, Command: "ironrail plan --decommission " + n})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Node < list[j].Node })
	return list
}
