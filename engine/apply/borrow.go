// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// Borrow claims units of resources for work outside of the plan, such as an operator's own
// power-on of a node: all of them or none, in line behind earlier claims. wait returns once the
// claim is granted, or ctx is done. end gives all back, or leaves the line; it is called
// once, also after the run has ended. A step never passes a claim in line: an operator's work
// is small. Borrow is safe for concurrent use.
func (e *Executor) Borrow(uses []plan.Use) (wait func(context.Context) error, end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.graph.resources.line.join(uses)
	if err != nil {
		return nil, nil, err
	}
	return b.wait, func() { e.endBorrow(b) }, nil
}

// endBorrow gives back what a borrower has, or takes it out of the line.
func (e *Executor) endBorrow(b *borrower) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.graph.resources.endBorrow(b)
	e.wakeLoop()
}

// endBorrow ends a borrow, granted or not, and gives those behind it their chance.
func (r *resources) endBorrow(b *borrower) {
	r.line.leave(b)
	for _, u := range b.uses {
		r.offered = append(r.offered, u.Resource)
	}
}

// isWanted reports whether a borrower waits for the resource.
func (r *resources) isWanted(name string) bool { return r.line.wanted[name] > 0 }

// awaitsBorrowers reports whether a ready task is parked while something is lent: it may
// start once that is given back.
func (r *resources) awaitsBorrowers() bool {
	if r.line.lent+len(r.line.waiting) == 0 {
		return false
	}
	for name := range r.parked {
		if q := r.parkedOn(name); q != nil && q.Len() > 0 {
			return true
		}
	}
	return false
}

// tasksOf returns the tasks that work on a node or could, in the order of the plan. An operator
// may ask about each of 12,500 nodes: one walk over the plan serves all.
func (g *graph) tasksOf(node string) []*task {
	if g.byNode == nil {
		g.byNode = make(map[string][]*task, len(g.nodes))
		for _, t := range g.tasks {
			for _, n := range nodesOf(t.step) {
				if of := g.byNode[n]; len(of) == 0 || of[len(of)-1] != t {
					g.byNode[n] = append(of, t)
				}
			}
		}
	}
	return g.byNode[node]
}

// NextStep returns the first step that this run still has for a node; "" when there is none. A
// group that has not started leaves a node out that is on hold or in quarantine. It is safe
// for concurrent use.
func (e *Executor) NextStep(node string) plan.StepID {
	out := e.ledger.condition(node).blocked()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graph.tasksOf(node) {
		if t.state.settled() {
			continue
		}
		if nodeOf(t.step) == node || !out || t.state == running && slices.Contains(t.members, subject.OfNode(node)) {
			return t.step.ID
		}
	}
	return ""
}
