// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Count is how often something was seen of clients, and how many bytes they were sent then.
type Count struct {
	Proto   boot.Proto
	What    string
	Refused bool
	Events  uint64
	Bytes   uint64
}

// Counter is a recorder that counts all it is given before it passes it on: in front of a Limiter
// it knows what that omits. What it counts by are words of the services, of which there are few.
// It is safe for concurrent use.
type Counter struct {
	next boot.Recorder

	mu     sync.Mutex // guards counts
	counts map[counted]*Count
}

// counted is what counts as the same.
type counted struct {
	kind
	refused bool
}

// NewCounter returns a counter in front of next.
func NewCounter(next boot.Recorder) *Counter {
	return &Counter{next: next, counts: map[counted]*Count{}}
}

// Record implements boot.Recorder.
func (c *Counter) Record(e boot.Evidence) {
	k := counted{kind{e.Proto, e.What}, e.Refused}
	c.mu.Lock()
	n := c.counts[k]
	if n == nil {
		n = &Count{Proto: e.Proto, What: e.What, Refused: e.Refused}
		c.counts[k] = n
	}
	n.Events++
	n.Bytes += uint64(max(0, e.Bytes))
	c.mu.Unlock()
	c.next.Record(e)
}

// Counts are the counts until now, by service and word.
func (c *Counter) Counts() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Count, 0, len(c.counts))
	for _, n := range c.counts {
		out = append(out, *n)
	}
	slices.SortFunc(out, compareCounts)
	return out
}

func compareCounts(a, b Count) int {
	refused := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.What, b.What), refused[a.Refused]-refused[b.Refused])
}

// Sum adds counts of two counters.
func Sum(a, b []Count) []Count {
	out := slices.Clone(a)
	for _, x := range b {
		if i, ok := slices.BinarySearchFunc(out, x, compareCounts); ok {
			out[i].Events += x.Events
			out[i].Bytes += x.Bytes
		} else {
			out = slices.Insert(out, i, x)
		}
	}
	return out
}
