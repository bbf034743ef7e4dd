// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
)

// watchLease ends the run when the lease of its fence ends: every step is cancelled, with the
// calls that it has under way, and nothing more is begun or recorded. It returns when the
// run is over, or then.
func (e *Executor) watchLease(ctx context.Context) {
	select {
	case <-e.cfg.Store.Lease(e.cfg.Fence).Ended(): // nil: never
		_ = e.ledger.setFailure(state.LeaseEnded())
	case <-ctx.Done():
	}
}

// checkLease refuses what must not begin after the lease, also before watchLease has run.
func (l *ledger) checkLease() error {
	if err := state.CheckLease(l.store.Lease(l.fence)); err != nil {
		return l.setFailure(err)
	}
	return l.failure()
}
