// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// faultySupply is the supply of a shelf that fails, from 0.
const faultySupply = 2

// shelf is a power shelf whose management controller answers. Nodes draw from the shelves
// of their rack whatever happens to one: the others carry them.
type shelf struct {
	inv     *inventory.Shelf
	chassis *chassis.Chassis
}

// newShelves makes the shelves that have a control block. The controller lives off the bus
// bar: it answers while its own shelf has no input.
func (w *World) newShelves() {
	w.shelves = map[string]*shelf{}
	kind := redfish.PowerShelf()
	for _, r := range w.inv.Racks {
		for _, s := range r.Shelves {
			if s.Control == nil {
				continue
			}
			w.shelves[s.Name] = &shelf{s, chassis.New(kind.Fit(chassis.Config{Node: s.Name, Supplies: s.Count, OwnPower: true, Clock: w.opt.Clock, Seed: w.opt.Seed,
				Accounts: []chassis.Account{{ID: kind.AdminID, Username: s.Control.Username, Password: w.password(s.Control.Password), Role: "Administrator", Enabled: true}}}))}
		}
	}
}

// shelfLoads hang the shelves on what feeds them. Each draws its part of what the nodes of
// its rack draw that have no supplies of their own.
func (w *World) shelfLoads() (loads []power.Load) {
	for _, r := range w.inv.Racks {
		watts := 0.0
		for _, n := range r.Nodes {
			if len(n.Feeds) == 0 && n.Hardware != nil {
				watts += float64(n.Hardware.Power.Typical)
			}
		}
		for _, s := range r.Shelves {
			l := power.Load{Name: s.Name, Feeds: s.Feeds, Max: watts / float64(len(r.Shelves))}
			if sh := w.shelves[s.Name]; sh != nil {
				l.Mains = sh.chassis.Mains
			}
			loads = append(loads, l)
		}
	}
	return loads
}

// openShelves opens the sockets of the shelves' management controllers.
func (w *World) openShelves(ctx context.Context) error {
	for _, r := range w.inv.Racks {
		for _, s := range r.Shelves {
			sh := w.shelves[s.Name]
			if sh == nil {
				continue
			}
			at := s.Control.Address
			ln, err := w.opt.Board.At(at).Listen(ctx, "tcp", netip.AddrPortFrom(at, shelfPort).String())
			if err != nil {
				return fmt.Errorf("power shelf %s: %w", s.Name, err)
			}
			w.parts = append(w.parts, sh.chassis.Run, func(ctx context.Context) error {
				return redfish.Serve(ctx, ln, sh.chassis, redfish.PowerShelf(), redfish.Options{Address: at})
			})
		}
	}
	return nil
}

// shelfPort is where they answer.
const shelfPort = 443

// failShelfSupply makes a supply of a shelf give nothing any more.
func (w *World) failShelfSupply(f fault.Fault) error {
	s, ok := w.shelves[f.Shelf]
	if !ok {
		return errkind.New(errkind.NotFound, "there is no virtual power shelf %s with a control block", f.Shelf)
	}
	s.chassis.FailSupply(min(faultySupply, s.inv.Count-1))
	return nil
}
