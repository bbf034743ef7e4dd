// SPDX-License-Identifier: Apache-2.0

// Package cohort holds nodes on a network against those that are alike, by what TCP carried between
// them: it says which of them, which leaf or which network is slow, and in which direction.
package cohort

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/target"
)

// Member is a node on a network.
type Member struct {
	Node  *inventory.Node
	NIC   *inventory.NIC
	Leaf  string  // switch that its cable ends at, else its rack
	far   string  // port that its cable ends in; empty: the site does not say
	Limit float64 // of the site, bytes a second; 0: it has none
	Text  string  // of the limit, as the site has it
}

// Name is that of the node.
func (m Member) Name() string { return m.Node.Name }

// part is what its end of the network is called, as the health checks call it.
func (m Member) part() string { return fmt.Sprintf("nic %s/0", m.NIC.Name) }

// Cohort is the nodes of a role with the same hardware block on one network. Those of other
// hardware have other NICs, and are not alike.
type Cohort struct {
	Network  *inventory.Network
	Hardware string // block
	Members  []Member
}

func (c *Cohort) String() string { return "network " + c.Network.Name + " of " + c.Hardware }

// Connection is a NIC by which nodes of a hardware block are on a network, tagged or not.
type Connection struct {
	NIC     *inventory.NIC
	Network *inventory.Network
}

// NetworksOf returns by what nodes of a hardware block are on networks, one NIC for each
// network: that which boots first, since it has the node's address.
func NetworksOf(h *inventory.Hardware) (list []Connection) {
	taken := map[*inventory.Network]bool{}
	add := func(nic *inventory.NIC, net *inventory.Network) {
		if net != nil && !taken[net] {
			taken[net] = true
			list = append(list, Connection{nic, net})
		}
	}
	if nic, ok := h.BootNIC(); ok {
		add(nic, nic.Network)
	}
	for i := range h.NICs {
		nic := &h.NICs[i]
		add(nic, nic.Network)
		for _, net := range nic.Tagged {
			add(nic, net)
		}
	}
	return list
}

// IsOnNetwork reports whether a node's networks are measured. Of a node that another tool
// installed nothing says which these are.
func IsOnNetwork(n *inventory.Node) bool {
	return target.HasHost(n) && !n.Foreign && len(NetworksOf(n.Hardware)) > 0
}

// Split splits nodes into those that are alike, in the order of the nodes.
func Split(inv *inventory.Inventory, nodes []*inventory.Node) (list []*Cohort) {
	type key struct {
		hardware *inventory.Hardware
		network  *inventory.Network
	}
	at, of := farEnds(inv), map[key]*Cohort{}
	for _, n := range nodes {
		limit, text := 0.0, ""
		if n.Validation != nil {
			limit, text = target.Group{Validation: n.Validation}.Floor(floor.NetworkTCP)
		}
		for _, x := range NetworksOf(n.Hardware) {
			k := key{n.Hardware, x.Network}
			if of[k] == nil {
				of[k] = &Cohort{Network: x.Network, Hardware: n.Hardware.Name}
				list = append(list, of[k])
			}
			m := Member{Node: n, NIC: x.NIC, Limit: limit, Text: text}
			if far, known := at[place{n.Name, x.NIC.Name}]; known {
				m.Leaf, m.far = far.Switch.Name, far.String()
			} else if n.Rack != nil {
				m.Leaf = "rack " + n.Rack.Name
			}
			of[k].Members = append(of[k].Members, m)
		}
	}
	return list
}

// place is a NIC of a node.
type place struct{ node, nic string }

// farEnds are the ports of switches that NICs on networks are cabled to.
func farEnds(inv *inventory.Inventory) map[place]inventory.CableEnd {
	at := map[place]inventory.CableEnd{}
	for _, c := range inv.Cables {
		near, far := c.NodeEnd()
		if near.Node != nil && near.NIC != nil && near.NIC.Network != nil && near.Port == 0 && far.Switch != nil {
			at[place{near.Node.Name, near.NIC.Name}] = *far
		}
	}
	return at
}
