package predict

import (
	"math"
	"slices"
)

// ranked is a step in a queue.
type ranked struct {
	rank int64
	step int32
}

// rankHeap gives the step of the lowest rank first.
type rankHeap []ranked

func (h rankHeap) Len() int           { return len(h) }
func (h rankHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h rankHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *rankHeap) Push(x any) { *h = append(*h, x.(ranked)) }

// Pop is for package heap.
func (h *rankHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// moment is the end of a step, or its release of a resource.
type moment struct {
	at      float64
	step    int32
	release bool
}

// eventHeap gives the earliest moment first; of several the lowest step, and its
// release before its end.
type eventHeap []moment

func (h eventHeap) Len() int      { return len(h) }
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h eventHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.step != b.step:
		return a.step < b.step
	}
	return a.release && !b.release
}

// Push is for package heap.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(moment)) }

// Pop is for package heap.
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
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
