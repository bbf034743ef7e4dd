// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/handover"
)

// What is asked of schedulers.
const (
	jobsTime  = time.Minute     // one has to say which jobs run
	fewNodes  = 8               // so many are asked for one by one
	jobsFresh = 5 * time.Second // for so long an answer for many nodes is used for others of them
)

// jobReader reads which jobs run on the nodes of one request: of many nodes the scheduler is asked
// for all at once. It is safe for concurrent use.
type jobReader struct {
	cfg   Config
	nodes []string
	turn  chan struct{} // held while what follows is read or written
	jobs  func(ctx context.Context, node string) ([]handover.Job, error)
	at    time.Time
}

func (d *Desk) newJobReader(nodes []string) *jobReader {
	return &jobReader{cfg: d.cfg, nodes: nodes, turn: make(chan struct{}, 1)}
}

// read lists what runs on a node, by an answer that came jobsFresh ago at most.
func (r *jobReader) read(ctx context.Context, node string) ([]handover.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, jobsTime)
	defer cancel()
	if r.cfg.JobsOf == nil || len(r.nodes) <= fewNodes {
		return r.cfg.Jobs(ctx, node)
	}
	jobs, err := r.readAll(ctx)
	if err != nil {
		return nil, err
	}
	return jobs(ctx, node)
}

// readAll asks for all nodes, unless somebody has just done so.
func (r *jobReader) readAll(ctx context.Context) (func(context.Context, string) ([]handover.Job, error), error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if now := r.cfg.Clock.Now(); r.jobs == nil || now.Sub(r.at) > jobsFresh || now.Before(r.at) {
		jobs := r.cfg.JobsOf(ctx, r.nodes)
		if ctx.Err() != nil { // the answer of one that was stopped is nobody else's
			return jobs, nil
		}
		r.jobs, r.at = jobs, r.cfg.Clock.Now() // its end: a slow scheduler is not asked for each node
	}
	return r.jobs, nil
}

// checkJobs refuses a node under jobs, and one of which nobody knows. What the operator allows is
// added to what the plan says.
func checkJobs(ctx context.Context, q control.DirectRequest, reader *jobReader, node string, st *control.DirectStep) error {
	jobs, err := reader.read(ctx, node)
	switch {
	case err != nil && q.JobsUnknown:
		st.Does += "; ITS JOBS ARE NOT KNOWN"
		return nil
	case err != nil:
		return errkind.New(errkind.Refused, "whether jobs run on it is not known: %w", err).
			Do("Make the scheduler answer; or look for yourself, and give --jobs-unknown when no job runs there.")
	case len(jobs) == 0:
		return nil
	case q.KillJobs:
		st.Does += fmt.Sprintf("; %d JOBS ARE LOST: %s", len(jobs), handover.ListJobs(jobs))
		return nil
	}
	return errkind.New(errkind.Refused, "%d jobs run on it: %s", len(jobs), handover.ListJobs(jobs)).
		Do("Wait until they end, or drain the node at its scheduler; --kill-jobs does it all the same, and they are lost.")
}
