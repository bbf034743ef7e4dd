package virtual

import (
	"context"
	"net/netip"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/virtual/power"
)

const snmpPort = 161

// newGrid hangs the nodes on their PDUs.
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
			Draw: func(on bool) float64 { return power.Watts(n.Hardware.Power, on, node.busy()) }})
	}
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
