// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/inventory"
)

// onWall is a run of which nothing but the clock is asked.
type onWall struct{ stage.Run }

func (onWall) Clock() clock.Clock { return clock.Wall{} }

// listing is a scheduler that counts what it is asked; each answer takes a second.
type listing struct {
	Scheduler
	one, all atomic.Int64
}

func (l *listing) Jobs(ctx context.Context, _ Target, node string) ([]Job, error) {
	l.one.Add(1)
	return []Job{{ID: node}}, clock.Wall{}.Sleep(ctx, time.Second)
}

func (l *listing) AllJobs(ctx context.Context, _ Target) (map[string]NodeJobs, error) {
	l.all.Add(1)
	out := map[string]NodeJobs{}
	for i := range 64 {
		if i != 7 { // which has no jobs
			out[fmt.Sprint("n", i)] = NodeJobs{Jobs: []Job{{ID: fmt.Sprint("n", i)}}}
		}
	}
	return out, clock.Wall{}.Sleep(ctx, time.Second)
}

// TestRounds: the nodes of a wave are one request, each gets its own jobs, a node alone is asked for
// alone, and one that is stopped while it asks leaves the others with an answer.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := New(&inventory.Inventory{}, nil, nil), &listing{}
		target := Target{Handover: &inventory.Handover{Block: inventory.Block{Name: "prod"}}}
		wave := func(stopped int) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range 64 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == stopped {
					time.AfterFunc(500*time.Millisecond, cancel)
				} else if stopped >= 0 {
					time.Sleep(time.Microsecond) // so that the first to ask is the one that is stopped
				}
				wg.Go(func() {
					jobs, err := s.askJobs(ctx, onWall{}, k, target, fmt.Sprint("n", i))
					switch {
					case i == stopped:
						if err == nil {
							t.Errorf("n%d was stopped, and has %v", i, jobs)
						}
					case err != nil || (len(jobs) == 0) != (i == 7) || len(jobs) > 0 && jobs[0].ID != fmt.Sprint("n", i):
						t.Errorf("n%d: %v, %v", i, jobs, err)
					}
				})
			}
			wg.Wait()
		}
		wave(-1)
		if one, all := k.one.Load(), k.all.Load(); one != 0 || all != 1 {
			t.Errorf("a wave of 64 nodes asked for %d nodes and %d times for all", one, all)
		}
		wave(0)
		if one, all := k.one.Load(), k.all.Load(); one != 0 || all != 3 {
			t.Errorf("with one that was stopped: for %d nodes, %d times for all", one, all)
		}
		if jobs, err := s.askJobs(t.Context(), onWall{}, k, target, "n3"); err != nil || len(jobs) != 1 || k.one.Load() != 1 || k.all.Load() != 3 {
			t.Errorf("alone: %v, %v, for %d nodes, %d times for all", jobs, err, k.one.Load(), k.all.Load())
		}
	})
}
