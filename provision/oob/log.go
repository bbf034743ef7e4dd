// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
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

const (
	// markWait is how long a BMC may take to read its log; real ones hold thousands of
	// entries.
	markWait = 30 * time.Second
	// clearWait is how long it may take to read a full log, clear it and read it again.
	clearWait = 90 * time.Second
	// clockOff is how far a BMC's clock may be off: its log is read beside others, by
	// people, to the minute.
	clockOff = time.Minute
)

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

// prepareLog makes sure that what happens from now on is written to the event log, with
// the right time. Neither is a reason to leave a node as it is: what a BMC refuses is
// noted.
func prepareLog(ctx context.Context, run stage.Run, st plan.Step, n *inventory.Node, b BMC) error {
	h, ok := b.(*bmc.Handle)
	if !ok {
		return nil
	}
	if err := setClock(ctx, run, st, n, h); err != nil {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the clock of the BMC of %s is not set: %s", n.Name, errkind.Line(err))})
	}
	if err := clearFull(ctx, run, st, n, h); err != nil {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the event log of the BMC of %s is full and was not cleared, so that new events are lost: %s", n.Name, errkind.Line(err))})
	}
	return context.Cause(ctx)
}

// setClock sets the BMC's clock where it is off. A BMC that shows none, or does not answer
// this, is left as it is.
func setClock(ctx context.Context, run stage.Run, st plan.Step, n *inventory.Node, h *bmc.Handle) error {
	asking, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	var shows time.Time
	err := bmc.Use(asking, h, "read the clock", func(t bmc.Timekeeper) (err error) { shows, err = t.Time(asking); return err })
	now := run.Clock().Now()
	if err != nil || shows.IsZero() || shows.Sub(now).Abs() < clockOff {
		return nil
	}
	return run.Effect(ctx, stage.Effect{
		Key: fmt.Sprintf("%s/clock-%d", st.ID, now.Unix()), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("set the clock of the BMC of %s, which says %s", n.Name, shows.UTC().Format(time.DateTime)),
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, markWait)
			defer cancel()
			return bmc.Use(ctx, h, "set the clock", func(t bmc.Timekeeper) error {
				_, err := t.SetTime(ctx, run.Clock().Now())
				return err
			})
		},
	})
}

// clearFull keeps what a full event log says as evidence, and clears it.
func clearFull(ctx context.Context, run stage.Run, st plan.Step, n *inventory.Node, h *bmc.Handle) error {
	asking, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	why := ""
	err := bmc.Use(asking, h, "ask whether the event log is full", func(l bmc.LogSpace) (err error) { why, err = l.LogFull(asking); return err })
	if err != nil || why == "" {
		return nil
	}
	reading, stop := context.WithTimeout(ctx, clearWait)
	defer stop()
	var all []bmc.LogEntry
	if err := bmc.Use(reading, h, "read the event log", func(l bmc.EventLog) (err error) { all, err = l.EventLog(reading, 0); return err }); err != nil {
		return err
	}
	text := new(strings.Builder)
	for _, e := range all {
		fmt.Fprintf(text, "%s %s %s %s: %s\n", e.ID, e.Created.UTC().Format(time.DateTime), e.Severity, e.Sensor, e.Message)
	}
	ref, err := run.Attach("event-log.txt", []byte(text.String()))
	if err != nil {
		return err
	}
	return run.Effect(ctx, stage.Effect{
		Key: fmt.Sprintf("%s/clear-log-%d", st.ID, run.Clock().Now().Unix()), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("clear the event log of the BMC of %s, which is full (%s); what it says is kept (%s)", n.Name, why, ref),
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, clearWait)
			defer cancel()
			return bmc.Use(ctx, h, "clear the event log", func(l bmc.EventLog) error {
				_, err := l.ClearEventLog(ctx)
				return err
			})
		},
	})
}
