// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
)

// TestInrushKeepsBreakersClosed: four nodes that draw seven times their maximum
// until they have settled, on PDUs that carry them at work. Switched on within
// the room of their circuits no breaker opens; all at once they do, which is the
// proof that this test can fail.
func TestInrushKeepsBreakersClosed(t *testing.T) {
	t.Parallel()
	for _, limited := range []bool{true, false} {
		var trips []power.Trip
		inv := steep(t)
		sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 5,
			OnPlan: func(p *plan.Plan, _ predict.Prediction) {
				for i := range p.Steps {
					if u := p.Steps[i].Uses; len(u) > 0 && strings.HasPrefix(u[0].Resource, "inrush/") {
						if u[0].Units < 1000 || !strings.HasPrefix(u[0].Resource, "inrush/"+p.Steps[i].Subject.Name[:3]+"/a/L") {
							t.Errorf("%s claims %+v", p.Steps[i].ID, u)
						}
						if !limited {
							p.Steps[i].Uses = nil
						}
					}
				}
			},
			OnEnd: func(w *virtual.World, _ state.Reader) { trips = w.Trips() }})
		if err != nil {
			t.Fatal(err)
		}
		if limited && (len(trips) > 0 || len(sum.Accepted) != len(inv.Nodes)) {
			t.Errorf("within the limits: %d accepted, breakers opened: %+v", len(sum.Accepted), trips)
		}
		if !limited && len(trips) == 0 {
			t.Error("without limits no breaker opened: the test proves nothing")
		}
	}
}

// steep is the demo with one rack of nodes that are hard to switch on.
func steep(t *testing.T) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, n := range inv.Nodes {
		n.Hardware.Power.Inrush = 7 * n.Hardware.Power.Max
	}
	for _, r := range inv.Racks {
		for _, p := range r.PDUs {
			p.Current = 60
		}
	}
	return inv
}
