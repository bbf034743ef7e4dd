// SPDX-License-Identifier: Apache-2.0

// Package model is the physics of a virtual site's networks: which port of which
// node hangs on which switch, how much a path carries, how long it takes, and
// what errors on a cable do to it. It is pure arithmetic on a seed: it waits for
// nothing, the same question has the same answer, and each is answered in
// constant time. What it does not know is written beside the figures, in rates.go.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// PortID names a port of a node as the site's cables do: node, nic or hca block,
// index within the block.
type PortID struct {
	Node  string
	NIC   string
	Index int
}

// String is the name in the site's language, such as "r01-u01/rail/0".
func (p PortID) String() string { return p.Node + "/" + p.NIC + "/" + strconv.Itoa(p.Index) }

// Medium is what a port speaks.
type Medium uint8

// The media.
const (
	Ethernet   Medium = iota // TCP only
	RoCE                     // RDMA over Ethernet, by the NIC
	SoftRoCE                 // RDMA over Ethernet, by the kernel (rxe)
	InfiniBand               // RDMA of its own
)

// RDMA reports whether RDMA goes over the medium.
func (m Medium) RDMA() bool { return m != Ethernet }

// Port is what a port is; it never changes.
type Port struct {
	ID       PortID
	Rail     int // of its fabric; -1 on a network
	PCI      string
	Model    string // of the NIC, as declared
	Fabric   string // "" on a network
	Medium   Medium
	Speed    unit.BitRate // of the whole link; 0: not declared, as in an emulated NIC
	Lanes    int          // of the whole link
	Emulated bool         // a NIC of an emulator: its speed means nothing
}

// Segment is what a switch port belongs to: the rail of a fabric, or a network.
// A RoCE rail is a subnet of its own, so that ports of two segments do not hear
// each other; InfiniBand routes between all rails of one fabric.
type Segment struct {
	Fabric string // or the network's name, with Rail -1
	Rail   int
}

// attachment is where the far end of a port's cable is.
type attachment struct {
	leaf    string // name of the switch; made up where the site names none
	segment Segment
}

// port is a port with what can change about it. Model.mu guards it.
type port struct {
	Port
	at       attachment
	order    int // among the ports of its leaf: by it InfiniBand chooses the way to it
	down     bool
	lanes    int     // that carry
	ber      float64 // errors a bit, after correction
	share    float64 // of its rate that the NIC handles, whatever the cable does
	counters Counters
	scales   *quantity.Scales // nil: nothing of it was changed
}

// Model is all ports of a site. It is safe for concurrent use.
type Model struct {
	seed uint64

	mu    sync.Mutex // guards what follows; never held while waiting
	ports map[PortID]*port
	nodes map[string][]*port
	cross map[string]float64 // share of what goes beyond a leaf, or over a spine, that it passes; absent: all

	network network
}

// New makes the model of a site as its files describe it, every link whole. The
// leaf of a port is the switch of its cable; where the site lists no cable, each
// rail of each scalable unit is taken to have one leaf.
func New(inv *inventory.Inventory, seed uint64) *Model {
	m := &Model{seed: seed, ports: map[PortID]*port{}, nodes: map[string][]*port{}, cross: map[string]float64{}, network: newNetwork(inv)}
	cables, onLeaf := leavesOfPorts(inv), map[string]int{}
	for i, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		for j := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[j]
			for _, p := range portsOf(n.Name, nic) {
				q := &port{Port: p, lanes: p.Lanes, share: 1, at: attachPort(p, nic, i)}
				if leaf, ok := cables[p.ID]; ok {
					q.at.leaf = leaf
				}
				q.order = onLeaf[q.at.leaf]
				onLeaf[q.at.leaf]++
				m.ports[p.ID] = q
				m.nodes[n.Name] = append(m.nodes[n.Name], q)
			}
		}
	}
	return m
}

