// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
)

// What a technician does in the rack. Each takes the power off first, waits until
// it is off, and leaves it so.

// Replace puts another chassis of the same hardware block in a node's place: its
// serial number, UUID, MACs, GUIDs and BMC certificate are others, its disks are
// blank. Cables, rack unit, the address and the accounts of the BMC stay. The same
// seed brings the same chassis.
func (w *World) Replace(ctx context.Context, node, seed string) error {
	n, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	n.metal.Replace(seed)
	return w.fitted(n)
}

// Exchange swaps the chassis of two nodes, with everything in them.
func (w *World) Exchange(ctx context.Context, node, with string) error {
	a, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	b, err := w.switchOff(ctx, with)
	if err != nil {
		return err
	}
	if err := metal.ExchangeChassis(a.metal, b.metal); err != nil {
		return err
	}
	return errors.Join(w.fitted(a), w.fitted(b))
}

// ExchangeDisks swaps the disks of one bay, counted from 0, between two nodes.
func (w *World) ExchangeDisks(ctx context.Context, node, with string, bay int) error {
	a, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	b, err := w.switchOff(ctx, with)
	if err != nil {
		return err
	}
	return metal.ExchangeDisks(a.metal, b.metal, bay)
}

// AddDisk puts one more disk into a node, which its hardware block does not name, at
// a PCI address before those of the others or after them.
func (w *World) AddDisk(ctx context.Context, node string, d inventory.Disk, before bool) (*metal.Disk, error) {
	n, err := w.switchOff(ctx, node)
	if err != nil {
		return nil, err
	}
	return n.metal.AddDisk(d, before)
}

// ReplaceDisk puts a blank disk of another serial number into a bay, counted from 0.
func (w *World) ReplaceDisk(ctx context.Context, node string, bay int, seed string) error {
	n, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	return n.metal.ReplaceDisk(bay, seed)
}

// ExchangeBays swaps the disks of two bays of a node.
func (w *World) ExchangeBays(ctx context.Context, node string, i, j int) error {
	n, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	return n.metal.ExchangeBays(i, j)
}

// PutDIMM puts a module into a slot, counted from 0, of a node; what was there is
// thrown away.
func (w *World) PutDIMM(ctx context.Context, node string, slot int, serial string) error {
	n, err := w.switchOff(ctx, node)
	if err != nil {
		return err
	}
	return n.metal.PutDIMM(slot, serial)
}

// fitted tells everything around a chassis who it is now.
func (w *World) fitted(n *Node) error {
	id := n.metal.Identity()
	if err := n.chassis.Replace(id.Serial, id.UUID); err != nil {
		return err
	}
	boots := !n.inv.BootMAC.IsZero()
	n.board = n.mainboard(boots)
	n.chassis.SetBoard(w.grid.Board(n.inv.Name, n.board))
	if boots && n.cable != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for mac, is := range w.byMAC {
			if is == n {
				delete(w.byMAC, mac)
			}
		}
		w.byMAC[id.BootMAC] = n
	}
	return nil
}

// switchOff takes the power off a node.
func (w *World) switchOff(ctx context.Context, node string) (*Node, error) {
	n := w.nodes[node]
	if n == nil {
		return nil, errkind.New(errkind.NotFound, "there is no virtual node %s", node)
	}
	for n.chassis.Power() != chassis.Off {
		if err := n.chassis.Press(chassis.ForceOff); err != nil && !errors.Is(err, chassis.ErrTransition) && !errors.Is(err, chassis.ErrAlready) {
			return nil, err
		}
		if err := w.opt.Clock.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return n, nil
}
