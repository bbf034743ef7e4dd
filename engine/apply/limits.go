// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
)

// line lends units of resources, all that are asked for or none: the first in line first, so that
// a later one does not pass an earlier one on a resource of both. Its owner's mutex guards it.
type line struct {
	capacity map[string]int // see findCapacity
	used     map[string]int // also by others than borrowers
	waiting  []*borrower
	wanted   map[string]int // by those that wait
	lent     int            // borrowers that have what they asked for
}

// borrower waits for units of resources, or has them.
type borrower struct {
	uses    []plan.Use
	granted chan struct{} // closed when it has them
}

func newLine(capacity map[string]int) line {
	return line{capacity: capacity, used: map[string]int{}, wanted: map[string]int{}}
}

// units is how many there are of a resource; 0: it has no capacity.
func (l *line) units(resource string) int {
	n, _ := findCapacity(l.capacity, resource)
	return n
}

// join gives a borrower what it asks for, or a place at the end of the line. What could never be had
// is refused.
func (l *line) join(uses []plan.Use) (*borrower, error) {
	for _, u := range uses {
		if n := l.units(u.Resource); u.Units <= 0 || u.Units > n {
			return nil, errkind.New(errkind.Internal, "%d units of %s can never be had of %d", u.Units, u.Resource, n)
		}
	}
	b := &borrower{uses: uses, granted: make(chan struct{})}
	if !l.lendTo(b, l.wanted) { // without a walk along the line, which may be of 12,500 nodes
		l.waiting = append(l.waiting, b)
		countWanted(l.wanted, b, 1)
	}
	return b, nil
}

// leave takes back what a borrower has, or its place, and serves those behind it.
func (l *line) leave(b *borrower) {
	select {
	case <-b.granted:
		l.lent--
		for _, u := range b.uses {
			l.used[u.Resource] -= u.Units
		}
	default:
		l.waiting = slices.DeleteFunc(l.waiting, func(x *borrower) bool { return x == b })
		countWanted(l.wanted, b, -1)
	}
	if slices.ContainsFunc(b.uses, func(u plan.Use) bool { return l.wanted[u.Resource] > 0 }) {
		l.serve()
	}
}

// serve gives those that wait what there is.
func (l *line) serve() {
	if len(l.waiting) == 0 {
		return
	}
	before := map[string]int{}
	l.waiting = slices.DeleteFunc(l.waiting, func(b *borrower) bool {
		if l.lendTo(b, before) {
			countWanted(l.wanted, b, -1)
			return true
		}
		countWanted(before, b, 1)
		return false
	})
}

// lendTo gives a borrower its resources, unless somebody before it wants some of them, or they are
// not there.
func (l *line) lendTo(b *borrower, wanted map[string]int) bool {
	for _, u := range b.uses {
		if wanted[u.Resource] > 0 || l.used[u.Resource]+u.Units > l.units(u.Resource) {
			return false
		}
	}
	for _, u := range b.uses {
		l.used[u.Resource] += u.Units
	}
	l.lent++
	close(b.granted)
	return true
}

// countWanted counts a borrower in line, or with -1 one that left it.
func countWanted(wanted map[string]int, b *borrower, by int) {
	for _, u := range b.uses {
		wanted[u.Resource] += by
	}
}

// wait waits until the borrower has what it asked for, or ctx is done.
func (b *borrower) wait(ctx context.Context) error {
	select {
	case <-b.granted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Limits lends resources while no run has them. It is safe for concurrent use.
type Limits struct {
	mu   sync.Mutex
	line line
}

// NewLimits returns resources of which nothing is used. A name that ends in a slash stands for every
// resource that begins with it.
func NewLimits(capacity map[string]int) *Limits { return &Limits{line: newLine(capacity)} }

// Units is how many there are of a resource.
func (l *Limits) Units(resource string) int { return l.line.units(resource) }

// Borrow claims units of resources; see Executor.Borrow.
func (l *Limits) Borrow(uses []plan.Use) (wait func(context.Context) error, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.line.join(uses)
	if err != nil {
		return nil, nil, err
	}
	return b.wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.line.leave(b)
	}, nil
}
