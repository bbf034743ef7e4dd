// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/metrics"
	"github.com/ironrail/ironrail/web/view"
)

// newMetrics makes the metrics of what a keeper reads, and of the events that are appended to the
// site's from now on, by whichever process has a run: one that ended between two scrapes is counted
// too. Models of nodes are those of the site's files as they are now.
func newMetrics(ctx context.Context, k *view.Keeper, version string) (*metrics.Metrics, error) {
	events, err := onrecord.OpenEventTail(k.State)
	if err != nil {
		return nil, err
	}
	var inv *inventory.Inventory
	if s, err := k.Current(ctx); err == nil && s != nil {
		inv = s.Inv
	}
	return metrics.New(inv, metrics.Source{Version: version, Now: k.Now, Report: k.Report, Status: k.Status, Events: events.Read}), nil
}
