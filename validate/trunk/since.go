// SPDX-License-Identifier: Apache-2.0

package trunk

import (
	"context"
	"slices"
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
// damaged between two readings than a good link lets, or whose link went down. One that had no link before is not
// among them: the test that read that has named it.
func WornBetween(inv *inventory.Inventory, f *inventory.Fabric, was, is Reading) []Worn {
	w := Watch{inv: inv, fabric: f, cables: cablesOf(inv, f), began: was.At, before: was.Ports,
		read: func(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
			return is.Ports, nil
		}}
	return slices.DeleteFunc(w.Now(context.Background(), is.At).Worn, func(e Worn) bool { return was.Ports[e.At].Down })
}

// End is an end of a cable between two switches.
type End struct {
	Cable string            // its lower end, as findings name it
	At    fabric.SwitchPort // this end
	From  string            // the switch at the other end
}

// Ends are those of a fabric's cables between switches, in the order of the site.
func Ends(inv *inventory.Inventory, f *inventory.Fabric) (list []End) {
	for _, c := range cablesOf(inv, f) {
		list = append(list, End{c.lower, c.lower, c.upperSwitch}, End{c.lower, c.upper, c.lowerSwitch})
	}
	return list
}