// leavesOfPorts returns the switch at the other end of every cable of the site; of a
// port that is split over several planes that of the first.
func leavesOfPorts(inv *inventory.Inventory) map[PortID]string {
	at := map[PortID]string{}
	for _, c := range inv.Cables {
		for _, e := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
			if e[0].Node != nil && e[0].NIC != nil && e[1].Switch != nil {
				id := PortID{Node: e[0].Node.Name, NIC: e[0].NIC.Name, Index: e[0].Port}
				if _, plane := at[id]; !plane || c.Splitter == nil {
					at[id] = e[1].Switch.Name
				}
			}
		}
	}
	return at
}

// portsOf lists the ports of one block. A block that lists none has one.
func portsOf(node string, nic *inventory.NIC) []Port {
	declared := nic.Ports
	if len(declared) == 0 {
		declared = []inventory.NICPort{{Rail: -1}}
	}
	var list []Port
	for i, d := range declared {
		p := Port{ID: PortID{Node: node, NIC: nic.Name, Index: i}, Rail: d.Rail, PCI: d.PCI, Model: nic.Model, Speed: nic.Speed}
		if f := nic.Fabric; f != nil {
			p.Fabric = f.Name
			if p.Speed == 0 && nic.SoftwareRDMA == "" {
				p.Speed = f.Link
			}
			p.Medium = mediumOf(nic)
		}
		p.Emulated = p.Speed == 0
		p.Lanes = lanesOf(p.Speed)
		list = append(list, p)
	}
	return list
}

func mediumOf(nic *inventory.NIC) Medium {
	switch {
	case nic.SoftwareRDMA != "":
		return SoftRoCE
	case nic.Fabric.Kind == "infiniband" && nic.LinkType != "ethernet":
		return InfiniBand
	case nic.Fabric.Kind == "roce" || nic.HCA:
		return RoCE
	}
	return Ethernet
}

// attachPort assumes where the cable of a port ends. order is the node's place among
// the nodes of the site.
func attachPort(p Port, nic *inventory.NIC, order int) attachment {
	if nic.Fabric == nil {
		name := "network"
		if nic.Network != nil {
			name = nic.Network.Name
		}
		return attachment{leaf: name, segment: Segment{Fabric: name, Rail: -1}}
	}
	unit := 0
	if nic.Fabric.UnitSize > 0 {
		unit = order / nic.Fabric.UnitSize
	}
	return attachment{
		leaf:    fmt.Sprintf("%s unit %d rail %d", p.Fabric, unit, p.Rail),
		segment: Segment{Fabric: p.Fabric, Rail: p.Rail},
	}
}

// Ports lists the ports of a node in the order of its hardware.
func (m *Model) Ports(node string) []Port {
	list := make([]Port, 0, len(m.nodes[node]))
	for _, p := range m.nodes[node] {
		list = append(list, p.Port)
	}
	return list
}

// Port returns one port.
func (m *Model) Port(id PortID) (Port, bool) {
	p := m.ports[id]
	if p == nil {
		return Port{}, false
	}
	return p.Port, true
}

// Leaf returns the switch and the segment at the far end of a port's cable.
func (m *Model) Leaf(id PortID) (string, Segment, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ports[id]
	if p == nil {
		return "", Segment{}, false
	}
	return p.at.leaf, p.at.segment, true
}

// change does something to one port.
func (m *Model) change(id PortID, do func(*port) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ports[id]
	if p == nil {
		return unknownPort(id)
	}
	return do(p)
}

func unknownPort(id PortID) error { return errkind.New(errkind.NotFound, "there is no port %s", id) }

// SetLanes leaves n lanes of a cable, at least one; the link trains again.
func (m *Model) SetLanes(id PortID, n int) error {
	return m.change(id, func(p *port) error {
		if n < 1 || n > p.Lanes {
			return errkind.New(errkind.Mismatch, "port %s has %d lanes, not %d", id, p.Lanes, n)
		}
		if n != p.lanes {
			p.lanes = n
			p.counters.retrained()
		}
		return nil
	})
}

