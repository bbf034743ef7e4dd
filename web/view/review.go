// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// Review is a plan that is shown before it is approved. Approval is not given here: the
// operator types it in the terminal, which shows the same digest.
type Review struct {
	Plan     *plan.Plan // with its Sum; nobody changes it any more
	Expected []string   // how long it may take, in lines
	Approved bool       // it was approved, and its run begins
}

// MostTreatments bounds the entries of what is done to nodes: treatments in a plan, and
// steps of things that are not nodes.
const MostTreatments = 200

// PlanTreatment is what is done to nodes that are treated alike, or to one thing that is no
// node.
type PlanTreatment struct {
	Of    []string   `json:"of"` // names of nodes, or one thing: switch r01/leaf-1
	Steps []PlanStep `json:"steps"`
	Wave  string     `json:"wave,omitempty"` // of a rollout: canary, batch-2
}

// PlanGate lets a rollout go on after a wave.
type PlanGate struct {
	Role  string `json:"role"`
	Wave  string `json:"wave"` // that has ended then
	Title string `json:"title"`
	Nodes int    `json:"nodes"` // of all waves so far
	Most  int    `json:"most"`  // failures that do not stop the rollout
}

// SetReview shows a plan that waits for its approval. Like ApproveReview and EndReview it returns
// at once; the next reading shows it. One goroutine at a time calls them.
func (k *Keeper) SetReview(r Review) { k.review.Store(&r) }

// ApproveReview says that the plan of SetReview, if there is one, was approved. Its run takes its
// place once it has begun.
func (k *Keeper) ApproveReview() {
	if r := k.review.Load(); r != nil {
		k.SetReview(Review{Plan: r.Plan, Expected: r.Expected, Approved: true})
	}
}

// EndReview shows the plan of SetReview no more.
func (k *Keeper) EndReview() { k.review.Store(nil) }

// takeReview lets the last reading have the plan that is reviewed now; k.mu is held.
func (k *Keeper) takeReview() {
	if r := k.review.Load(); k.last != nil && k.last.review != r {
		s := *k.last
		s.review = r
		s.Generation++
		k.last = &s
	}
}

// reviewed is the plan that is under review; nil where there is none, or where run, which
// may be nil, has begun with it since it was approved.
func (s *Snapshot) reviewed(run *storedPlan) *storedPlan {
	r := s.review
	if r == nil || r.Approved && run != nil && run.Plan.ID == r.Plan.ID {
		return nil
	}
	return &storedPlan{Plan: r.Plan, review: r}
}

// addTreatments puts nodes together whose steps and reasons are alike, in the order of the
// plan; things that are not nodes follow alone.
func (p *Plan) addTreatments(of *plan.Plan) {
	type part struct {
		subject.ID
		wave string
	}
	var order []part
	by := map[part][]plan.Step{}
	for _, s := range of.Steps {
		at := part{ID: s.Subject}
		if s.Subject.Kind != subject.Node {
			at.wave = s.ID.Wave()
		}
		if by[at] == nil {
			order = append(order, at)
		}
		by[at] = append(by[at], s)
		if g := s.Gate; g != nil {
			p.Gates = append(p.Gates, PlanGate{g.Of, g.Wave, s.Title, len(g.Nodes), g.Most})
		}
	}
	waves := map[string]string{}
	for _, r := range of.Rollouts {
		for _, w := range r.Waves {
			for _, n := range w.Nodes {
				waves[n] = w.Name
			}
		}
	}
	alike := map[string]int{}
	var others []PlanTreatment
	for _, at := range order {
		if at.Kind != subject.Node {
			others = append(others, newTreatment(at.ID.String(), at.wave, by[at]))
			continue
		}
		like := waves[at.Name] + "\x00" + plan.Treatment(at.Name, by[at])
		if i, known := alike[like]; known {
			p.Treatments[i].join(at.Name)
			continue
		}
		alike[like] = len(p.Treatments)
		p.Treatments = append(p.Treatments, newTreatment(at.Name, waves[at.Name], by[at]))
	}
	p.Treatments = append(p.Treatments, others...)
	p.MoreTreatments = max(0, len(p.Treatments)-MostTreatments)
	p.Treatments = slices.Clip(p.Treatments[:len(p.Treatments)-p.MoreTreatments])
}

// join adds a node that is treated alike. Which disks are erased is said of each node alone, in
// Erases: those of the first would be taken for those of all.
func (t *PlanTreatment) join(node string) {
	for i := range t.Steps {
		s := &t.Steps[i]
		if what, _, listed := strings.Cut(s.Erases, ": "); listed {
			s.Erases = what + ": of each node those that are listed above"
		}
	}
	t.Of = append(t.Of, node)
}

func newTreatment(of, wave string, steps []plan.Step) PlanTreatment {
	t := PlanTreatment{Of: []string{of}, Wave: wave, Steps: make([]PlanStep, 0, len(steps))}
	for i := range steps {
		t.Steps = append(t.Steps, newPlanStep(&steps[i]))
	}
	return t
}
