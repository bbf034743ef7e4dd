// SPDX-License-Identifier: Apache-2.0

package state

import (
	"runtime"
	"sync"
)

// pending is an append that waits for a write. The writer of its group fills in
// first and err before it wakes it.
type pending struct {
	fence Fence
	batch Batch
	lines [][]byte // the records as JSON, with number 0
	first uint64
	err   error
	wake  chan role // one message: what to do now
}

// role is what a waiting append is woken for.
type role bool

const (
	settled role = false // its group was written
	writer  role = true  // it writes the next group, and is the first of it
)

// maxGroup bounds how many appends share one write, and with it the time that
// the first of them waits.
const maxGroup = 256

func newPending(f Fence, b Batch) *pending {
	return &pending{fence: f, batch: b, wake: make(chan role, 1)}
}

// groups lets one of several concurrent appends write for all.
type groups struct {
	mu      sync.Mutex // guards what follows
	queue   []*pending // appends that wait for the next write
	writing bool       // one of them writes, or is about to
}

// join returns when p was written with its group: by write, which the first of the
// group calls, and nobody else meanwhile.
func (g *groups) join(p *pending, write func([]*pending)) {
	if g.enqueue(p) || <-p.wake == writer {
		g.writeGroup(write)
	}
}

// enqueue reports whether p has to write: nobody does.
func (g *groups) enqueue(p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, p)
	first := !g.writing
	g.writing = true
	return first
}

// gathering bounds how often a writer looks whether others come.
const gathering = 32

// gather lets those join that the last write has just woken: as long as more come,
// others run. Without it every second group is of the few that were the quickest, and
// all others wait for two writes.
func (g *groups) gather() {
	waiting := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.queue)
	}
	for was, i := 0, 0; i < gathering; i++ {
		n := waiting()
		if n == was || n >= maxGroup {
			return
		}
		was = n
		runtime.Gosched()
	}
}

// writeGroup writes for the oldest that wait, the caller first, and hands the
// next group to the first of it.
func (g *groups) writeGroup(write func([]*pending)) {
	g.gather()
	g.mu.Lock()
	n := min(len(g.queue), maxGroup)
	group := g.queue[:n:n]
	g.queue = g.queue[n:]
	g.mu.Unlock()
	write(group)
	for _, p := range group[1:] {
		p.wake <- settled
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writing = len(g.queue) > 0; g.writing {
		g.queue[0].wake <- writer
	}
}
