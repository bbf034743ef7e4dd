// SPDX-License-Identifier: Apache-2.0

package network

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// flow is one direction of a connection.
type flow struct {
	mu      sync.Mutex // guards all that follows
	cond    *sync.Cond
	data    []byte // what is under way begins at off
	off     int
	limit   int  // of bytes under way
	ended   bool // the writer sends no more
	closed  bool // the writer closed its end
	dropped bool // the reader closed its end
	readBy  deadline
	writeBy deadline

	held  int  // how many of the two devices are away; then nothing more arrives
	ready int  // bytes that had arrived before
	over  bool // the end had arrived before
	gone  bool // the reader had closed before
	reset bool // a device came back that has no such connection any more
}

// keptBuffer is the largest buffer that an empty flow keeps.
const keptBuffer = 1 << 10

func newFlow(limit int) *flow {
	f := &flow{limit: limit}
	f.cond = sync.NewCond(&f.mu)
	return f
}

func (f *flow) change(do func(*flow)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f)
	f.cond.Broadcast()
}

// drop is the reader's close; it reports whether that is the first.
func (f *flow) drop() (first bool) {
	f.change(func(f *flow) {
		first, f.dropped = !f.dropped, true
		f.data, f.off = nil, 0
		f.readBy.stop()
	})
	return first
}

// close is the writer's close.
func (f *flow) close() {
	f.change(func(f *flow) {
		f.ended, f.closed = true, true
		f.writeBy.stop()
	})
}

// hold lets nothing more arrive, because a device is away.
func (f *flow) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held++; f.held == 1 {
		f.ready, f.over, f.gone = len(f.data)-f.off, f.ended, f.dropped
	}
}

// release undoes hold, and reports whether the writer has closed its end. What a
// device closed while it was away has been forgotten by it: the other end is
// reset.
func (f *flow) release() (closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held--; f.held == 0 {
		if f.closed && !f.over || f.dropped && !f.gone {
			f.reset = true
			f.data = f.data[:min(len(f.data), f.off+f.ready)]
		}
		f.cond.Broadcast()
	}
	return f.closed
}

func (f *flow) read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		come, over := len(f.data)-f.off, f.ended
		if f.held > 0 {
			come, over = f.ready, f.over
		}
		switch {
		case f.dropped:
			return 0, net.ErrClosed
		case f.readBy.over:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case come > 0:
			return f.take(p[:min(come, len(p))]), nil
		case f.reset:
			return 0, syscall.ECONNRESET
		case over:
			return 0, io.EOF
		}
		f.cond.Wait()
	}
}

// take moves bytes that are there into p. f.mu is held.
func (f *flow) take(p []byte) int {
	n := copy(p, f.data[f.off:])
	f.ready = max(0, f.ready-n)
	if f.off += n; f.off == len(f.data) {
		if f.off = 0; cap(f.data) > keptBuffer {
			f.data = nil
		}
		f.data = f.data[:0]
	}
	f.cond.Broadcast()
	return n
}

// put adds p to what is under way. f.mu is held.
func (f *flow) put(p []byte) {
	if f.off > 0 && len(f.data)+len(p) > cap(f.data) {
		f.data = f.data[:copy(f.data, f.data[f.off:])]
		f.off = 0
	}
	f.data = append(f.data, p...)
	f.cond.Broadcast()
}

func (f *flow) write(p []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.closed:
			return n, net.ErrClosed
		case f.reset:
			return n, syscall.ECONNRESET
		case f.ended, f.dropped && (f.held == 0 || f.gone):
			return n, syscall.EPIPE
		case f.writeBy.over:
			return n, os.ErrDeadlineExceeded
		}
		room := min(f.limit-(len(f.data)-f.off), len(p)-n)
		if room > 0 {
			f.put(p[n : n+room])
			n += room
		}
		if n == len(p) {
			return n, nil
		}
		f.cond.Wait()
	}
}
