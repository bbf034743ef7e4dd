// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
)

// gather is how long the first question of a round waits for others: the nodes of a wave ask in the
// same moment.
const gather = 200 * time.Millisecond

// rounds are the questions which jobs run that wait for others to be asked with.
type rounds struct {
	mu   sync.Mutex // guards open and the askers of what is in it
	open map[string]*round
}

// round is one question to a scheduler, of one node or more. All begin to wait before it is asked,
// so that its answer is as new as one of their own.
type round struct {
	askers int

	done chan struct{} // closed once what follows is there
	all  map[string]NodeJobs
	err  error
	left bool // who asks was stopped: the others ask again
}

// join joins the round of a handover that is open; first has to ask.
func (r *rounds) join(handover string) (x *round, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x = r.open[handover]; x == nil {
		x, first = &round{done: make(chan struct{})}, true
		r.open[handover] = x
	}
	x.askers++
	return x, first
}

// close lets nobody join any more, and says how many ask.
func (r *rounds) close(handover string) (askers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.open[handover]
	delete(r.open, handover)
	return x.askers
}

// askJobs is Jobs of a scheduler. One that can is asked once for all nodes whose steps ask together.
func (s *Stage) askJobs(ctx context.Context, run stage.Run, k Scheduler, t Target, node string) ([]Job, error) {
	all, can := k.(AllJobs)
	if !can {
		return k.Jobs(ctx, t, node)
	}
	for {
		x, first := s.rounds.join(t.Name)
		if first {
			stopped := run.Clock().Sleep(ctx, gather)
			switch askers := s.rounds.close(t.Name); {
			case stopped != nil:
				x.err = context.Cause(ctx)
			case askers == 1:
				jobs, err := k.Jobs(ctx, t, node)
				x.all = map[string]NodeJobs{node: {Jobs: jobs, Err: err}}
			default:
				x.all, x.err = all.AllJobs(ctx, t)
			}
			x.left = ctx.Err() != nil
			close(x.done)
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if x.left && ctx.Err() == nil {
			continue
		}
		if x.err != nil {
			return nil, x.err
		}
		return x.all[node].Jobs, x.all[node].Err
	}
}
