// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// stepSlots is the resource that every step uses: steps at once.
const stepSlots = "steps"

// maxMoves is how often a task is sent from one resource to another before it
// reserves all that it needs.
const maxMoves = 4

// resources counts what is in use. A task takes all that it needs or nothing,
// and otherwise is parked on the first resource that it lacks. There it keeps
// its rank: a less urgent task does not pass it on that resource, so that a
// large claim is not starved by small ones. One that needs several resources and
// was sent from one to another more than patience times reserves all of them: no
// less urgent task takes any of them before it.
//
// So what a ready task waits for is bounded. While it is parked on a resource no
// less urgent task starts on that one: only those end that have it already, of whom
// there are at most as many as it has units, and those that are more urgent. It is
// sent elsewhere at most patience+1 times, and then, with everything reserved,
// at most once for each of its resources, but for more urgent tasks. Guarded by
// Executor.mu.
type resources struct {
	limit     map[string]int
	used      map[string]int
	parked    map[string]*taskHeap
	units     func(name string, used, limit int) string
	reserving []*task  // that reserve all that they use, but for step slots
	offered   []string // resources whose first parked task may have its chance now
	line      line     // of work outside of the plan; it shares used
}

// use is what a task takes of one resource.
type use struct {
	Resource string
	Units    int
	held     bool
}

func newResources(c Config, tasks []*task) (*resources, error) {
	r := &resources{limit: map[string]int{stepSlots: c.Parallel}, parked: map[string]*taskHeap{}, units: c.Units, line: newLine(c.Capacity)}
	r.used = r.line.used
	if r.units == nil {
		r.units = func(_ string, used, limit int) string { return fmt.Sprintf("%d of %d in use", used, limit) }
	}
	for _, t := range tasks {
		for _, u := range t.uses {
			n, ok := findCapacity(c.Capacity, u.Resource)
			switch {
			case !ok:
				return nil, fmt.Errorf("plan: step %s uses %s, which has no capacity", t.step.ID, u.Resource)
			case u.Units <= 0 || u.Units > n:
				return nil, fmt.Errorf("plan: step %s uses %d units of %s, which has %d: it could never start", t.step.ID, u.Units, u.Resource, n)
			}
			r.limit[u.Resource] = n
		}
		t.uses = append(t.uses, use{Resource: stepSlots, Units: 1})
	}
	return r, nil
}

// findCapacity finds the units of a resource, by its name or its longest prefix.
func findCapacity(of map[string]int, name string) (int, bool) {
	if n, ok := of[name]; ok {
		return n, true
	}
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if n, ok := of[name[:i+1]]; ok {
			return n, true
		}
	}
	return 0, false
}

// acquire gives t everything that it uses, or parks it. When t starts, or has to
// wait elsewhere than before, those parked behind it get their chance.
func (r *resources) acquire(t *task) bool {
	was := t.lacks
	t.lacks = ""
	for _, u := range t.uses {
		if r.used[u.Resource]+u.Units > r.limit[u.Resource] || r.isBehind(t, u.Resource) || r.isReserved(t, u.Resource) || r.isWanted(u.Resource) {
			r.park(t, u.Resource)
			if t.lacks != was {
				r.offerOthers(t)
				r.countMove(t, was)
			}
			return false
		}
	}
	r.reserving = slices.DeleteFunc(r.reserving, func(s *task) bool { return s == t })
	for i := range t.uses {
		u := &t.uses[i]
		r.used[u.Resource] += u.Units
		u.held = true
	}
	r.offerOthers(t)
	return true
}

// countMove counts that a task was parked elsewhere than before.
func (r *resources) countMove(t *task, was string) {
	if was == "" {
		return
	}
	if t.moves++; t.moves == maxMoves+1 {
		r.reserving = append(r.reserving, t)
	}
}

// isReserved reports whether a more urgent task reserves the resource.
func (r *resources) isReserved(t *task, name string) bool {
	if name == stepSlots || len(r.reserving) == 0 {
		return false
	}
	r.reserving = slices.DeleteFunc(r.reserving, func(s *task) bool { return s.state != ready })
	return slices.ContainsFunc(r.reserving, func(s *task) bool {
		return s.rank.less(t.rank) && slices.ContainsFunc(s.uses, func(u use) bool { return u.Resource == name })
	})
}

// withdraw takes back that a task wants to start: it was settled.
func (r *resources) withdraw(t *task) {
	t.lacks = ""
	r.offerOthers(t)
}

// offerOthers gives those parked on the other resources of t their chance.
func (r *resources) offerOthers(t *task) {
	for _, u := range t.uses {
		if u.Resource != t.lacks && r.used[u.Resource] < r.limit[u.Resource] {
			r.offered = append(r.offered, u.Resource)
		}
	}
}

// isBehind reports whether a more urgent task is parked on the resource.
func (r *resources) isBehind(t *task, name string) bool {
	q := r.parkedOn(name)
	return q != nil && q.Len() > 0 && (*q)[0].rank.less(t.rank)
}

// parkedOn returns those parked on a resource, without any at its head that went
// back to pending, is parked elsewhere, or was settled meanwhile.
func (r *resources) parkedOn(name string) *taskHeap {
	q := r.parked[name]
	for q != nil && q.Len() > 0 && ((*q)[0].state != ready || (*q)[0].lacks != name) {
		heap.Pop(q)
	}
	return q
}

func (r *resources) park(t *task, name string) {
	q := r.parked[name]
	if q == nil {
		q = &taskHeap{}
		r.parked[name] = q
	}
	t.lacks = name
	heap.Push(q, t)
}

// release returns what t holds of a resource; of all of them for the name "".
func (r *resources) release(t *task, name string) {
	for i := range t.uses {
		u := &t.uses[i]
		if u.held && (name == "" || u.Resource == name) {
			r.used[u.Resource] -= u.Units
			u.held = false
			r.offered = append(r.offered, u.Resource)
		}
	}
	r.line.serve()
}

// holds reports whether t has units of a resource.
func (t *task) holds(name string) bool {
	return slices.ContainsFunc(t.uses, func(u use) bool { return u.held && u.Resource == name })
}

// nextUnparked takes a task that may have its chance out of its parking place; nil when
// there is none. The caller tries it by rank among all that are ready.
func (r *resources) nextUnparked() *task {
	for len(r.offered) > 0 {
		q := r.parkedOn(r.offered[0])
		r.offered = r.offered[1:]
		if q != nil && q.Len() > 0 {
			return heap.Pop(q).(*task)
		}
	}
	r.offered = nil
	return nil
}

// describeWait says what a parked task waits for.
func (r *resources) describeWait(name string) string {
	if name == stepSlots {
		return fmt.Sprintf("waits for its turn: %d steps run", r.used[name])
	}
	return fmt.Sprintf("waits for %s: %s", name, r.units(name, r.used[name], r.limit[name]))
}
