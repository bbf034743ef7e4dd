// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// A group step that is planned for a few of its members only is about these: they
// are tested with a few accepted partners and not with all others, which work.

type keyOf = fact.Key

// focusOriginals gives a focus to the group steps of the plan that no rollout has
// split, and whose members are known but for a few.
func (d *differ) focusOriginals() {
	groups, about := d.groupsToFocus()
	if len(groups) == 0 {
		return
	}
	renamed := map[keyOf]keyOf{}
	moved := map[string]bool{}
	for _, i := range groups {
		s := &d.plan.Steps[i]
		var focus []subject.ID
		for _, m := range s.Group.Members {
			if about[s.ID][m.Name] || d.isTriggeredBy(s, m) {
				focus = append(focus, m)
			}
		}
		if len(focus) == 0 || len(focus) == len(s.Group.Members) || !d.mayFocus(s) {
			continue
		}
		whole := s.Group
		if d.focusStep(s, whole, focus, d.mayBePartner); len(s.Group.Focus) > 0 {
			d.renameResults(s, renamed)
			for _, m := range focus {
				moved[m.Name] = true
			}
		}
	}
	for i := range d.plan.Steps {
		if s := &d.plan.Steps[i]; moved[nodeOf(s)] {
			s.Reads = renameReads(s.Reads, renamed)
		}
	}
}

// groupsToFocus are the group steps that may get a focus, by their place in the plan, and
// the nodes that each is about: those whose planned acceptance waits for it.
func (d *differ) groupsToFocus() (groups []int, about map[StepID]map[string]bool) {
	about = map[StepID]map[string]bool{}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		if s.Group != nil && s.Group.Partners > 0 && !s.Group.Whole && len(s.Group.Focus) == 0 && s.ID.Wave() == "" {
			groups = append(groups, i)
			about[s.ID] = map[string]bool{}
		}
	}
	if len(groups) == 0 {
		return nil, nil
	}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		for _, n := range s.Needs {
			if a := about[n.Step]; a != nil && s.Accepts {
				a[nodeOf(s)] = true
			}
		}
	}
	return groups, about
}

// isTriggeredBy reports whether a planned step of a member makes the group step run
// again.
func (d *differ) isTriggeredBy(s *Step, m subject.ID) bool {
	if d.members == nil {
		d.members = map[StepID]map[string]bool{}
	}
	of := d.members[s.ID]
	if of == nil {
		of = map[string]bool{}
		for k := range s.Needs {
			if j, ok := d.index[s.Needs[k].Step]; ok && d.triggers(&s.Needs[k], j) {
				of[nodeOf(&d.steps[j])] = true
			}
		}
		d.members[s.ID] = of
	}
	return m.Kind == subject.Node && of[m.Name]
}

// mayFocus reports whether the other members were tested as they are to be: the
// step ran before, and none of its inputs changed since.
func (d *differ) mayFocus(s *Step) bool {
	if done, was := d.prior.Steps[s.ID]; was {
		return len(compareInputs(done, s)) == 0 && !d.opt.Observed[s.ID].Differs
	}
	for _, k := range s.Yields {
		if _, known := d.prior.Fact(k); !known {
			return false
		}
	}
	return len(s.Yields) > 0
}

// isInService reports whether a node is in service and accepted.
func (d *differ) isInService(node string) bool {
	st := d.prior.Nodes[node]
	return st.Accepted && !st.Lost && st.Held == "" && !d.opt.Replace[node] && !d.opt.Retired[node]
}

// mayBePartner reports whether a node may be worked on beside those in focus: it is in
// service, and this plan leaves it there. Those that are tested again have no partners: what is not
// drained may run a job, and nobody waits for this test.
func (d *differ) mayBePartner(node string) bool {
	return len(d.opt.Retest) == 0 && d.isInService(node) && !d.disturbed[node]
}

// focusStep makes a group step be about some of its members, with partners.
func (d *differ) focusStep(s *Step, whole *Group, focus []subject.ID, may func(node string) bool) {
	g := *whole
	g.Members, g.Min = focus, scaleQuorum(whole, len(focus))
	tail := ""
	if whole.Partners > 0 {
		if with := choosePartners(whole, focus, may); len(with) > 0 {
			g.Focus, g.Members = focus, slices.Concat(focus, with)
			// Partners count: a good node whose wave-mates are lost is tested against
			// them, and not held back for what others have.
			g.Min = max(g.Min, 2)
			tail = fmt.Sprintf(": %s against %s (in service)", listMembers(focus), listMembers(with))
		} else if len(d.opt.Retest) > 0 { // its results are theirs, and not those of the whole group
			g.Focus, g.Min, tail = focus, 1, ": "+listMembers(focus) // one with a job keeps none of the others
		}
	}
	s.Title, s.Group = retitleForMembers(s.Title, whole, &g)+tail, &g
}

