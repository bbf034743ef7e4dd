// SPDX-License-Identifier: Apache-2.0

// Package bubble gives a program virtual time. Inside of Run every clock of the
// Go runtime (time.Now, timers, deadlines, contexts) is virtual: it stands still
// while any goroutine can go on, and jumps to the next timer when every one of
// them waits for time, a channel or a condition. A deadline therefore passes
// only when nothing could have happened before it, however starved the machine
// is. Nothing in a bubble may use a real socket or wait with a mutex held by
// another waiter: time would stand still forever.
//
// It is testing/synctest, which the Go project maintains for exactly this, run
// outside of `go test`.
package bubble

import (
	"testing"
	"testing/synctest"
	"time"
)

// Run runs f and all goroutines that it starts on virtual time, from the
// present on, and returns when the last of them has ended. It panics when all of
// them wait for something that nobody will do.
func Run(f func()) {
	now := time.Now().Truncate(time.Second).Round(0) // whole: what is shown in seconds is the same in every run
	// A zero T is enough: nothing is reported through it and no test runs.
	synctest.Test(new(testing.T), func(*testing.T) {
		time.Sleep(time.Until(now)) // a bubble begins in the year 2000
		f()
	})
}
