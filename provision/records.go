// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/parts"
)

// records is what a run makes durable in the state before its first step and after its
// last. It is for the owner of the state.
type records struct {
	site  *Site // as the plan was made of it
	store state.Store
	fence state.Fence
}

// recordBefore makes durable, before a run begins, what the next one may need that
// the site's files may not say any more; and what a process that died had no time
// for.
func (r records) recordBefore(ctx context.Context, o RunOptions) error {
	if err := r.recordParts(ctx); err != nil { // of a run that died before its end
		return err
	}
	if !o.Resume {
		if err := overrides.ForgetDecommissioned(ctx, r.store, r.fence, r.site.over.Files); err != nil {
			return err
		}
	}
	if err := overrides.Remember(ctx, r.store, r.fence, r.site.Inv, o.Plan); err != nil {
		return err
	}
	last, _, err := state.Get[state.Run](ctx, r.store, state.LastRun)
	if err != nil || last.ID == "" || last.Outcome != "" {
		return err
	}
	return r.recordAccepted(ctx, last.ID) // it died before it could
}

// recordAccepted remembers what nodes were accepted with by a run, and keeps the packages
// of it, however long that takes.
func (r records) recordAccepted(ctx context.Context, run string) error {
	keep := func(a acceptance.Accepted) error {
		return r.site.Artifacts.KeepPackages(context.WithoutCancel(ctx), r.site.over, a.Image, a.Digest, a.Drivers)
	}
	return acceptance.Record(ctx, r.store, r.fence, r.site.Inv, run, keep)
}

// recordAfter makes durable what a run that has ended means for later ones.
func (r records) recordAfter(ctx context.Context, res apply.Result) error {
	if err := r.recordAccepted(ctx, res.Run); err != nil {
		return err
	}
	if (state.Run{ID: res.Run, Outcome: res.Outcome}).Resumable() {
		return nil // its steps are continued
	}
	return overrides.ForgetDecommissioned(ctx, r.store, r.fence, r.site.over.Files)
}

// partsWait bounds the writing of histories; what is left over is written by
// the next run.
const partsWait = time.Minute

// recordParts brings the histories of parts up to date. It is for the owner of the
// state, when no step runs.
func (r records) recordParts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partsWait)
	defer cancel()
	return parts.CatchUp(ctx, r.store, r.fence, r.site.Inv)
}
