// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
)

// skipClock is a clock whose waits take no time, and on which no other time passes:
// what it shows does not depend on how fast the machine is.
type skipClock struct {
	clock.Wall
	begin time.Time
	mu    sync.Mutex
	ahead time.Duration
}

func newSkipClock() *skipClock { return &skipClock{begin: time.Now()} }

func (c *skipClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin.Add(c.ahead)
}

func (c *skipClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	return ctx.Err()
}
