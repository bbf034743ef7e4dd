// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/sonic"
)

// What people do between two looks to what is no node: switches, PDUs and the cables between
// switches.

// onSwitch does something to a switch that has a login.
func (w *World) onSwitch(name string, do func(*sonic.Switch) bool) error {
	s := w.switches[name]
	if s == nil || !do(s) {
		return errkind.New(errkind.NotFound, "there is no such virtual switch with a login, or it has no such entry: %s", name)
	}
	return nil
}

// SetSwitch sets a field of the running configuration of a switch, which is not saved.
func (w *World) SetSwitch(name, table, key, field, value string) error {
	return w.onSwitch(name, func(s *sonic.Switch) bool { return s.SetField(table, key, field, value) })
}

// RemovePort takes a port out of a switch, as another breakout mode does.
func (w *World) RemovePort(name, port string) error {
	return w.onSwitch(name, func(s *sonic.Switch) bool { return s.RemoveKey("PORT", port) })
}

// CutSwitch pulls the cable of a switch's management port, or plugs it in again.
func (w *World) CutSwitch(name string, cut bool) error {
	return w.onSwitch(name, func(s *sonic.Switch) bool { s.Cut(cut); return true })
}

// CutManager takes the HCA out of the controller of a fabric's subnet manager, or puts it back.
func (w *World) CutManager(fabric string, cut bool) error {
	m := w.subnets[fabric]
	if m == nil {
		return errkind.New(errkind.NotFound, "there is no virtual InfiniBand fabric %s", fabric)
	}
	m.Cut(cut)
	return nil
}

// SetTrunkDown takes away the link of the cable between two switches that is in a port, such as
// net/leaf-1/33, or gives it back.
func (w *World) SetTrunkDown(port string, down bool) error {
	return w.onTrunkAt(port, func(m *model.Model, c *inventory.Cable) error { return m.SetTrunkDown(trunkEnd(c.From), down) })
}

// SwitchOutlet switches the relay of an outlet of a PDU.
func (w *World) SwitchOutlet(pdu string, outlet int, on bool) error {
	p, ok := w.grid.PDU(pdu)
	if !ok {
		return errkind.New(errkind.NotFound, "there is no virtual PDU %s", pdu)
	}
	return p.Switch(outlet, on)
}

// MovePlug pulls a plug and puts it into a free outlet of the same PDU.
func (w *World) MovePlug(pdu string, from, to int) error { return w.grid.MovePlug(pdu, from, to) }

// FeedPDU cuts or restores the power of a whole PDU, and of its management card with it.
func (w *World) FeedPDU(pdu string, live bool) error { return w.grid.Input(pdu, live) }
