// SPDX-License-Identifier: Apache-2.0

// Package commit lets one of several concurrent writers write for all (group commit): the
// writes that came while an earlier one was under way become the next. It knows nothing
// of what is written.
package commit

import (
	"runtime"
	"sync"
)

// maxGroup bounds how many items share one write, and with it the time that the first of
// them waits.
const maxGroup = 256

// Queue collects items of T into groups. Its zero value takes up to 256 items in a group.
// It is safe for concurrent use.
type Queue[T any] struct {
	// Fits reports whether a group takes one more item; nil: always. A group has at least
	// one item whatever Fits says, and is never cut within an item.
	Fits func(group []T, next T) bool

	mu      sync.Mutex // guards what follows
	queue   []*waiting[T]
	writing bool // one of them writes, or is about to
}

type waiting[T any] struct {
	item T
	wake chan role // one message: what to do now
}

// role is what a waiting item is woken for.
type role bool

const (
	settled role = false // its group was written
	writer  role = true  // it writes the next group, and is the first of it
)

// Join returns when item was written with its group: by write, which the first of the
// group calls, and nobody else meanwhile. The items of a group are in the order in which
// they came.
func (q *Queue[T]) Join(item T, write func(group []T)) {
	w := &waiting[T]{item: item, wake: make(chan role, 1)}
	if q.enqueue(w) || <-w.wake == writer {
		q.writeGroup(write)
	}
}

// enqueue reports whether w has to write: nobody does.
func (q *Queue[T]) enqueue(w *waiting[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, w)
	first := !q.writing
	q.writing = true
	return first
}

// gathering bounds how often a writer looks whether others come.
const gathering = 32

// gather lets those join that the last write has just woken: as long as more come,
// others run. Without it every second group is of the few that were the quickest, and
// all others wait for two writes.
func (q *Queue[T]) gather() {
	count := func() int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.queue)
	}
	for was, i := 0, 0; i < gathering; i++ {
		n := count()
		if n == was || n >= maxGroup {
			return
		}
		was = n
		runtime.Gosched()
	}
}

// take takes the next group off the queue.
func (q *Queue[T]) take() (group []*waiting[T], items []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < min(len(q.queue), maxGroup) && (n == 0 || q.Fits == nil || q.Fits(items, q.queue[n].item)) {
		items = append(items, q.queue[n].item)
		n++
	}
	group = q.queue[:n:n]
	q.queue = q.queue[n:]
	return group, items
}

// writeGroup writes for the oldest that wait, the caller first, and hands the next group
// to the first of it.
func (q *Queue[T]) writeGroup(write func([]T)) {
	q.gather()
	group, items := q.take()
	write(items)
	for _, w := range group[1:] {
		w.wake <- settled
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.writing = len(q.queue) > 0; q.writing {
		q.queue[0].wake <- writer
	}
}
