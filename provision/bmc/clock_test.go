package bmc

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/provision/clock"
)

// skipClock is a clock whose waits take no time.
type skipClock struct {
	clock.Wall
	mu    sync.Mutex
	ahead time.Duration
}

func newSkipClock() *skipClock { return &skipClock{} }

func (c *skipClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *skipClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	return ctx.Err()
}
