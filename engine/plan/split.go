// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/internal/subject"
)

// splitter makes a plan go by waves.
type splitter struct {
	*differ
	waves []wave
	of    map[string]int // the wave of each node
	byID  map[StepID]int // of the steps of the plan as it was
	parts map[StepID]*parts
	out   []Step
}

// parts are what becomes of one step that needs nodes of waves.
type parts struct {
	waves   []int // by which it is split, rising
	stays   bool  // the rest of it stays, under its own id
	renames bool  // the last wave has its id: the rest joins it
}

// id returns what the step is called in a wave.
func (p *parts) id(of StepID, w int, waves []wave) StepID {
	if p.renames && w == p.waves[len(p.waves)-1] {
		return of
	}
	return of.In(waves[w].mark)
}

func (s *splitter) split() {
	old, from := s.plan.Steps, s.from
	s.parts, s.out = map[StepID]*parts{}, make([]Step, 0, len(old)+16*len(s.waves))
	for i := range old {
		s.byID[old[i].ID] = i
	}
	for i := range old {
		if nodeOf(&old[i]) == "" {
			s.planPart(&old[i], len(s.choices[from[i]].own) > 0)
		}
	}
	renamed := map[int]map[keyOf]keyOf{} // of each wave, what its steps read instead
	for i := range old {
		st := &old[i]
		p := s.parts[st.ID]
		if p == nil {
			s.out = append(s.out, *st)
			continue
		}
		if p.stays {
			s.out = append(s.out, s.partOutsideWaves(st))
		}
		for _, w := range p.waves {
			s.out = append(s.out, s.partInWave(st, p, w, renamed))
		}
	}
	for i := range s.out {
		s.redirectNeeds(&s.out[i], renamed)
	}
	s.addGates()
	s.plan.Steps = s.out
}

// planPart decides what becomes of a step that is not of one node. own says that it
// has a reason beside the steps that trigger it.
func (s *splitter) planPart(st *Step, own bool) {
	in := make([]bool, len(s.waves))
	outside, any := false, false
	for _, n := range st.Needs {
		need := &s.plan.Steps[s.byID[n.Step]]
		w, waved := s.of[nodeOf(need)]
		p := s.parts[n.Step]
		switch {
		case waved:
			in[w], any = true, true
		case p != nil:
			for _, w := range p.waves {
				in[w], any = true, true
			}
			outside = outside || p.stays
		case nodeOf(need) != "":
			outside = true
		}
	}
	if !any {
		return
	}
	p := &parts{stays: own || outside}
	for w, is := range in {
		if is {
			p.waves = append(p.waves, w)
		}
	}
	if st.Group != nil && p.stays && len(s.membersInWave(st, -1)) < 2 {
		p.stays, p.renames = false, true // too few for a test of their own
	}
	s.parts[st.ID] = p
}

// membersInWave are the members of a group that are in a wave; -1: in none.
func (s *splitter) membersInWave(st *Step, wave int) (list []subject.ID) {
	for _, m := range st.Group.Members {
		if w, waved := s.of[m.Name]; waved && w == wave || !waved && wave < 0 {
			list = append(list, m)
		}
	}
	return list
}

// mayJoin reports whether a node may be a partner of those of a wave: it is in
// service meanwhile. The other waves of the same rollout are done by then, or not
// begun.
func (s *splitter) mayJoin(node string, w int) bool {
	if other, waved := s.of[node]; waved {
		return other != w && s.waves[other].role == s.waves[w].role && s.isInService(node)
	}
	return s.mayBePartner(node)
}

// partOutsideWaves is a step without the nodes of waves.
func (s *splitter) partOutsideWaves(st *Step) Step {
	c := *st
	c.Needs = s.needsIn(st, -1, false)
	if c.Group != nil {
		g := *c.Group
		g.Members = s.membersInWave(st, -1)
		g.Min = scaleQuorum(st.Group, len(g.Members))
		c.Title, c.Group = retitleForMembers(c.Title, st.Group, &g), &g
	}
	return c
}

// partInWave is a step for one wave.
func (s *splitter) partInWave(st *Step, p *parts, w int, renamed map[int]map[keyOf]keyOf) Step {
	c := *st
	c.ID = p.id(st.ID, w, s.waves)
	whole := c.ID == st.ID
	c.Needs = s.needsIn(st, w, whole)
	if len(c.Why) == 0 {
		c.Why = s.describeTriggers(c.Needs)
	}
	if len(c.Why) == 0 {
		c.Why = []string{fmt.Sprintf("for %s of role %s", s.waves[w].name, s.waves[w].role)}
	}
	if c.Group == nil {
		return c
	}
	focus := s.membersInWave(st, w)
	if whole {
		focus = append(focus, s.membersInWave(st, -1)...)
	}
	if s.focusStep(&c, st.Group, focus, func(m string) bool { return s.mayJoin(m, w) }); len(c.Group.Focus) > 0 {
		if renamed[w] == nil {
			renamed[w] = map[keyOf]keyOf{}
		}
		s.renameResults(&c, renamed[w])
	}
	return c
}

// needsIn are the needs of a step that concern a wave, -1 for none: on nodes of
// the wave, on what is split by it, and on what has nothing to do with waves. With
// rest also those on nodes outside of all waves.
func (s *splitter) needsIn(st *Step, wave int, rest bool) (out []Need) {
	for _, n := range st.Needs {
		need := &s.plan.Steps[s.byID[n.Step]]
		w, waved := s.of[nodeOf(need)]
		p := s.parts[n.Step]
		switch {
		case waved:
			if w == wave {
				out = append(out, n)
			}
		case p != nil:
			if wave >= 0 && slices.Contains(p.waves, wave) {
				out = append(out, Need{Step: p.id(n.Step, wave, s.waves), On: n.On, Triggers: n.Triggers, TriggersIfNew: n.TriggersIfNew})
			}
			if p.stays && (wave < 0 || rest) {
				out = append(out, n)
			}
		case nodeOf(need) == "" || wave < 0 || rest:
			out = append(out, n)
		}
	}
	return out
}

// redirectNeeds makes a step of a node need, and read, what was split.
func (s *splitter) redirectNeeds(st *Step, renamed map[int]map[keyOf]keyOf) {
	node := nodeOf(st)
	if node == "" || !slices.ContainsFunc(st.Needs, func(n Need) bool { return s.parts[n.Step] != nil }) {
		return
	}
	w, waved := s.of[node]
	reads := -1 // the wave whose results it reads
	if waved {
		reads = w
	}
	needs := make([]Need, 0, len(st.Needs))
	for _, n := range st.Needs {
		p := s.parts[n.Step]
		switch {
		case p == nil:
			needs = append(needs, n)
		case waved && slices.Contains(p.waves, w):
			n.Step = p.id(n.Step, w, s.waves)
			needs = append(needs, n)
		case p.stays:
			needs = append(needs, n)
		case p.renames:
			reads = p.waves[len(p.waves)-1]
			needs = append(needs, n)
		}
	}
	st.Needs = needs
	st.Reads = renameReads(st.Reads, renamed[reads])
}
