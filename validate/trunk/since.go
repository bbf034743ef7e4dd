// SPDX-License-Identifier: Apache-2.0

package trunk

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
)

// Reading is what the ports of a fabric's switches had counted at a time.
type Reading struct {
	At    time.Time
	Ports map[fabric.SwitchPort]fabric.SwitchCounters
}

// WornBetween returns the ends of cables between the switches of a fabric at which more arrived
// damaged between two readings than a good link lets.
func WornBetween(inv *inventory.Inventory, f *inventory.Fabric, was, is Reading) []Worn {
	w := Watch{inv: inv, fabric: f, cables: cablesOf(inv, f), began: was.At, before: was.Ports,
		read: func(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
			return is.Ports, nil
		}}
	return w.Now(context.Background(), is.At).Worn
}
