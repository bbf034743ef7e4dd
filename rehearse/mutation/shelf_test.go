// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
	"github.com/ironrail/ironrail/provision/supply"
)

// shelf is a power shelf that says what it was given.
type shelf struct{ supply.ShelfReading }

func (s shelf) Meter(*inventory.PDU) (pdu.Meter, error)                { return nil, nil }
func (s shelf) Shelf(*inventory.Shelf) (supply.Shelf, error)           { return s, nil }
func (s shelf) ReadShelf(context.Context) (supply.ShelfReading, error) { return s.ShelfReading, nil }

// TestPowerShelf changes what the management controller of a power shelf says.
func TestPowerShelf(t *testing.T) {
	t.Parallel()
	at := &inventory.Shelf{Name: "r01/ps1", Rack: &inventory.Rack{Name: "r01"}, Count: 6, Control: &inventory.ShelfControl{}}
	for range at.Count {
		at.Feeds = append(at.Feeds, inventory.Feed{PDU: &inventory.PDU{Name: "r01/w1"}})
	}
	var four [4]supply.ShelfReading
	for k := range four {
		r := supply.ShelfReading{At: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), Manufacturer: "DELTA", Model: "AHE50V660A33KWR", Serial: fmt.Sprintf("S%d", k), Certificate: "ab"}
		for i := range at.Count {
			r.Supplies = append(r.Supplies, supply.ShelfSupply{Name: fmt.Sprintf("%d", i+1), Says: "Enabled, OK"})
		}
		four[k] = r
	}
	mutate(t, "power shelf", four, func(four [4]supply.ShelfReading) (v verdict) {
		for k, r := range four {
			run := onnodetest.NewRun()
			if err := supply.New(&inventory.Inventory{}, shelf{r}).LookAtShelf(t.Context(), run, at); err != nil {
				t.Error(err)
			}
			for _, f := range run.Findings {
				if k == 0 {
					v.faults = append(v.faults, f.Cause)
				} else {
					v.others = append(v.others, f.Cause)
				}
			}
		}
		return v
	})
}
