// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
)

// Config is everything a run needs. Plan, Stages, Store and Fence must be set.
type Config struct {
	Plan   *plan.Plan
	Stages map[string]stage.Stage // by the name that steps call
	Store  state.Store
	Fence  state.Fence // from Store.Claim
	Bus    *event.Bus  // nil: nobody listens
	Clock  clock.Clock // nil: the wall clock

	// Capacity is how many units of each resource there are. A name that ends
	// in a slash stands for every resource that begins with it; the longest
	// match counts. A resource that a step uses and that is not here is an
	// error before anything starts.
	Capacity map[string]int
	Units    func(resource string, used, limit int) string // in words; nil: "3 of 8 in use"
	Parallel int                                           // steps at once; zero: 512
	Grace    time.Duration                                 // for a step to end after its deadline or cancellation; zero: 30 s

	EvidenceDir   string          // for Attach; made when it is not there
	Resume        bool            // go on with this very plan, which was begun before
	MaxErase      int             // nodes that the site lets one run erase; the plan's own word is not asked
	EraseApproved int             // erasures that a person approved, past MaxErase
	Approval      *state.Approval // recorded with the run; nil: nobody was asked
	Drain         <-chan struct{} // closed: start nothing new, let what runs end
}

// Run executes the plan of c and returns how every step and node ended. The
// error is about the run as a whole: it was refused before anything started, or
// its records could not be made durable. Failed steps are in the Result only.
func Run(ctx context.Context, c Config) (Result, error) {
	e, err := New(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return e.Run(ctx)
}

// New checks the plan against the state and the safety rules, and loads what an
// earlier run of it has done. It changes nothing.
func New(ctx context.Context, c Config) (*Executor, error) {
	c.setDefaults()
	prior, err := checkPlan(ctx, c)
	if err != nil {
		return nil, err
	}
	g, err := newGraph(c)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now().UTC()
	e := &Executor{cfg: c, clock: c.Clock, graph: g, wake: make(chan struct{}, 1), assignments: make(chan assignment), begun: make(chan struct{}),
		run: state.Run{ID: runID(now), Plan: c.Plan.ID, Started: now, Resumes: prior.ID}}
	if c.EvidenceDir != "" {
		e.raw = &evidence.Folder{Path: c.EvidenceDir}
	}
	if c.Resume {
		e.run.Approvals = slices.Clone(prior.Approvals)
	}
	if c.Approval != nil {
		e.run.Approvals = append(e.run.Approvals, *c.Approval)
	}
	e.ledger, err = newLedger(ctx, c, e.run.ID)
	if err != nil {
		return nil, err
	}
	if c.Resume {
		err = e.replay(ctx)
	}
	return e, err
}

func (c *Config) setDefaults() {
	if c.Clock == nil {
		c.Clock = clock.Wall{}
	}
	if c.Parallel <= 0 {
		c.Parallel = 512
	}
	if c.Grace <= 0 {
		c.Grace = 30 * time.Second
	}
}

// runID names a run; names sort by time.
func runID(now time.Time) string {
	return fmt.Sprintf("%s-%s", now.Format("20060102T150405"), rand.Text()[:6])
}

// ID returns the name of this run.
func (e *Executor) ID() string { return e.run.ID }
