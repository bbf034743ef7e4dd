// SPDX-License-Identifier: Apache-2.0

// Package evidence limits what boot services record. What a recorder is told ends in
// files and in the histories that findings are made of: somebody who is refused two
// thousand times a second must not push out what the nodes did.
package evidence

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Limits of a Limiter, all for one window.
const (
	window   = 10 * time.Second
	ordinary = 40 // records of one client and service that are no refusals
	unknown  = 20 // sources that no node of the inventory has, told one by one, of each service and word
)

// Limiter is a recorder that passes on, for each window, the first refusal of each
// source, service and word, and one record that counts the others. Other records
// are passed on, up to a bound that no boot reaches; DHCP's only once for the same
// words, since firmware that finds nothing repeats itself for hours. It is safe for
// concurrent use. Close tells what is counted and not told yet.
type Limiter struct {
	next boot.Recorder
	seed maphash.Seed // of keys

	mu     sync.Mutex // guards what follows
	counts map[uint64]*count
	began  time.Time       // of the window of unknown clients, after which counts are looked through
	single map[kind]int    // unknown clients counted one by one in it
	rest   map[kind]*count // of unknown clients that are not
	timer  *time.Timer
	closed bool
}

// kind is what unknown clients are counted together by: a flood of one kind does not hide
// who makes another.
type kind struct {
	proto boot.Proto
	what  string
}

// keyOf is a hash of what counts as the same: client, service, word and, of what DHCP answers, the
// text. A hash with a random seed is a tenth of what it is made of, for each of many thousand clients.
func (l *Limiter) keyOf(e *boot.Evidence) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, s := range []string{string(e.Proto), e.What, e.Node} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	h.Write(e.MAC[:])
	a := e.Address.As16()
	h.Write(a[:])
	if e.Refused {
		h.WriteByte(1)
	} else if e.Proto == boot.DHCP {
		h.WriteString(e.Detail)
	}
	return h.Sum64()
}

// count is what was seen of a key in its window.
type count struct {
	began    time.Time
	rest     bool // of many sources
	recorded int
	omitted  int
	last     *boot.Evidence // refusal that was omitted; nil: none was
}

// NewLimiter returns a limiter in front of next.
func NewLimiter(next boot.Recorder) *Limiter {
	return &Limiter{next: next, seed: maphash.MakeSeed(), counts: map[uint64]*count{}, single: map[kind]int{}, rest: map[kind]*count{}}
}

// Record implements boot.Recorder.
func (l *Limiter) Record(e boot.Evidence) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	for _, out := range l.take(e) {
		l.next.Record(out)
	}
}

// take counts one record and returns what is to be told now.
func (l *Limiter) take(e boot.Evidence) []boot.Evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.countOf(e)
	if over := e.Time.Sub(c.began) >= window; over {
		before := c.omitted
		refusals := l.sum(c)
		*c = count{began: e.Time, recorded: 1, rest: c.rest}
		if before > 0 && refusals == nil {
			e.Detail = fmt.Sprintf("%s (and %d times before)", e.Detail, before)
		}
		return append(refusals, e)
	}
	if !c.rest && c.recorded < l.allowed(e) {
		c.recorded++
		return []boot.Evidence{e}
	}
	c.omitted++
	if e.Refused {
		last := e
		c.last = &last
		l.arm(window)
	}
	return nil
}

// allowed is how many records of a key are told within a window.
func (l *Limiter) allowed(e boot.Evidence) int {
	if e.Refused || e.Proto == boot.DHCP {
		return 1
	}
	return ordinary
}

// countOf finds the count of a record, made when there is room for it. mu is held.
func (l *Limiter) countOf(e boot.Evidence) *count {
	k := l.keyOf(&e)
	if c := l.counts[k]; c != nil {
		return c
	}
	if e.Time.Sub(l.began) >= window {
		l.began = e.Time
		clear(l.single)
		l.forget(e.Time)
	}
	if of := (kind{e.Proto, e.What}); e.Node == "" {
		if l.single[of]++; l.single[of] > unknown {
			if l.rest[of] == nil {
				l.rest[of] = &count{began: e.Time, rest: true}
			}
			return l.rest[of]
		}
	}
	c := &count{began: e.Time}
	l.counts[k] = c
	return c
}

// forget drops counts of windows that are over and hold nothing unreported. mu is held.
func (l *Limiter) forget(now time.Time) {
	for k, c := range l.counts {
		if c.omitted == 0 && now.Sub(c.began) >= window {
			delete(l.counts, k)
		}
	}
}

// sum returns the one record of what was omitted; nil for nothing, and for what is
// no refusal. mu is held.
func (l *Limiter) sum(c *count) []boot.Evidence {
	if c.last == nil {
		return nil
	}
	e, span := *c.last, c.last.Time.Sub(c.began).Round(time.Second)
	if c.rest {
		e.MAC, e.Address, e.Node = addr.MAC{}, netip.Addr{}, ""
		e.Detail = fmt.Sprintf("%d refusals of further sources in %v; the last: %s", c.omitted, span, e.Detail)
		return []boot.Evidence{e}
	}
	e.Detail = fmt.Sprintf("refused %d times more in %v; the last: %s", c.omitted, span, e.Detail)
	return []boot.Evidence{e}
}

// arm has flush run after a while. mu is held.
func (l *Limiter) arm(after time.Duration) {
	if l.timer == nil && !l.closed {
		l.timer = time.AfterFunc(after, l.flush)
	}
}

// flush tells the refusals of windows that are over.
func (l *Limiter) flush() {
	l.mu.Lock()
	now := time.Now()
	l.timer = nil
	out := l.sums(func(c *count) bool { return now.Sub(c.began) >= window })
	if l.pending() {
		l.arm(window / 2)
	}
	l.mu.Unlock()
	for _, e := range out {
		l.next.Record(e)
	}
}

// sums takes the sums of counts that are due. mu is held.
func (l *Limiter) sums(due func(*count) bool) (out []boot.Evidence) {
	for k, c := range l.counts {
		if c.last == nil || !due(c) {
			continue
		}
		out = append(out, l.sum(c)...)
		delete(l.counts, k)
	}
	for k, c := range l.rest {
		if due(c) {
			out = append(out, l.sum(c)...)
			delete(l.rest, k)
		}
	}
	return out
}

// pending reports whether refusals are counted that are not told. mu is held.
func (l *Limiter) pending() bool {
	if len(l.rest) > 0 {
		return true
	}
	for _, c := range l.counts {
		if c.last != nil {
			return true
		}
	}
	return false
}

// Close tells what is counted and ends the limiter's timer; what is seen later is
// still limited, and its counts are told with the next record.
func (l *Limiter) Close() {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	out := l.sums(func(*count) bool { return true })
	l.mu.Unlock()
	for _, e := range out {
		l.next.Record(e)
	}
}