// Scale changes a physical quantity of a port by a factor. The error is that there is none.
func (m *Model) Scale(id PortID, name quantity.Name, by float64) error {
	return m.change(id, func(p *port) error {
		if p.scales == nil {
			p.scales = &quantity.Scales{}
		}
		p.scales.Set(name, "", by)
		return nil
	})
}

// SetErrors sets the share of bits that arrive wrong after error correction, in
// both directions of the cable. 1e-15 is a good link (IEEE 802.3ck asks for less
// than 1e-13), 1e-8 a dirty one, 1e-4 one that carries nothing.
func (m *Model) SetErrors(id PortID, rate float64) error {
	return m.change(id, func(p *port) error {
		if !(rate >= 0 && rate <= 1) {
			return errkind.New(errkind.Invalid, "error rate %g of port %s", rate, id)
		}
		p.ber = rate
		return nil
	})
}

// SetSwitchShare sets the share that a leaf passes of what its ports send to others and
// get from them, or that a spine passes of what goes over it, above 0 and at most 1.
// Every flow has its part of it: how many there are makes no difference.
func (m *Model) SetSwitchShare(name string, share float64) error {
	if !(share > 0 && share <= 1) {
		return errkind.New(errkind.Invalid, "share %g of what switch %s passes", share, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cross[name] = share
	return nil
}

// leafShare is the share that both leaves pass of what goes between them; mu is held.
func (m *Model) leafShare(a, b *port) float64 {
	share := otherLeaf
	for _, leaf := range []string{a.at.leaf, b.at.leaf} {
		if s, cut := m.cross[leaf]; cut {
			share *= s
		}
	}
	return share
}

// SetNICShare sets the share of the rate of its port that a NIC handles, above 0 and at most 1:
// what its PCIe link or its own engines leave of it. Its cable is whole.
func (m *Model) SetNICShare(id PortID, share float64) error {
	return m.change(id, func(p *port) error {
		if !(share > 0 && share <= 1) {
			return errkind.New(errkind.Invalid, "share %g of what port %s handles", share, id)
		}
		p.share = share
		return nil
	})
}

// SetDown takes the light off a cable, or gives it back.
func (m *Model) SetDown(id PortID, down bool) error {
	return m.change(id, func(p *port) error {
		if down && !p.down {
			p.counters.LinkDowned++
			p.counters.CarrierChanges++
		} else if !down && p.down {
			p.counters.CarrierChanges++
		}
		p.down = down
		return nil
	})
}

// Swap exchanges the far ends of two cables.
func (m *Model) Swap(a, b PortID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, q := m.ports[a], m.ports[b]
	switch {
	case p == nil:
		return unknownPort(a)
	case q == nil:
		return unknownPort(b)
	case (p.Medium == InfiniBand) != (q.Medium == InfiniBand):
		return errkind.New(errkind.Mismatch, "the cables of %s and %s do not fit each other's switch", a, b)
	}
	p.at, q.at = q.at, p.at
	return nil
}

// State is how a link is now.
type State struct {
	Up    bool
	Lanes int          // that carry; Port.Lanes when it is whole
	Speed unit.BitRate // with these lanes; 0 where it is not declared
	BER   float64
}

// State returns how the link of a port is; the zero State for a port that is not there.
func (m *Model) State(id PortID) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ports[id]
	if p == nil {
		return State{}
	}
	return p.state()
}

func (p *port) state() State {
	return State{Up: !p.down, Lanes: p.lanes, Speed: p.Speed * unit.BitRate(p.lanes) / unit.BitRate(p.Lanes), BER: p.ber}
}

// Nodes lists the nodes that have ports, sorted.
func (m *Model) Nodes() []string {
	names := make([]string, 0, len(m.nodes))
	for n := range m.nodes {
		names = append(names, n)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}
