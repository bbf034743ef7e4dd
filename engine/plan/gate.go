// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// gateLimit is the hang deadline of a gate, which only counts.
const gateLimit = time.Minute

// addGates puts a gate behind every wave but the last of each role.
func (s *splitter) addGates() {
	ends, begins := s.findWaveEdges()
	before := map[string]StepID{} // the gate before the next wave of each role
	counts, judged := map[string][]string{}, map[string][]StepID{}
	for w, x := range s.waves {
		if gate := before[x.role]; gate != "" {
			for _, i := range begins[w] {
				s.out[i].Needs = append(slices.Clip(s.out[i].Needs), Need{Step: gate, On: Success})
			}
		}
		counts[x.role] = append(counts[x.role], x.count...)
		counted := map[string]bool{}
		for _, n := range x.count {
			counted[n] = true
		}
		var waits []Need
		for _, i := range ends[w] {
			waits = append(waits, Need{Step: s.out[i].ID, On: Settled})
			if counted[nodeOf(&s.out[i])] {
				judged[x.role] = append(judged[x.role], s.out[i].ID)
			}
		}
		if x.last {
			continue
		}
		gate := s.newGateStep(x, waits, slices.Clone(counts[x.role]), slices.Clone(judged[x.role]))
		before[x.role] = gate.ID
		s.out = append(s.out, gate)
	}
}

// newGateStep is the step that lets the rollout of a role go on after a wave.
func (s *splitter) newGateStep(x wave, waits []Need, nodes []string, ends []StepID) Step {
	r := s.opt.Rollouts[x.role]
	most := max(r.StopAfter, 1) - 1
	title := fmt.Sprintf("go on after %s only when no node of it failed", x.name)
	if most > 0 {
		title = fmt.Sprintf("go on after %s only when at most %d of the %d nodes so far failed", x.name, most, len(nodes))
	}
	return Step{ID: StepID("site/rollout." + x.role).In(x.name), Stage: GateStage, Action: Read, Subject: subject.ID{Kind: subject.Site, Name: "rollout." + x.role},
		Title: title, Needs: waits, Why: []string{fmt.Sprintf("nodes of role %s are in service and are changed in waves", x.role)}, Decl: r.Decl,
		Deadline: Budget{Limit: gateLimit, Expected: time.Second}, Barrier: true,
		Gate: &Gate{Of: x.role, Wave: x.name, Nodes: nodes, Ends: ends, Most: most}}
}

// findWaveEdges finds, of each wave, the last steps (of nodes: those that no other step of
// the node needs; and what was split) and the first steps of its nodes.
func (s *splitter) findWaveEdges() (ends, begins map[int][]int) {
	ends, begins = map[int][]int{}, map[int][]int{}
	needed := map[StepID]bool{} // by a step of the same node
	for i := range s.out {
		st := &s.out[i]
		node := nodeOf(st)
		w, waved := s.of[node]
		if !waved {
			continue
		}
		first := true
		for _, n := range st.Needs {
			if j, is := s.byID[n.Step]; is && nodeOf(&s.plan.Steps[j]) == node {
				first = false
				needed[n.Step] = true
			}
		}
		if first {
			begins[w] = append(begins[w], i)
		}
	}
	mark := map[string]int{}
	for w, x := range s.waves {
		mark[x.mark] = w
	}
	for i := range s.out {
		st := &s.out[i]
		if w, waved := s.of[nodeOf(st)]; waved {
			if !needed[st.ID] {
				ends[w] = append(ends[w], i)
			}
		} else if w, split := mark[st.ID.Wave()]; split {
			ends[w] = append(ends[w], i)
		}
	}
	return ends, begins
}
