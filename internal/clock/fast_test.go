// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
)

func TestFast(t *testing.T) {
	for _, tt := range []struct {
		name  string
		speed float64
		wall  time.Duration // that 10 s take
	}{
		{"thirty times", 30, 333333333},
		{"as the wall", 1, 10 * time.Second},
		{"no speed counts as 1", 0, 10 * time.Second},
		{"slower than the wall", 0.5, 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock.Clock = clock.NewFast(tt.speed)
				wall, began := time.Now(), c.Now()
				if err := c.Sleep(t.Context(), 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(wall); got != tt.wall {
					t.Errorf("slept %v on the wall, want %v", got, tt.wall)
				}
				if got := c.Now().Sub(began); got < 10*time.Second-time.Microsecond || got > 10*time.Second {
					t.Errorf("the clock went on by %v", got)
				}
				wall = time.Now()
				ctx, cancel := c.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				<-ctx.Done()
				if got := time.Since(wall); got != tt.wall || ctx.Err() != context.DeadlineExceeded {
					t.Errorf("ended after %v on the wall: %v", got, ctx.Err())
				}
				ctx, cancel = context.WithCancel(t.Context())
				cancel()
				if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled sleep: %v", err)
				}
			})
		})
	}
}
