// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// noticeAfter is how long something may take before it is said what is done.
const noticeAfter = time.Second

// notice is a line at the lower end of a terminal that says what is done, and for how long, while it
// takes longer than a second. It leaves nothing behind. Whatever else is written to the terminal
// meanwhile is written by interrupt.
type notice struct {
	w    io.Writer
	what string

	mu    sync.Mutex
	shown bool

	over, gone chan struct{}
}

// during says what is done until done is called, where standard error is a terminal.
func (a *app) during(what string) (done func()) {
	if !isTerminal(a.err) {
		return func() {}
	}
	n := &notice{w: a.err, what: what, over: make(chan struct{}), gone: make(chan struct{})}
	before := a.notice
	a.notice = n
	go n.run(noticeAfter)
	return func() {
		close(n.over)
		<-n.gone
		a.notice = before
	}
}

// run shows the line from so long after its start, and takes it away in the end.
func (n *notice) run(after time.Duration) {
	defer close(n.gone)
	start := time.Now()
	tick := time.NewTimer(after)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.show(time.Since(start))
			tick.Reset(time.Second)
		case <-n.over:
			n.interrupt(func() {})
			return
		}
	}
}

func (n *notice) show(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	width, _ := terminalSize(n.w)
	_, _ = io.WriteString(n.w, "\r"+clipLine(fmt.Sprintf("%s (%s)", n.what, took.Round(time.Second)), width-1)+eraseLine)
	n.shown = true
}

// interrupt takes the line away and writes something else in its place; it comes back a second later.
func (n *notice) interrupt(write func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shown {
		_, _ = io.WriteString(n.w, "\r"+eraseLine)
		n.shown = false
	}
	write()
}
