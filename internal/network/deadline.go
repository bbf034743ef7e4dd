// SPDX-License-Identifier: Apache-2.0

package network

import (
	"sync"
	"time"
)

// deadline is a moment after which waiting is over. Its owner's mutex guards it.
type deadline struct {
	timer *time.Timer // made once, then set again
	at    time.Time   // zero: none
	over  bool
}

// set changes the deadline and wakes who waits.
func (d *deadline) set(mu *sync.Mutex, cond *sync.Cond, t time.Time) {
	mu.Lock()
	defer mu.Unlock()
	d.at, d.over = t, false
	wait := time.Until(t)
	switch {
	case t.IsZero():
		d.stop()
	case wait <= 0:
		d.stop()
		d.over = true
	case d.timer != nil:
		d.timer.Reset(wait)
	default:
		d.timer = time.AfterFunc(wait, func() {
			mu.Lock()
			defer mu.Unlock()
			d.ring(cond)
		})
	}
	cond.Broadcast()
}

// ring is what the timer does. It may be one that was set before the deadline
// changed.
func (d *deadline) ring(cond *sync.Cond) {
	if d.at.IsZero() {
		return
	}
	if wait := time.Until(d.at); wait > 0 {
		d.timer.Reset(wait)
		return
	}
	d.over = true
	cond.Broadcast()
}

// stop ends the timer; the owner's mutex is held.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
