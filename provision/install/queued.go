// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// quiet is how long a task of an earlier run may report no progress before it counts as
// hung. An agent reports once a second what it has written, and gives a stream that has
// stopped up after ten minutes.
const quiet = 15 * time.Minute

// queued is the wait for an agent that may still be working for an earlier run. It is
// safe for concurrent use.
type queued struct {
	run stage.Run

	mu   sync.Mutex // guards what follows
	last wire.Progress
	at   time.Time // when last changed
}

func newQueued(run stage.Run) *queued {
	return &queued{run: run, at: run.Clock().Now()}
}

// progress takes what the agent reports.
func (q *queued) progress(p wire.Progress) {
	q.mu.Lock()
	if p.Phase != q.last.Phase || p.Done != q.last.Done {
		q.at = q.run.Clock().Now()
	}
	q.last = p
	q.mu.Unlock()
	q.emitProgress()
}

// emitProgress shows how far the earlier task is.
func (q *queued) emitProgress() {
	q.mu.Lock()
	p, at := q.last, q.at
	q.mu.Unlock()
	text := "waiting for the agent: a write from the previous run may still be in progress"
	if p.Total > 0 {
		text += fmt.Sprintf(" (%s, %d %%)", p.Phase, p.Done*100/p.Total)
	}
	q.run.Emit(event.Event{Type: event.StepProgress, Text: text, Done: p.Done, Total: p.Total, Until: at.Add(quiet)})
}

// watch ends the wait when no progress was reported for too long.
func (q *queued) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	for {
		q.mu.Lock()
		p, at := q.last, q.at
		q.mu.Unlock()
		left := at.Add(quiet).Sub(q.run.Clock().Now())
		if left <= 0 {
			what := "it has not said what it does"
			if p.Phase != "" {
				what = fmt.Sprintf("its last progress was %s, %d of %d bytes", p.Phase, p.Done, p.Total)
			}
			giveUp(errkind.New(errkind.Timeout, "the agent has reported no progress of the previous run's write for %v: %s", quiet, what).
				Do("Look at the node's console, and at the health of its disk; `ironrail rebuild` boots it afresh."))
			return
		}
		if q.run.Clock().Sleep(ctx, left) != nil {
			return
		}
	}
}
