// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Lease is for how long the writer of a store is sure to be the only one.
type Lease interface {
	// Until returns when it ends, less its margin, as far as is known now; false: never.
	Until() (time.Time, bool)
	// Ended is closed then, or as soon as the lease is known to be lost; nil: never.
	Ended() <-chan struct{}
}

// Forever is the lease of a store that no other process can write while it is open.
type Forever struct{}

// Until returns false.
func (Forever) Until() (time.Time, bool) { return time.Time{}, false }

// Ended returns nil.
func (Forever) Ended() <-chan struct{} { return nil }

// ErrLeaseEnded is the refusal of an append after the lease of its writer. Another
// controller may be the owner: nothing is done any more, and the process ends.
var ErrLeaseEnded = errors.New("state: the lease has ended, and another controller may have taken over")

// LeaseEnded is ErrLeaseEnded with what to do.
func LeaseEnded() error {
	return errkind.New(errkind.Refused, "%w", ErrLeaseEnded).
		Do("Look which controller owns the state with ironrail status; `ironrail apply` there goes on.")
}

// CheckLease refuses what must not begin after a lease, also in a process that was stopped: it
// goes on before whoever keeps the lease has looked at the time.
func CheckLease(l Lease) error {
	if until, ends := l.Until(); ends && !time.Now().Before(until) {
		return LeaseEnded()
	}
	select {
	case <-l.Ended(): // nil: never
		return LeaseEnded()
	default:
		return nil
	}
}

// UnknownError says that nobody knows whether an append was done. Store.Outcome says so
// once the store answers again.
type UnknownError struct {
	Fence Fence
	ID    string // of the append
	Err   error  // why it is not known
}

// Error says why it is not known.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("state: it is not known whether append %s was done: %v", e.ID, e.Err)
}

// Unwrap returns why it is not known.
func (e *UnknownError) Unwrap() error { return e.Err }
