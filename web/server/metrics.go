// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/metrics"
	"github.com/ironrail/ironrail/web/view"
)

// noOwner is how long is waited for a run to begin, and for one that does not answer.
const noOwner = 2 * time.Second

// newMetrics makes the metrics of what a keeper reads. Models of nodes are those of the
// site's files as they are now.
func newMetrics(ctx context.Context, k *view.Keeper, version string) *metrics.Metrics {
	var inv *inventory.Inventory
	if s, err := k.Current(ctx); err == nil && s != nil {
		inv = s.Inv
	}
	return metrics.New(inv, metrics.Source{Version: version, Now: k.Now, Report: k.Report, Status: k.Status})
}

// followRuns counts the events of all runs until ctx is done.
func followRuns(ctx context.Context, folder string, m *metrics.Metrics) {
	events := make(chan event.Event)
	var wg sync.WaitGroup
	wg.Go(func() { readRuns(ctx, folder, events) })
	_ = m.Follow(ctx, func(ctx context.Context) (event.Event, error) { // of a source that does not fail
		select {
		case e := <-events:
			return e, nil
		case <-ctx.Done():
			return event.Event{}, io.EOF
		}
	})
	wg.Wait()
}

// readRuns gives the events of one run after the other, each event once.
func readRuns(ctx context.Context, folder string, to chan<- event.Event) {
	var last control.Identity
	next := uint64(0)
	for ctx.Err() == nil {
		if who, owned, err := control.FindOwner(folder); err == nil && owned {
			if who != last {
				last, next = who, 0
			}
			_, _ = onrecord.AskOwner(folder, func(c *control.Client) error { // one that has ended is asked no more
				return c.Events(ctx, next, true, func(e event.Event) error {
					next = e.Seq + 1
					select {
					case to <- e:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			})
		}
		select {
		case <-ctx.Done():
		case <-time.After(noOwner):
		}
	}
}
