// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/provision/bmc"
)

// logFact is where the event log of a node's BMC ended when a bring-up began: what
// comes after it is what the bring-up met.
const logFact = fact.Name[LogMark]("bmc.log_mark")

// LogMark is a place in an event log, and when it was taken by our own clock.
type LogMark struct {
	At time.Time `json:"at"`
	bmc.LogMark
}

// markWait is how long a BMC may take to read its log; real ones hold thousands of
// entries.
const markWait = 30 * time.Second

// markLog notes where the event log ends. One that cannot be read is no reason to
// leave a node as it is: nothing is said about its events then.
func markLog(ctx context.Context, run stage.Run, b BMC) (LogMark, bool) {
	h, ok := b.(*bmc.Handle)
	if !ok {
		return LogMark{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	m := LogMark{At: run.Clock().Now().UTC()}
	err := bmc.Use(ctx, h, "read the event log", func(l bmc.LogSince) (err error) {
		m.LogMark, err = l.LogMark(ctx)
		return err
	})
	return m, err == nil
}
