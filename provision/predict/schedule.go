package predict

import (
	"container/heap"
	"math"

	"github.com/ironrail/ironrail/inventory/unit"
)

// cost is how long one step takes: first its stream, if it has one, then the rest.
type cost struct {
	fixed float64 // seconds
	bytes float64 // on the wire
	rate  float64 // bytes per second that the node itself takes; above zero where bytes is
	hold  float64 // share of fixed after which it lets go what it holds until released
}

// alone is the duration with the whole uplink.
func (c cost) alone(link float64) float64 {
	if c.bytes <= 0 {
		return c.fixed
	}
	return c.fixed + c.bytes/min(c.rate, link)
}

// schedule is one run of a graph. Times are seconds from the start.
type schedule struct {
	start, end []float64
	cause      []int32 // the step after whose end or release this one started; -1: none
	lacked     []int32 // the resource that it waited for; -1: a need, or nothing
	wall       float64
	stuck      string // a step that never started; "" when all did
}

// runner is the work of one run of a graph.
type runner struct {
	*graph
	costs  []cost
	relax  string // class of resource that is not limited here
	out    schedule
	unmet  []int32
	ready  rankHeap
	parked []rankHeap // by resource
	used   []int
	moved  []int // resources whose first parked step may have its chance now
	lacks  []int32
	since  []float64 // when it became ready
	events eventHeap
	flows  flows
	now    float64
}

// run schedules the graph as the engine would: a step starts when its needs are
// met and all that it uses is free; of several the lowest rank goes first, and
// none passes a more urgent one on a resource.
func (g *graph) run(costs []cost, link unit.BitRate, relax string) schedule {
	n := len(g.steps)
	r := &runner{graph: g, costs: costs, relax: relax, unmet: append([]int32(nil), g.needs...), parked: make([]rankHeap, len(g.names)),
		used: make([]int, len(g.names)), lacks: make([]int32, n), since: make([]float64, n),
		out: schedule{start: make([]float64, n), end: make([]float64, n), cause: make([]int32, n), lacked: make([]int32, n)}}
	r.flows.link = bytesPerSecond(link)
	if relax == uplink {
		r.flows.link = math.Inf(1)
	}
	for i := range n {
		r.out.start[i], r.lacks[i] = -1, -1
		if r.unmet[i] == 0 {
			r.push(int32(i))
		}
	}
	r.startReady(-1)
	for r.step() {
	}
	for i := range n {
		if r.out.start[i] < 0 {
			r.out.stuck = string(g.steps[i].ID)
		}
	}
	return r.out
}

// bytesPerSecond is what of a line rate is left for an image: 94 %, the share of
// TCP payload in full Ethernet frames. No rate is no limit.
func bytesPerSecond(rate unit.BitRate) float64 {
	if rate <= 0 {
		return math.Inf(1)
	}
	return float64(rate) / 8 * 0.94
}

// step goes to the next event; false when there is none.
func (r *runner) step() bool {
	stream, at := r.flows.next(r.now)
	if len(r.events) > 0 && r.events[0].at <= at {
		e := heap.Pop(&r.events).(moment)
		r.advance(e.at)
		r.happen(e)
		return true
	}
	if stream < 0 {
		return false
	}
	r.advance(at)
	r.flows.remove(stream)
	r.finishIn(stream, r.costs[stream].fixed)
	return true
}

func (r *runner) advance(to float64) {
	r.flows.pass(to - r.now)
	r.now = to
}

// happen takes in the end of a step, or its release of a resource.
func (r *runner) happen(e moment) {
	if e.release {
		for _, u := range r.uses[e.step] {
			if u.until {
				r.give(u)
			}
		}
		r.startReady(e.step)
		return
	}
	for _, u := range r.uses[e.step] {
		if !u.until {
			r.give(u)
		}
	}
	r.out.end[e.step] = r.now
	r.out.wall = max(r.out.wall, r.now)
	for _, t := range r.triggers[e.step] {
		if r.unmet[t]--; r.unmet[t] == 0 {
			r.out.cause[t] = e.step
			r.push(t)
		}
	}
	r.startReady(e.step)
}

func (r *runner) push(t int32) {
	r.since[t] = r.now
	heap.Push(&r.ready, ranked{r.rank[t], t})
}

// startReady starts every ready step whose resources are free. cause is the step
// that made room.
func (r *runner) startReady(cause int32) {
	for {
		for len(r.moved) > 0 {
			q := &r.parked[r.moved[0]]
			r.moved = r.moved[1:]
			if q.Len() > 0 {
				heap.Push(&r.ready, heap.Pop(q))
			}
		}
		r.moved = r.moved[:0]
		if r.ready.Len() == 0 {
			return
		}
		r.try(heap.Pop(&r.ready).(ranked).step, cause)
	}
}

// try takes all that t uses and starts it, or parks it on the first resource
// that it lacks.
func (r *runner) try(t, cause int32) {
	was := r.lacks[t]
	r.lacks[t] = -1
	for _, u := range r.uses[t] {
		limit := r.limit[u.resource]
		if limit == 0 || r.relax != "" && r.relax == r.classOf[u.resource] {
			continue
		}
		q := r.parked[u.resource]
		if r.used[u.resource]+u.units > limit || q.Len() > 0 && q[0].rank < r.rank[t] {
			r.lacks[t] = int32(u.resource)
			heap.Push(&r.parked[u.resource], ranked{r.rank[t], t})
			if was != r.lacks[t] {
				r.stir(t)
			}
			return
		}
	}
	for _, u := range r.uses[t] {
		r.used[u.resource] += u.units
	}
	r.begin(t, was, cause)
	r.stir(t)
}

// begin notes why t starts now and when it ends.
func (r *runner) begin(t, waitedFor, cause int32) {
	r.out.start[t], r.out.lacked[t] = r.now, -1
	switch {
	case waitedFor >= 0 && r.now > r.since[t]:
		r.out.cause[t], r.out.lacked[t] = cause, waitedFor
	case r.needs[t] == 0:
		r.out.cause[t] = -1
	}
	if c := r.costs[t]; c.bytes > 0 {
		r.flows.add(t, c.bytes, c.rate)
		return
	}
	r.finishIn(t, r.costs[t].fixed)
}

// finishIn ends t after a time, and lets go what it holds until released in it.
func (r *runner) finishIn(t int32, after float64) {
	for _, u := range r.uses[t] {
		if u.until {
			heap.Push(&r.events, moment{at: r.now + after*r.costs[t].hold, step: t, release: true})
			break
		}
	}
	heap.Push(&r.events, moment{at: r.now + after, step: t})
}

func (r *runner) give(u use) {
	r.used[u.resource] -= u.units
	r.moved = append(r.moved, u.resource)
}

// stir gives those parked on the other resources of t their chance.
func (r *runner) stir(t int32) {
	for _, u := range r.uses[t] {
		if int32(u.resource) != r.lacks[t] && r.used[u.resource] < r.limit[u.resource] {
			r.moved = append(r.moved, u.resource)
		}
	}
}
