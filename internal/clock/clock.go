// SPDX-License-Identifier: Apache-2.0

// Package clock is the seam for waits that belong to the plan: settling, POST,
// burn-in, back-off. A rehearsal runs them on virtual time. Deadlines of real
// I/O stay on the wall clock and do not use this package. It is a leaf.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits. Implementations are safe for concurrent use.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx is done, and then returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
	// WithTimeout is context.WithTimeout on this clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Wall is the clock on the wall. Under testing/synctest it is the bubble's.
type Wall struct{}

// Now returns time.Now.
func (Wall) Now() time.Time { return time.Now() }

// Sleep waits on a timer of the runtime.
func (Wall) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout is context.WithTimeout.
func (Wall) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
