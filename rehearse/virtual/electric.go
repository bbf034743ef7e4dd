// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
)

const (
	snmpPort = 161
	// usualSwitch is what a switch draws whose power the site does not say, watts. Belief.
	usualSwitch = 500
)

// newGrid hangs nodes, switches and power shelves on their PDUs. A switch that loses all of its feeds
// goes on: what a fabric does then is not simulated.
func (w *World) newGrid() (err error) {
	c := power.Config{Clock: w.opt.Clock}
	for _, r := range w.inv.Racks {
		c.PDUs = append(c.PDUs, r.PDUs...)
	}
	for _, n := range w.inv.Nodes {
		node := w.nodes[n.Name]
		if node == nil {
			continue
		}
		c.Loads = append(c.Loads, power.Load{Name: n.Name, Feeds: n.Feeds, Max: float64(n.Hardware.Power.Max), Mains: node.chassis.Mains, Off: true,
			Draw: func(on bool) float64 { return node.watts(on) }})
	}
	for _, s := range w.inv.Switches { // they run from the start
		c.Loads = append(c.Loads, power.Load{Name: s.Name, Feeds: s.Feeds, Max: float64(cmp.Or(s.Power, usualSwitch))})
	}
	c.Loads = append(c.Loads, w.shelfLoads()...)
	if w.grid, err = power.New(c); err != nil {
		return err
	}
	for name, node := range w.nodes {
		node.chassis.SetBoard(w.grid.Board(name, node.board))
	}
	return nil
}

// openPDU opens the socket of a PDU's management card.
func (w *World) openPDU(ctx context.Context, p *inventory.PDU) (part, error) {
	at := netip.AddrPortFrom(p.Control.Address, snmpPort)
	conn, err := w.opt.Board.At(p.Control.Address).ListenPacket(ctx, "udp", at.String())
	pdu, _ := w.grid.PDU(p.Name) // newGrid has all of them
	return func(ctx context.Context) error {
		return pdu.Serve(ctx, conn, power.Options{Community: w.password(p.Control.Community)})
	}, err
}

// watts is what a node draws: where its hardware says what it draws until it has
// settled, that much for settlesAfter from power-on, or until an operating system
// runs where that is sooner. A reboot switches no supply.
func (n *Node) watts(on bool) float64 {
	p := n.inv.Hardware.Power
	if !on {
		n.settled.Store(false)
	}
	if on && p.Inrush > 0 && !n.settled.Load() {
		return float64(p.Inrush)
	}
	return power.DrawnWatts(p, on, n.busy())
}

// settlesAfter is how long supplies and fans take to settle.
const settlesAfter = 45 * time.Second

// starts says that the node's operating system runs.
func (n *Node) starts() {
	n.chassis.SetPhase("OS")
	n.settle()
}

// settle says that the supplies have settled.
func (n *Node) settle() {
	if n.inv.Hardware.Power.Inrush > 0 && n.settled.CompareAndSwap(false, true) {
		n.world.grid.Changed(n.inv.Name)
	}
}

// Trips are the breakers that have opened, in order.
func (w *World) Trips() []power.Trip { return w.grid.Trips() }
