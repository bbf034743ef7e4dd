// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// errLeaseEnded stops a run whose process may not be the owner any more.
func errLeaseEnded() error {
	return errkind.New(errkind.Refused, "%w", state.ErrLeaseEnded).
		Do("Look which controller owns the state with ironrail status; `ironrail apply` there goes on.")
}

// watchLease ends the run when the lease of its fence ends: every step is cancelled, with the
// calls that it has under way, and nothing more is begun or recorded. It returns when the
// run is over, or then.
func (e *Executor) watchLease(ctx context.Context) {
	select {
	case <-e.cfg.Store.Lease(e.cfg.Fence).Ended(): // nil: never
		_ = e.ledger.setFailure(errLeaseEnded())
	case <-ctx.Done():
	}
}

// checkLease refuses what must not begin after the lease, also before watchLease has run, and
// in a process that was stopped: it goes on before whoever keeps the lease has looked at the
// time.
func (l *ledger) checkLease() error {
	lease := l.store.Lease(l.fence)
	if until, ends := lease.Until(); ends && !time.Now().Before(until) {
		return l.setFailure(errLeaseEnded())
	}
	select {
	case <-lease.Ended():
		return l.setFailure(errLeaseEnded())
	default:
		return l.failure()
	}
}
