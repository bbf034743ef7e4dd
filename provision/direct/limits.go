// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
)

// ownLimits are resources while no run has them: first come, first served.
type ownLimits struct {
	capacity map[string]int

	mu     sync.Mutex // guards what follows
	used   map[string]int
	line   []*place
	wanted map[string]int // places in line, by resource
}

// place is a place in line.
type place struct {
	uses    []plan.Use
	granted chan struct{} // closed when it has them
}

// newLimits are resources that no run uses. A name that ends in a slash stands for every
// resource that begins with it.
func newLimits(capacity map[string]int) *ownLimits {
	return &ownLimits{capacity: capacity, used: map[string]int{}, wanted: map[string]int{}}
}

// Borrow implements Limits.
func (l *ownLimits) Borrow(uses []plan.Use) (wait func(context.Context) error, end func(), err error) {
	for _, u := range uses {
		if n := l.limitOf(u.Resource); u.Units <= 0 || u.Units > n {
			return nil, nil, errkind.New(errkind.Internal, "%d units of %s can never be had of %d", u.Units, u.Resource, n)
		}
	}
	c := &place{uses, make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.take(c, l.wanted) { // without a walk along the line, which may be of 12,500 nodes
		l.line = append(l.line, c)
		count(l.wanted, uses, 1)
	}
	wait = func(ctx context.Context) error {
		select {
		case <-c.granted:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return wait, func() { l.giveBack(c) }, nil
}

// limitOf is how much there is of a resource, by its name or its longest prefix.
func (l *ownLimits) limitOf(name string) int {
	if n, ok := l.capacity[name]; ok {
		return n
	}
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if n, ok := l.capacity[name[:i+1]]; ok {
			return n
		}
	}
	return 0
}

// take gives a place what it uses, unless somebody before it waits for some of that, or it is not
// there. Called with mu held.
func (l *ownLimits) take(c *place, wanted map[string]int) bool {
	for _, u := range c.uses {
		if wanted[u.Resource] > 0 || l.used[u.Resource]+u.Units > l.limitOf(u.Resource) {
			return false
		}
	}
	for _, u := range c.uses {
		l.used[u.Resource] += u.Units
	}
	close(c.granted)
	return true
}

// count counts a place in line, or with -1 one that left it.
func count(wanted map[string]int, uses []plan.Use, by int) {
	for _, u := range uses {
		wanted[u.Resource] += by
	}
}

// giveBack ends a place, granted or not, and serves those that wait for the same; a later one does
// not pass an earlier one on a resource of both.
func (l *ownLimits) giveBack(c *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-c.granted:
		for _, u := range c.uses {
			l.used[u.Resource] -= u.Units
		}
	default:
		l.line = slices.DeleteFunc(l.line, func(x *place) bool { return x == c })
		count(l.wanted, c.uses, -1)
	}
	if !slices.ContainsFunc(c.uses, func(u plan.Use) bool { return l.wanted[u.Resource] > 0 }) {
		return
	}
	before := map[string]int{}
	l.line = slices.DeleteFunc(l.line, func(x *place) bool {
		if l.take(x, before) {
			count(l.wanted, x.uses, -1)
			return true
		}
		count(before, x.uses, 1)
		return false
	})
}

// batches puts steps that switch nodes on into batches, each of which fits the limits as a whole.
type batches struct {
	limit func(resource string) int
	used  []map[string]int // by batch
}

// place puts a step into the first batch that has room for it, and returns its number, from 1.
func (b *batches) place(uses []plan.Use) int {
	i := slices.IndexFunc(b.used, func(used map[string]int) bool {
		return !slices.ContainsFunc(uses, func(u plan.Use) bool { return used[u.Resource]+u.Units > b.limit(u.Resource) })
	})
	if i < 0 {
		i, b.used = len(b.used), append(b.used, map[string]int{})
	}
	for _, u := range uses {
		b.used[i][u.Resource] += u.Units
	}
	return i + 1
}
