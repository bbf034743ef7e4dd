// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"context"
	"time"
)

// Fast is the clock of a rehearsal on real sockets: Speed seconds of it pass in
// one second on the wall. Make it with NewFast; it is a value, and copies tell
// the same time.
type Fast struct {
	Start time.Time // when it tells the same as the wall
	Speed float64   // seconds a second; not above zero counts as 1
}

// NewFast returns a clock that starts now.
func NewFast(speed float64) Fast { return Fast{Start: time.Now(), Speed: speed} }

// Now returns the time that has come since Start.
func (f Fast) Now() time.Time {
	return f.Start.Add(time.Duration(float64(time.Since(f.Start)) * f.speed()))
}

// Sleep waits for d of this clock.
func (f Fast) Sleep(ctx context.Context, d time.Duration) error {
	return Wall{}.Sleep(ctx, f.real(d))
}

// WithTimeout ends after d of this clock. The deadline that the context tells is
// one on the wall, as readers of it expect.
func (f Fast) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.real(d))
}

func (f Fast) speed() float64 {
	if f.Speed > 0 {
		return f.Speed
	}
	return 1
}

// real is how long d lasts on the wall; a wait never becomes none.
func (f Fast) real(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return max(1, time.Duration(float64(d)/f.speed()))
}
