// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// findGroupObstacle admits a step of a group that has a quorum, and sets its members: it
// starts with those that survive. Called with e.mu held.
func (e *Executor) findGroupObstacle(t *task) *obstacle {
	t.members, t.lost = e.survivingMembers(t)
	t.blamed = e.findingsBeforeCrash(t)
	why := e.explainNoQuorum(t)
	if why == "" {
		return nil
	}
	if gate := e.gateOfLost(t); gate != nil {
		return &obstacle{cause: gate.cause, root: gate.root}
	}
	if e.goesOnProvisionally(t) {
		return nil
	}
	return &obstacle{cause: state.Cause{Kind: state.NotJudged, Step: t.step.ID, Text: why}}
}

// survivingMembers returns the members that a group step would start with now, and why
// each other one is lost: held, quarantined, or failed in a step that the group
// waits for, or straggling. What examines nodes does so with one that is quarantined for
// a bad part as well. A group that an earlier run of this plan froze only shrinks:
// nodes that come later are tested apart. Called with e.mu held.
func (e *Executor) survivingMembers(t *task) (members []subject.ID, lost []state.Loss) {
	all := t.step.Group.Members
	if f, ok := e.ledger.frozenGroups[t.step.ID]; ok {
		all, lost = f.Members, slices.Clone(f.Lost)
	}
	upstream := map[subject.ID]string{}
	for _, n := range t.step.Needs {
		if on := e.graph.byID[n.Step]; !t.isMetBy(on) && on.step.Group == nil {
			upstream[on.step.Subject] = fmt.Sprintf("%s %s: %s", on.step.ID, on.state, on.cause.Text)
		}
	}
	for _, m := range all {
		if why, late := t.stragglers[m]; late {
			lost = append(lost, state.Loss{Member: m, Why: why, Straggler: true})
			continue
		}
		why := upstream[m]
		if m.Kind == subject.Node {
			if k := e.ledger.condition(m.Name); k.blocked() && !(t.step.Examines && k.hasBadPart()) {
				why = k.cause().Text
			}
		}
		if why == "" {
			members = append(members, m)
		} else {
			lost = append(lost, state.Loss{Member: m, Why: why})
		}
	}
	return members, lost
}

// gateOfLost finds a step by which a gate, jobs or the site kept the lost members of a
// group from their turn; nil when a member was lost otherwise. Called with e.mu held.
func (e *Executor) gateOfLost(t *task) (by *task) {
	for _, n := range t.step.Needs {
		if on := e.graph.byID[n.Step]; on.state != done {
			if on.cause.Kind != state.ByRollout && on.cause.Kind != state.ByJobs && on.cause.Kind != state.BySite {
				return nil
			}
			by = on
		}
	}
	return by
}

// findingsBeforeCrash returns the findings of a group step by which members are out that an
// earlier process blamed: it died before the end of the step was recorded, and
// the step, which is done again without them, cannot make these findings again.
// Called with e.mu held.
func (e *Executor) findingsBeforeCrash(t *task) (fs []stage.Finding) {
	for _, l := range t.lost {
		bad := e.ownFinding(t, l)
		if bad == nil {
			continue
		}
		if !slices.ContainsFunc(fs, func(f stage.Finding) bool { return f.Cause == bad.Cause && slices.Equal(f.Suspects, bad.Suspects) }) {
			fs = append(fs, *bad)
		}
	}
	return fs
}

// ownFinding is the finding of an earlier process in this very step by which a member
// is lost; nil when it is lost otherwise. Called with e.mu held.
func (e *Executor) ownFinding(t *task, l state.Loss) *stage.Finding {
	if bad := e.ledger.condition(nodeNameOf(l.Member)).finding; bad != nil && bad.Step == string(t.step.ID) {
		return bad
	}
	return nil
}

// explainNoQuorum says why a group cannot be judged; "" when it can. Members that the step
// itself found bad before its process died are not missed: they came, and the test
// would have gone on to its end without them. Called with e.mu held.
func (e *Executor) explainNoQuorum(t *task) string {
	g, own := t.step.Group, 0
	for _, l := range t.lost {
		if e.ownFinding(t, l) != nil {
			own++
		}
	}
	var names []string
	for _, l := range t.lost {
		names = append(names, l.Member.Name)
	}
	about := func(m subject.ID) bool { return slices.Contains(g.Focus, m) }
	switch {
	case len(g.Focus) > 0 && !slices.ContainsFunc(t.members, about):
		return "not judged: no target nodes remain" + listLost(names)
	case g.OnLoss == plan.NotJudged && len(t.lost) > own:
		return fmt.Sprintf("not judged: %s lost %s", g.Set, listSome(names))
	}
	if well := len(t.members) - len(e.listOut(t.members)); well+own < max(g.Min, 1) || well < max(min(g.Min, 2), 1) {
		return fmt.Sprintf("not judged: %d of %d members of %s remain, %d are needed%s",
			well, len(g.Members), g.Set, max(g.Min, 1), listLost(names))
	}
	return ""
}

// listOut lists the members that are out, and at most examined.
func (e *Executor) listOut(members []subject.ID) (out []subject.ID) {
	for _, m := range members {
		if m.Kind == subject.Node && e.ledger.condition(m.Name).blocked() {
			out = append(out, m)
		}
	}
	return out
}

// goesOnProvisionally reports whether a group that has lost its quorum is judged all the
// same: its step says so, and enough members are left, one that it is about among them.
func (e *Executor) goesOnProvisionally(t *task) bool {
	g := t.step.Group
	about := func(m subject.ID) bool { return len(g.Focus) == 0 || slices.Contains(g.Focus, m) }
	return g.Provisional > 0 && g.OnLoss == plan.Shrink && len(t.members)-len(e.listOut(t.members)) >= g.Provisional && slices.ContainsFunc(t.members, about)
}

// listLost names the lost members in brackets; "" for none, since a plan can have too few
// members from the start.
func listLost(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (lost " + listSome(names) + ")"
}
