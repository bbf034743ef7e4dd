// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// borrower is work outside of the plan that waits for resources of the run, or has them.
type borrower struct {
	uses    []plan.Use
	granted chan struct{} // closed when it has them
}

// Borrow claims units of resources for work outside of the plan, such as an operator's own
// power-on of a node: all of them or none, in line behind earlier claims. wait returns once the
// claim is granted, or ctx is done. end gives all back, or leaves the line; it is called
// once, also after the run has ended. A step never passes a claim in line: an operator's work
// is small. Borrow is safe for concurrent use.
func (e *Executor) Borrow(uses []plan.Use) (wait func(context.Context) error, end func(), err error) {
	b := &borrower{uses: uses, granted: make(chan struct{})}
	r := e.graph.resources
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := r.checkBorrowed(e.cfg.Capacity, uses); err != nil {
		return nil, nil, err
	}
	if !r.lendTo(b, r.wanted) { // without a walk along the line, which may be of 12,500 nodes
		r.borrowers = append(r.borrowers, b)
		countWanted(r.wanted, b, 1)
	}
	wait = func(ctx context.Context) error {
		select {
		case <-b.granted:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return wait, func() { e.endBorrow(b) }, nil
}

// endBorrow gives back what a borrower has, or takes it out of the line.
func (e *Executor) endBorrow(b *borrower) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.graph.resources.endBorrow(b)
	e.wakeLoop()
}

// checkBorrowed refuses what could never be lent, and learns the limits of resources that no
// step uses.
func (r *resources) checkBorrowed(capacity map[string]int, uses []plan.Use) error {
	for _, u := range uses {
		n, ok := findCapacity(capacity, u.Resource)
		if !ok || u.Units <= 0 || u.Units > n {
			return errkind.New(errkind.Internal, "%d units of %s can never be had of %d", u.Units, u.Resource, n)
		}
		r.limit[u.Resource] = n
	}
	return nil
}

// lend gives waiting borrowers their resources, the first in line first: a later one does not
// pass an earlier one on a resource of both.
func (r *resources) lend() {
	if len(r.borrowers) == 0 {
		return
	}
	before := map[string]int{}
	r.borrowers = slices.DeleteFunc(r.borrowers, func(b *borrower) bool {
		if r.lendTo(b, before) {
			countWanted(r.wanted, b, -1)
			return true
		}
		countWanted(before, b, 1)
		return false
	})
}

// lendTo gives a borrower its resources, unless somebody before it wants some of them, or they are
// not there.
func (r *resources) lendTo(b *borrower, wanted map[string]int) bool {
	for _, u := range b.uses {
		if wanted[u.Resource] > 0 || r.used[u.Resource]+u.Units > r.limit[u.Resource] {
			return false
		}
	}
	for _, u := range b.uses {
		r.used[u.Resource] += u.Units
	}
	r.lent++
	close(b.granted)
	return true
}

// countWanted counts a borrower in line, or with -1 one that left it.
func countWanted(wanted map[string]int, b *borrower, by int) {
	for _, u := range b.uses {
		wanted[u.Resource] += by
	}
}

// endBorrow ends a borrow, granted or not, and gives those behind it their chance.
func (r *resources) endBorrow(b *borrower) {
	select {
	case <-b.granted:
		r.lent--
		for _, u := range b.uses {
			r.used[u.Resource] -= u.Units
		}
	default:
		r.borrowers = slices.DeleteFunc(r.borrowers, func(x *borrower) bool { return x == b })
		countWanted(r.wanted, b, -1)
	}
	for _, u := range b.uses {
		r.offered = append(r.offered, u.Resource)
	}
	r.lend()
}

// isWanted reports whether a borrower waits for the resource.
func (r *resources) isWanted(name string) bool { return r.wanted[name] > 0 }

// awaitsBorrowers reports whether a ready task is parked while something is lent: it may
// start once that is given back.
func (r *resources) awaitsBorrowers() bool {
	if r.lent+len(r.borrowers) == 0 {
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
