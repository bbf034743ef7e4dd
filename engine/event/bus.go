// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Bus takes events from any goroutine and shows them to any number of
// subscribers. It keeps the last events in a ring; a subscriber is a cursor into
// it, so that a slow one never blocks who emits: what it missed is counted and
// told to it as one Note. A nil Bus discards. It is safe for concurrent use.
type Bus struct {
	mu      sync.Mutex // guards all that follows
	ring    []Event    // event s lies at s % len(ring)
	last    uint64     // number of the newest event; 0: none yet
	closed  bool
	changed chan struct{} // closed at the next event; nil when nobody waits
}

// NewBus makes a bus that keeps the last size events (at least one).
func NewBus(size int) *Bus { return &Bus{ring: make([]Event, max(size, 1))} }

// Emit numbers e, fills in its time when empty, and shows it to all.
func (b *Bus) Emit(e Event) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	b.last++
	e.Seq = b.last
	b.ring[e.Seq%uint64(len(b.ring))] = e
	b.wake()
}

// Newest is the number of the newest event; 0 when there is none yet.
func (b *Bus) Newest() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Close ends the stream: subscribers see what is left, then io.EOF. Later
// events are discarded.
func (b *Bus) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

// wake is called with b.mu held.
func (b *Bus) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Subscribe returns a subscription that begins at event from; 0 is the oldest
// that is kept.
func (b *Bus) Subscribe(from uint64) *Subscription {
	return &Subscription{bus: b, next: max(from, 1), whole: from > 0}
}

// Subscription reads a bus from one goroutine. It needs no closing.
type Subscription struct {
	bus   *Bus
	next  uint64
	whole bool // what is missing before next is a gap
}

// Next returns the next event, waiting for it until ctx is done. It returns
// io.EOF at the end of the stream. Missed events are told as a Note with their
// count in Total.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if s.bus == nil {
		return Event{}, io.EOF
	}
	for {
		e, wait, ok := s.poll()
		if ok {
			return e, nil
		}
		if wait == nil {
			return Event{}, io.EOF
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// Ready returns the next event without waiting; false when there is none now.
func (s *Subscription) Ready() (Event, bool) {
	if s.bus == nil {
		return Event{}, false
	}
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.take()
}

// poll returns the next event, or the channel to wait on; neither at the end.
func (s *Subscription) poll() (Event, <-chan struct{}, bool) {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := s.take(); ok {
		return e, nil, true
	}
	if b.closed {
		return Event{}, nil, false
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return Event{}, b.changed, false
}

// take is called with the bus locked.
func (s *Subscription) take() (Event, bool) {
	b := s.bus
	oldest := uint64(1)
	if n := uint64(len(b.ring)); b.last > n {
		oldest = b.last - n + 1
	}
	if lost := oldest - min(s.next, oldest); lost > 0 {
		s.next = oldest
		if s.whole {
			return Event{Seq: oldest - 1, Time: time.Now().UTC(), Type: Note, Total: int64(lost),
				Text: fmt.Sprintf("%d events are missing here: this reader was too slow or came too late", lost)}, true
		}
	}
	s.whole = true
	if s.next > b.last {
		return Event{}, false
	}
	e := b.ring[s.next%uint64(len(b.ring))]
	s.next++
	return e, true
}
