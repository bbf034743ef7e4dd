// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"math"
	"slices"
)

// ordered is what a heap holds.
type ordered[T any] interface{ before(T) bool }

// heap gives the first of its items by their order.
type heap[T ordered[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q[i].before(q[up]) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && q[c].before(q[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// ranked is a step, or a queue of steps, by its rank.
type ranked struct {
	rank int64
	of   int32
}

func (r ranked) before(o ranked) bool { return r.rank < o.rank }

// moment is the end of a step, or its release of a resource.
type moment struct {
	at      float64
	step    int32
	release bool
}

// before orders by time, then by step, its release first.
func (m moment) before(o moment) bool {
	switch {
	case m.at != o.at:
		return m.at < o.at
	case m.step != o.step:
		return m.step < o.step
	}
	return m.release && !o.release
}

// flow is an image on its way.
type flow struct {
	step            int32
	left, cap, rate float64 // bytes, bytes per second, bytes per second now
}

// flows share one link fairly: each gets an equal part, and what one cannot take
// goes to the others (max-min fairness, as TCP streams come near it).
type flows struct {
	link float64 // bytes per second; infinite: none shared
	all  []flow  // by cap, so that the rates follow in one pass
}

func (f *flows) add(step int32, bytes, limit float64) {
	at, _ := slices.BinarySearchFunc(f.all, limit, func(x flow, limit float64) int {
		if x.cap < limit {
			return -1
		}
		return 1
	})
	f.all = slices.Insert(f.all, at, flow{step: step, left: bytes, cap: limit})
	f.share()
}

func (f *flows) remove(step int32) {
	f.all = slices.DeleteFunc(f.all, func(x flow) bool { return x.step == step })
	f.share()
}

// share gives every flow its rate.
func (f *flows) share() {
	left := f.link
	for i := range f.all {
		f.all[i].rate = min(f.all[i].cap, left/float64(len(f.all)-i))
		left -= f.all[i].rate
	}
}

// next returns the flow that ends first, and when; -1 when there is none.
func (f *flows) next(now float64) (step int32, at float64) {
	step, at = -1, math.Inf(1)
	for _, x := range f.all {
		if end := now + max(x.left, 0)/x.rate; end < at {
			step, at = x.step, end
		}
	}
	return step, at
}

// pass lets time pass.
func (f *flows) pass(seconds float64) {
	for i := range f.all {
		f.all[i].left -= f.all[i].rate * seconds
	}
}
