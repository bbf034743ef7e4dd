// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/addr"
	agent "github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/wiring"

	"github.com/ironrail/ironrail/inventory/unit"
)

// link is what the cable of a port does, as the node's kernel sees it.
func (n *Node) link(nic string, index int) metal.Link {
	id := model.PortID{Node: n.inv.Name, NIC: nic, Index: index}
	p, ok := n.world.model.Port(id)
	if !ok {
		return metal.Link{}
	}
	s, c := n.world.model.State(id), n.world.model.Counters(id)
	l := metal.Link{Down: !s.Up, Counters: map[string]int64{}}
	if s.Lanes != p.Lanes {
		l.Lanes = s.Lanes
	}
	if f := n.fabricOf(nic); f != nil && p.Medium == model.InfiniBand {
		l.LID, l.PKeys = n.world.table(f, n.guid(nic, index))
	}
	for name, v := range map[string]int64{
		"symbol_error": c.SymbolError, "link_error_recovery": c.LinkErrorRecovery, "link_downed": c.LinkDowned, "port_rcv_errors": c.PortRcvErrors,
		"local_link_integrity_errors": c.LocalLinkIntegrity, "out_of_sequence": c.OutOfSequence, "roce_adp_retrans": c.AdpRetrans, "carrier_changes": c.CarrierChanges,
		"port_xmit_data": c.XmitBytes / 4, "port_rcv_data": c.RcvBytes / 4, // in words of four bytes
	} {
		if v != 0 {
			l.Counters[name] = v
		}
	}
	return l
}

// fabricOf is the fabric of a NIC; nil: none.
func (n *Node) fabricOf(nic string) *inventory.Fabric {
	for i := range n.inv.Hardware.NICs {
		if x := &n.inv.Hardware.NICs[i]; x.Name == nic {
			return x.Fabric
		}
	}
	return nil
}

// guid is that of a port.
func (n *Node) guid(nic string, index int) addr.GUID {
	for _, p := range n.metal.Ports() {
		if p.NIC == nic && p.Index == index {
			return p.GUID
		}
	}
	return 0
}

// neighbours is whom the node's NICs hear by LLDP.
func (n *Node) neighbours() []agent.Neighbour {
	var nics []wiring.NIC
	for _, p := range n.metal.Ports() {
		if n.metal.OtherType(p.PCI) {
			continue // it has no interface that listens
		}
		nics = append(nics, wiring.NIC{Name: p.Netdev, PCI: p.PCI, Port: wiring.Port{Node: n.inv.Name, NIC: p.NIC, Index: p.Index}})
	}
	return n.world.cables.Neighbours(nics)
}

// Images is what the stand-ins of the site's images stand for.
func (w *World) Images() map[string]predict.Image {
	all := map[string]predict.Image{}
	for _, i := range w.inv.Images {
		all[i.Name] = predict.Image{Wire: unit.Bytes(ImageWire), Disk: unit.Bytes(ImageDisk)}
	}
	return all
}
