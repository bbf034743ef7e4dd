// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"net/netip"

	"github.com/ironrail/ironrail/inventory"
)

// PortAddress is an address of a port of a node on a fabric.
type PortAddress struct {
	NIC     *inventory.NIC
	Port    int // in NIC
	Rail    int
	Address netip.Prefix
}

// RailAddresses lists the addresses that a node has on the rails of a fabric
// with addressing "subnet", by rail. Ports that can have none are left out: a
// plan says so.
func RailAddresses(f *inventory.Fabric, n *inventory.Node) []PortAddress {
	if n.Hardware == nil || f.Kind != Name || f.Addressing != "subnet" || !f.CIDR.IsValid() {
		return nil
	}
	var list []PortAddress
	for _, p := range portsOn(f, n) {
		if a, err := railAddress(f, n, p.Rail); err == nil {
			list = append(list, PortAddress{p.nic, p.index, p.Rail, a})
		}
	}
	return list
}
