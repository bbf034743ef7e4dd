// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
)

// cards are the NICs of a node as its system reaches their flash.
type cards struct{ kernel *metal.Kernel }

func cardsOf(k *metal.Kernel) system.Cards { return cards{k} }

// Card implements system.Cards.
func (c cards) Card(address string) (device string, list []system.CardSetting, ok bool) {
	device, settings, ok := c.kernel.Card(address)
	for _, s := range settings {
		list = append(list, system.CardSetting(s))
	}
	return device, list, ok
}

// SetCard implements system.Cards.
func (c cards) SetCard(address, name string, value int) error {
	return c.kernel.SetCard(address, name, value)
}

// DeliverOtherType delivers the card of a node's port (rail/0) with the other link type than
// its block says.
func (w *World) DeliverOtherType(node, port string) error {
	return w.with(node, func(n *Node) error { return n.deliverOtherType(fault.Fault{Node: node, Port: port}) })
}

func (n *Node) deliverOtherType(f fault.Fault) error {
	at, _, err := n.portAddress(f)
	if err != nil {
		return err
	}
	if !n.metal.FlipLinkType(at) {
		return errkind.New(errkind.NotFound, "the NIC at %s of %s has no link type that can be set", at, n.inv.Name)
	}
	n.matchTypes()
	return nil
}

// loseSettings delivers a NIC with the other link type and with a flash that keeps nothing.
func (n *Node) loseSettings(f fault.Fault) error {
	if err := n.deliverOtherType(f); err != nil {
		return err
	}
	at, _, err := n.portAddress(f)
	if err == nil {
		n.metal.LoseSettings(at)
	}
	return err
}
