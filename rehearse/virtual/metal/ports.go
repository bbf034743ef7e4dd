// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/ironrail/ironrail/internal/addr"
)

// Port is one network port of a node, as its wiring needs it.
type Port struct {
	NIC    string // block of the inventory
	Index  int    // within the block
	PCI    string
	Netdev string // as the kernel calls it
	RDMA   string // device; of soft RDMA, the one that can be made; empty: none
	MAC    addr.MAC
	GUID   addr.GUID // of the port; 0 without RDMA
}

// Ports returns the ports, in the order of their PCI addresses, removed ones too.
func (n *Node) Ports() []Port {
	list := make([]Port, 0, len(n.ports))
	for i, p := range n.shape.ports {
		q := Port{NIC: p.nic, Index: p.index, PCI: n.shape.functions[p.function].address, Netdev: p.netdev, RDMA: p.rdma, MAC: n.portMAC(i)}
		if p.rdma != "" {
			q.GUID = guidOf(q.MAC)
		}
		list = append(list, q)
	}
	return list
}

// netAddress is the link-layer address of an interface: six bytes, or the twenty
// of IPoIB (RFC 4391, section 9.1.1).
func (n *Node) netAddress(i int) string {
	if !n.shape.ports[i].ib {
		return n.portMAC(i).String()
	}
	g := uint64(guidOf(n.portMAC(i)))
	text := fmt.Sprintf("00:00:%02x:%02x:fe:80:00:00:00:00:00:00", byte(i), byte(0x29))
	for shift := 56; shift >= 0; shift -= 8 {
		text += fmt.Sprintf(":%02x", byte(g>>shift))
	}
	return text
}

// link is what the cable of a port does now.
func (n *Node) link(i int) Link {
	p := n.shape.ports[i]
	if n.options.Link != nil {
		return n.options.Link(p.nic, p.index)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[n.shape.functions[p.function].address]
}

// lanes is how many lanes a port has.
const lanes = 4

// rate is the bits a second of a port with the lanes that carry.
func (n *Node) rate(i int) int64 {
	speed := n.shape.ports[i].speed
	if l := n.link(i); l.Lanes > 0 && l.Lanes < lanes {
		return speed * int64(l.Lanes) / lanes
	}
	return speed
}

// generations are the names of the lane rates (IBTA, and the kernel's rate_show),
// by the bits a second of a lane.
var generations = []struct {
	least int64
	name  string
}{
	{200e9, "XDR"}, {100e9, "NDR"}, {50e9, "HDR"}, {25e9, "EDR"}, {14e9, "FDR"}, {10e9, "QDR"}, {5e9, "DDR"}, {0, "SDR"},
}

// rateText is the rate of an RDMA port as sysfs writes it: "400 Gb/sec (4X NDR)".
func (n *Node) rateText(i int) string {
	speed, width := n.shape.ports[i].speed, lanes
	if speed == 0 {
		return "2.5 Gb/sec (1X SDR)" // what rxe says of an interface without a speed
	}
	if l := n.link(i); l.Lanes > 0 && l.Lanes < lanes {
		width = l.Lanes
	}
	name := ""
	for _, g := range generations {
		if speed/lanes >= g.least {
			name = g.name
			break
		}
	}
	return fmt.Sprintf("%s Gb/sec (%dX %s)", strconv.FormatFloat(float64(n.rate(i))/1e9, 'f', -1, 64), width, name)
}

// count is a counter of a port.
func (n *Node) count(i int, name string) string {
	return strconv.FormatInt(n.link(i).Counters[name], 10)
}

// pkeySlots is how much of the P_Key table is shown; ConnectX has 128 entries.
const pkeySlots = 16

// pkey is an entry of the P_Key table of an InfiniBand port: the default
// partition, until a subnet manager has written it.
func (n *Node) pkey(i, slot int) uint16 {
	keys := n.link(i).PKeys
	switch {
	case slot < len(keys):
		return keys[slot]
	case slot == 0:
		return 0xffff
	}
	return 0
}

// lid is the local identifier of an InfiniBand port: that of the subnet manager,
// else a made-up one below the multicast range.
func (n *Node) lid(i int) uint16 {
	if lid := n.link(i).LID; lid > 0 {
		return uint16(lid)
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", n.name, i)
	return uint16(h.Sum32()%0xbfff) + 1
}
