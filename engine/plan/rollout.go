// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
)

// A rollout takes a change to the nodes of a role that are in service wave by
// wave: a canary, then batches. Every step that is not of one node and that needs
// nodes of waves (their tests, the hand-over) is there once for each wave, so that
// a wave is tested and back in service before the next one begins; a gate between
// them stops it after too many failures. What the plan does to nodes that are not
// in service yet, or that the operator named with --replace, is no part of it.

// wave is one wave of the rollout of one role.
type wave struct {
	role  string
	name  string // as shown: canary, batch-2
	mark  string // in ids: with the role, when several roles have a rollout
	nodes []string
	last  bool     // of its role
	count []string // the nodes whose failure counts
}

// rollOut assigns nodes to waves and makes the plan go by them. A change of one
// wave is like any other change: nothing is to be held back.
func (d *differ) rollOut() {
	waves := d.assignWaves()
	if len(waves) == 0 {
		return
	}
	s := splitter{differ: d, waves: waves, of: map[string]int{}, byID: make(map[StepID]int, len(d.plan.Steps))}
	for w, x := range waves {
		for _, n := range x.nodes {
			s.of[n] = w
		}
	}
	s.split()
	d.resort = true
}

// assignWaves makes the waves of every role, in the order in which the plan comes to
// its nodes. Roles with one wave only are shown and not returned.
func (d *differ) assignWaves() (all []wave) {
	for _, r := range d.findCandidates() {
		if len(r.service) > 0 {
			all = append(all, d.cutWaves(r.role, r.lost, r.untried, r.service)...)
		}
	}
	several := slices.ContainsFunc(all, func(w wave) bool { return w.role != all[0].role })
	for i := range all {
		if all[i].mark = all[i].name; several {
			all[i].mark = all[i].role + "." + all[i].name
		}
	}
	return all
}

// candidates are the nodes of a role that a rollout takes the change to.
type candidates struct {
	role    string
	lost    []string // out of service since the change was tried on them
	untried []string // out of service without having been given the change
	service []string
}

// findCandidates finds the candidates of every role with a rollout, in the order in which
// the plan comes to them.
func (d *differ) findCandidates() (list []*candidates) {
	roles := map[string]*candidates{}
	seen := map[string]bool{}
	for i := range d.plan.Steps {
		n := nodeOf(&d.plan.Steps[i])
		name := d.opt.RoleOf[n]
		if _, has := d.opt.Rollouts[name]; !has || n == "" || seen[n] || !d.changed[n] || d.opt.Replace[n] {
			continue
		}
		seen[n] = true
		st := d.prior.Nodes[n]
		r := roles[name]
		if r == nil {
			r = &candidates{role: name}
			roles[name] = r
			list = append(list, r)
		}
		switch {
		case st.Lost && d.lacksChange(n):
			r.untried = append(r.untried, n)
		case st.Lost:
			r.lost = append(r.lost, n)
		case st.Known():
			r.service = append(r.service, n)
		}
	}
	return list
}

// cutWaves cuts the nodes of a role into waves and notes them in the plan. Nodes
// that the change was tried on before and that are out of service since are the
// canaries: otherwise every apply of something bad would cost one more node. Those
// that were out of service already come with the canaries and do not count.
func (d *differ) cutWaves(role string, lost, untried, service []string) (all []wave) {
	r := d.opt.Rollouts[role]
	first := min(max(r.Canary-len(lost), 0), len(service))
	canary := wave{role: role, name: "canary", nodes: slices.Concat(lost, untried, service[:first]), count: slices.Concat(lost, service[:first])}
	if len(canary.nodes) > 0 {
		all = append(all, canary)
	}
	number := 0
	for nodes := range slices.Chunk(service[first:], max(r.Batch, 1)) {
		number++
		all = append(all, wave{role: role, name: fmt.Sprintf("batch-%d", number), nodes: nodes, count: nodes})
	}
	shown := Waves{Role: role, StopAfter: max(r.StopAfter, 1)}
	for _, w := range all {
		shown.Waves = append(shown.Waves, Wave{Name: w.name, Nodes: w.nodes})
	}
	d.plan.Rollouts = append(d.plan.Rollouts, shown)
	if len(all) < 2 {
		return nil
	}
	all[len(all)-1].last = true
	return all
}

// lacksChange reports whether a node lacks the change: an input of one of its steps is
// another one than when the step was done.
func (d *differ) lacksChange(node string) bool {
	if d.lacking == nil {
		d.lacking = map[string]bool{}
		for i := range d.plan.Steps {
			s := &d.plan.Steps[i]
			n := nodeOf(s)
			if done, was := d.prior.Steps[s.ID]; n != "" && d.prior.Nodes[n].Lost && changesNode(s) && was && len(compareInputs(done, s)) > 0 {
				d.lacking[n] = true
			}
		}
	}
	return d.lacking[node]
}
