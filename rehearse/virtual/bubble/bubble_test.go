// SPDX-License-Identifier: Apache-2.0

package bubble_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/bubble"
)

// TestRun: a day of waiting takes no time, and the clock is the present's.
func TestRun(t *testing.T) {
	began := time.Now().Truncate(time.Second) // as Run does
	var start, took time.Duration
	bubble.Run(func() {
		inside := time.Now()
		start = inside.Sub(began)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { time.Sleep(24 * time.Hour) })
		}
		wg.Wait()
		took = time.Since(inside)
	})
	if took != 24*time.Hour {
		t.Errorf("a day took %v of virtual time", took)
	}
	if start < 0 || start > time.Minute {
		t.Errorf("virtual time begins %v after the present", start)
	}
	if real := time.Since(began); real > time.Hour {
		t.Errorf("it took %v", real)
	}
}

// TestWorkHoldsTime: time does not move while somebody works.
func TestWorkHoldsTime(t *testing.T) {
	bubble.Run(func() {
		began := time.Now()
		sum := 0
		for i := range 50_000_000 {
			sum += i ^ sum
		}
		if d := time.Since(began); d != 0 || sum == 1 {
			t.Errorf("%v passed while a goroutine worked", d)
		}
	})
}
