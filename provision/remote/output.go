// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"io"
	"sync"
)

// ends keeps an output stream whole up to a size, and of a longer one the first
// half and the last half of that size. It is safe for concurrent use.
type ends struct {
	most     int
	consumer io.Writer // sees all of the stream; nil: nobody

	mu      sync.Mutex // guards the fields below
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring goes on
	written int64
}

// Write never fails, so that the command is not ended by its own output.
func (e *ends) Write(p []byte) (int, error) {
	if e.consumer != nil {
		_, _ = e.consumer.Write(p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	e.written += int64(n)
	first := min(n, e.most/2-len(e.head))
	e.head = append(e.head, p[:first]...)
	e.keepLast(p[first:])
	return n, nil
}

// keepLast adds bytes to the last half; e.mu is held.
func (e *ends) keepLast(p []byte) {
	size := e.most - e.most/2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	room := min(len(p), size-len(e.tail))
	e.tail = append(e.tail, p[:room]...)
	for p = p[room:]; len(p) > 0; {
		n := copy(e.tail[e.next:], p)
		e.next = (e.next + n) % size
		p = p[n:]
	}
}

// omitted is how many bytes are not kept.
func (e *ends) omitted() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, e.written-int64(e.most))
}

// bytes are the stream, or its two ends with a line between them that says how
// many bytes are left out.
func (e *ends) bytes() []byte {
	left := e.omitted()
	e.mu.Lock()
	defer e.mu.Unlock()
	out := append([]byte(nil), e.head...)
	if left > 0 {
		out = fmt.Appendf(out, "\n[... %d bytes left out ...]\n", left)
	}
	return append(append(out, e.tail[e.next:]...), e.tail[:e.next]...)
}
