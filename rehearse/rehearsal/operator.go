// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// stopPollPeriod is how often the operator's request to stop is looked for, on the
// hardware's clock.
const stopPollPeriod = 5 * time.Second

// linger keeps the virtual rack up until the operator wants no more.
func (t *Rehearsal) linger(ctx context.Context) {
	if t.opt.OnLinger != nil {
		t.measure()
		t.opt.OnLinger(t.sum)
	}
	<-ctx.Done()
}

// watchStop ends the rehearsal when the operator wants it.
func (t *Rehearsal) watchStop(ctx context.Context, cancel context.CancelCauseFunc) {
	if t.opt.Interrupted == nil {
		return
	}
	for t.Clock.Sleep(ctx, stopPollPeriod) == nil {
		if t.opt.Interrupted() {
			cancel(errkind.New(errkind.Interrupted, "stopped by the operator"))
			return
		}
	}
}
