// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"

	"github.com/ironrail/ironrail/internal/addr"
)

// NetworkParams are how the interfaces of a node's networks are to be, rails of fabrics
// aside. An interface that is not named is left as it is.
type NetworkParams struct {
	Ports []NetworkPort   `json:"ports,omitempty"` // members of bonds among them
	Bonds []NetworkBond   `json:"bonds,omitempty"`
	VLANs []NetworkVLAN   `json:"vlans,omitempty"`
	IPv6  *NetworkAddress `json:"ipv6,omitempty"` // of the interface that the node booted from; nil: none was set
}

// NetworkAddress is the IPv6 address that a node has beside its IPv4 address.
type NetworkAddress struct {
	MAC     addr.MAC     `json:"mac"` // of the interface: the NIC that the node booted from, or a bond over it
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway,omitzero"` // of the default route; the zero value: there is none
}

// NetworkPort is one port of a NIC on a network. It is found by its PCI address.
type NetworkPort struct {
	Name string `json:"name"` // mgmt/0, as bonds and cables write it
	PCI  string `json:"pci"`
	MTU  int    `json:"mtu,omitempty"` // bytes of IP; 0: as the driver has it, of a member of a bond alone
}

// NetworkBond is several ports as one interface (bonding of Linux). It has the addresses
// of the node where the port is a member that the node booted from.
type NetworkBond struct {
	Name    string   `json:"name"` // of the interface
	Mode    string   `json:"mode"` // 802.3ad, active-backup, balance-rr or balance-xor
	Members []string `json:"members"`
	MTU     int      `json:"mtu,omitempty"` // bytes of IP; 0: as the kernel has it
}

// NetworkVLAN is an interface of a tagged network (IEEE 802.1Q).
type NetworkVLAN struct {
	Name      string         `json:"name"`           // of the interface
	ID        int            `json:"id"`             // 1 to 4094
	Over      string         `json:"over,omitempty"` // the port or the bond that it is on; "": the NIC that the node booted from
	MAC       addr.MAC       `json:"mac,omitzero"`   // of that NIC, where Over is ""
	MTU       int            `json:"mtu"`            // bytes of IP, at most that of what it is on
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Boot      bool           `json:"boot,omitempty"` // of the network that the node boots from: it has the node's own address, gateways and name servers
}

// NetworkResult is how the interfaces are. Apply and check both end with looking.
type NetworkResult struct {
	Conforms bool             `json:"conforms"` // no interface has a problem
	Changed  []string         `json:"changed,omitempty"`
	Links    []InterfaceState `json:"links,omitempty"`
	Error    *TaskError       `json:"error,omitempty"`
}

// InterfaceState is one interface as it is.
type InterfaceState struct {
	Name     string   `json:"name"` // of the parameters: of a port, or of a bond
	Netdev   string   `json:"netdev,omitempty"`
	MTU      int      `json:"mtu,omitempty"`
	Bonding  bool     `json:"bonding,omitempty"` // the first problem is one of a bond
	VLAN     bool     `json:"vlan,omitempty"`    // it is one of a tagged network
	IPv6     string   `json:"ipv6,omitempty"`    // the first problem is one of the IPv6 address: which
	Problems []string `json:"problems,omitempty"`
}

// What may be wrong with an IPv6 address, as InterfaceState has it.
const (
	IPv6Absent    = "absent"    // on no interface, or on another one
	IPv6Duplicate = "duplicate" // another machine on the network has it
	IPv6Pending   = "pending"   // the kernel still asks whether another machine has it
	IPv6Route     = "route"     // no default route by the gateway
)