// retitleForMembers makes a title that counts the members, and how many are enough, count those
// that are left.
func retitleForMembers(title string, whole, left *Group) string {
	title = strings.Replace(title, fmt.Sprintf("%d nodes", len(whole.Members)), fmt.Sprintf("%d nodes", len(left.Members)), 1)
	if enough := whole.Enough(); enough != "" {
		title = strings.Replace(title, enough, left.Enough(), 1)
	}
	return title
}

// Enough says in a title how few members the step is judged with; "" when it needs
// all of them for whatever it says.
func (g *Group) Enough() string {
	text := ""
	if g.Min < len(g.Members) {
		text = fmt.Sprintf(", judged with %d or more", g.Min)
	}
	if g.Provisional > 0 && g.Provisional < g.Min {
		text += ", provisionally with fewer"
	}
	return text
}

// scaleQuorum is the quorum of a group for n of its members.
func scaleQuorum(whole *Group, n int) int {
	if len(whole.Members) == 0 {
		return whole.Min
	}
	return min(max((whole.Min*n+len(whole.Members)-1)/len(whole.Members), 1), max(n, 1))
}

// sharedPartners is how many nodes in focus share one partner, when there are
// many: the more of them there are, the more they are tested with one another.
const sharedPartners = 4

// choosePartners chooses, for each member in focus, the nearest one in the order of the
// members that may be a partner, and others that stand evenly further away. There
// are no more of them than a share of those in focus.
func choosePartners(whole *Group, focus []subject.ID, may func(string) bool) []subject.ID {
	in := make(map[subject.ID]bool, len(focus))
	for _, m := range focus {
		in[m] = true
	}
	var able []int // places in Members
	for i, m := range whole.Members {
		if m.Kind == subject.Node && !in[m] && may(m.Name) {
			able = append(able, i)
		}
	}
	if len(able) == 0 {
		return nil
	}
	most := max(whole.Partners, len(focus)/sharedPartners)
	chosen := map[int]bool{}
	for place, m := range whole.Members {
		if !in[m] {
			continue
		}
		near := findNearest(able, place)
		for k := range whole.Partners {
			if len(chosen) < most {
				chosen[able[(near+k*len(able)/whole.Partners)%len(able)]] = true
			}
		}
	}
	var list []subject.ID
	for _, i := range able {
		if chosen[i] {
			list = append(list, whole.Members[i])
		}
	}
	return list
}

// findNearest returns which of rising places is nearest to one.
func findNearest(places []int, to int) int {
	i, _ := slices.BinarySearch(places, to)
	if i == len(places) || i > 0 && to-places[i-1] <= places[i]-to {
		return i - 1
	}
	return i
}

// renameResults gives the results of a step in focus names of their own: those of the
// others stand. It notes what is called what.
func (d *differ) renameResults(s *Step, renamed map[keyOf]keyOf) {
	s.Yields = slices.Clone(s.Yields)
	for i, k := range s.Yields {
		if k.Subject == s.Subject {
			s.Yields[i].Subject.Name = s.Subject.Name + waveMark + labelMembers(s.Group.Focus)
			renamed[k] = s.Yields[i]
		}
	}
	s.Reads = renameReads(s.Reads, renamed)
}

// labelMembers names a few members shortly: n1, n1+3.
func labelMembers(ms []subject.ID) string {
	if len(ms) == 1 {
		return ms[0].Name
	}
	return fmt.Sprintf("%s+%d", ms[0].Name, len(ms)-1)
}

// renameReads returns what a step reads with the new names.
func renameReads(keys []keyOf, renamed map[keyOf]keyOf) []keyOf {
	if len(renamed) == 0 || !slices.ContainsFunc(keys, func(k keyOf) bool { return renamed[k] != keyOf{} }) {
		return keys
	}
	out := slices.Clone(keys)
	for i, k := range out {
		if to, is := renamed[k]; is {
			out[i] = to
		}
	}
	return out
}

func listMembers(ms []subject.ID) string {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = m.Name
	}
	slices.Sort(names)
	if len(names) == 2 {
		return names[0] + " and " + names[1]
	}
	return listSome(names)
}
