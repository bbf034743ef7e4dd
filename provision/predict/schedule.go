// SPDX-License-Identifier: Apache-2.0

package predict

import (
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
	blockedOn  []int32 // the resource that it waited for; -1: a need, or nothing
	wall       float64
	stuck      string // a step that never started; "" when all did
}

// queue holds the ready steps that use the same: when the first cannot start,
// neither can the others, so that they are tried and parked together. (Steps that
// each bounce between two scarce resources would make a large plan quadratic.)
type queue struct {
	steps     heap[ranked]
	blockedOn int32 // resource that it is parked on; free when it is not
	was       int32 // resource that its first step was parked on last
	met       int32 // resource that any of its steps was parked on last
}

// free is the resource that a queue lacks which is not parked.
const free = -1

// runner is the work of one run of a graph.
type runner struct {
	*graph
	costs  []cost
	relax  string // class of resource that is not limited here
	out    schedule
	unmet  []int32
	queues []queue        // of ready steps, by signature
	ready  heap[ranked]   // queues whose first step is to be tried
	parked []heap[ranked] // queues by the resource that their first step lacks
	used   []int
	moved  []int     // resources whose first parked queue may have its chance now
	since  []float64 // when each step became ready
	events heap[moment]
	flows  flows
	now    float64
}

// run schedules the graph as the engine would: a step starts when its needs are
// met and all that it uses is free; of several the lowest rank goes first, and
// none passes a more urgent one on a resource.
func (g *graph) run(costs []cost, link unit.BitRate, relax string) schedule {
	n := len(g.steps)
	r := &runner{graph: g, costs: costs, relax: relax, unmet: append([]int32(nil), g.needs...), queues: make([]queue, len(g.signatures)),
		parked: make([]heap[ranked], len(g.names)), used: make([]int, len(g.names)), since: make([]float64, n),
		out: schedule{start: make([]float64, n), end: make([]float64, n), cause: make([]int32, n), blockedOn: make([]int32, n)}}
	for i := range r.queues {
		r.queues[i] = queue{blockedOn: free, was: free, met: free}
	}
	r.flows.link = bytesPerSecond(link)
	if relax == uplink {
		r.flows.link = math.Inf(1)
	}
	for i := range n {
		r.out.start[i], r.out.cause[i] = -1, -1
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
		e := r.events.pop()
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
		for _, u := range r.signatures[r.sign[e.step]] {
			if u.until {
				r.give(u)
			}
		}
		r.startReady(e.step)
		return
	}
	for _, u := range r.signatures[r.sign[e.step]] {
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

// push takes in a step whose needs are met.
func (r *runner) push(t int32) {
	r.since[t] = r.now
	q := &r.queues[r.sign[t]]
	q.steps.push(ranked{r.rank[t], t})
	if q.steps[0].of == t { // more urgent than those that its queue was parked for
		r.offer(r.sign[t])
	}
}

// offer has a queue tried.
func (r *runner) offer(i int32) {
	q := &r.queues[i]
	q.blockedOn = free
	r.ready.push(ranked{q.steps[0].rank, i})
}

// startReady starts every ready step whose resources are free. cause is the step
// that made room.
func (r *runner) startReady(cause int32) {
	for {
		for len(r.moved) > 0 {
			last := len(r.moved) - 1
			on := r.moved[last]
			r.moved = r.moved[:last]
			if r.waiting(on) {
				r.offer(r.parked[on].pop().of)
			}
		}
		if len(r.ready) == 0 {
			return
		}
		e := r.ready.pop()
		if q := &r.queues[e.of]; q.blockedOn == free && len(q.steps) > 0 && q.steps[0].rank == e.rank {
			r.try(e.of, cause)
		}
	}
}

// waiting reports whether a queue is parked on a resource, and forgets entries of
// queues that are not there any more.
func (r *runner) waiting(on int) bool {
	for len(r.parked[on]) > 0 {
		e := r.parked[on][0]
		if q := &r.queues[e.of]; q.blockedOn == int32(on) && q.steps[0].rank == e.rank {
			return true
		}
		r.parked[on].pop()
	}
	return false
}

// try takes all that the first step of a queue uses and starts it, or parks the
// queue on the first resource that it lacks.
func (r *runner) try(i, cause int32) {
	q := &r.queues[i]
	uses, first := r.signatures[i], q.steps[0]
	for _, u := range uses {
		limit := r.limit[u.resource]
		if limit == 0 || r.relax != "" && r.relax == r.classOf[u.resource] {
			continue
		}
		if r.used[u.resource]+u.units > limit || r.waiting(u.resource) && r.parked[u.resource][0].rank < first.rank {
			before := q.was
			q.blockedOn, q.was, q.met = int32(u.resource), int32(u.resource), int32(u.resource)
			r.parked[u.resource].push(ranked{first.rank, i})
			if before != q.was {
				r.stir(uses, u.resource)
			}
			return
		}
	}
	for _, u := range uses {
		r.used[u.resource] += u.units
	}
	r.begin(q.steps.pop().of, q.met, cause)
	q.was = free
	if len(q.steps) > 0 {
		r.offer(i)
	}
	r.stir(uses, free)
}

// begin notes why t starts now and when it ends.
func (r *runner) begin(t, waitedFor, cause int32) {
	r.out.start[t], r.out.blockedOn[t] = r.now, -1
	if waitedFor >= 0 && r.now > r.since[t] {
		r.out.cause[t], r.out.blockedOn[t] = cause, waitedFor
	}
	if c := r.costs[t]; c.bytes > 0 {
		r.flows.add(t, c.bytes, c.rate)
		return
	}
	r.finishIn(t, r.costs[t].fixed)
}

// finishIn ends t after a time, and lets go what it holds until released in it.
func (r *runner) finishIn(t int32, after float64) {
	for _, u := range r.signatures[r.sign[t]] {
		if u.until {
			r.events.push(moment{at: r.now + after*r.costs[t].hold, step: t, release: true})
			break
		}
	}
	r.events.push(moment{at: r.now + after, step: t})
}

func (r *runner) give(u use) {
	r.used[u.resource] -= u.units
	r.moved = append(r.moved, u.resource)
}

// stir gives those parked on all but one of the resources their chance.
func (r *runner) stir(uses []use, but int) {
	for _, u := range uses {
		if u.resource != but && r.used[u.resource] < r.limit[u.resource] && len(r.parked[u.resource]) > 0 {
			r.moved = append(r.moved, u.resource)
		}
	}
}
