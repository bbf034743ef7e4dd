package apply

import (
	"container/heap"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/provision/plan"
)

// stepSlots is the resource that every step uses: steps at once.
const stepSlots = "steps"

// resources counts what is in use. A task takes all that it needs or nothing,
// and otherwise is parked on the first resource that it lacks. There it keeps
// its rank: a less urgent task does not pass it on that resource, so that a
// large claim is not starved by small ones. Guarded by Executor.mu.
type resources struct {
	limit  map[string]int
	used   map[string]int
	parked map[string]*taskHeap
	held   map[*task]map[string]int // what each running task has
	moved  []string                 // resources whose first parked task may have its chance now
}

func newResources(c Config, tasks []*task) (*resources, error) {
	r := &resources{limit: map[string]int{stepSlots: c.Parallel}, used: map[string]int{},
		parked: map[string]*taskHeap{}, held: map[*task]map[string]int{}}
	for _, t := range tasks {
		for _, u := range t.uses {
			n, ok := capacity(c.Capacity, u.Resource)
			switch {
			case !ok:
				return nil, fmt.Errorf("plan: step %s uses %s, whose capacity nobody gave", t.step.ID, u.Resource)
			case u.Units <= 0 || u.Units > n:
				return nil, fmt.Errorf("plan: step %s uses %d units of %s, which has %d: it could never start", t.step.ID, u.Units, u.Resource, n)
			}
			r.limit[u.Resource] = n
		}
		t.uses = append(t.uses, plan.Use{Resource: stepSlots, Units: 1, Hold: plan.ForStep})
	}
	return r, nil
}

// capacity finds the units of a resource, by its name or its longest prefix.
func capacity(of map[string]int, name string) (int, bool) {
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

// take gives t everything that it uses, or parks it. When t starts, or has to
// wait elsewhere than before, those parked behind it get their chance.
func (r *resources) take(t *task) bool {
	was := t.lacks
	t.lacks = ""
	for _, u := range t.uses {
		if r.used[u.Resource]+u.Units > r.limit[u.Resource] || r.behind(t, u.Resource) {
			r.park(t, u.Resource)
			if t.lacks != was {
				r.stir(t)
			}
			return false
		}
	}
	held := make(map[string]int, len(t.uses))
	for _, u := range t.uses {
		r.used[u.Resource] += u.Units
		held[u.Resource] = u.Units
	}
	r.held[t] = held
	r.stir(t)
	return true
}

// stir gives those parked on the other resources of t their chance.
func (r *resources) stir(t *task) {
	for _, u := range t.uses {
		if u.Resource != t.lacks && r.used[u.Resource] < r.limit[u.Resource] {
			r.moved = append(r.moved, u.Resource)
		}
	}
}

// behind reports whether a more urgent task is parked on the resource.
func (r *resources) behind(t *task, name string) bool {
	q := r.parked[name]
	return q != nil && q.Len() > 0 && (*q)[0].rank.less(t.rank)
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

// give returns what t holds of a resource; of all of them for the name "".
func (r *resources) give(t *task, name string) {
	for _, u := range t.uses {
		units, has := r.held[t][u.Resource]
		if has && (name == "" || u.Resource == name) {
			r.used[u.Resource] -= units
			delete(r.held[t], u.Resource)
			r.moved = append(r.moved, u.Resource)
		}
	}
	if len(r.held[t]) == 0 {
		delete(r.held, t)
	}
}

// next takes a task that may have its chance out of its parking place; nil when
// there is none. The caller tries it by rank among all that are ready.
func (r *resources) next() *task {
	for len(r.moved) > 0 {
		q := r.parked[r.moved[0]]
		r.moved = r.moved[1:]
		if q != nil && q.Len() > 0 {
			return heap.Pop(q).(*task)
		}
	}
	r.moved = nil
	return nil
}

// describe says what a parked task waits for.
func (r *resources) describe(name string) string {
	if name == stepSlots {
		return fmt.Sprintf("waits for its turn: %d steps run", r.used[name])
	}
	return fmt.Sprintf("waits for %s: %d of %d in use", name, r.used[name], r.limit[name])
}
