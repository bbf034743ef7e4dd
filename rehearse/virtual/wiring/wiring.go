// SPDX-License-Identifier: Apache-2.0

// Package wiring is the switches of a virtual site and the cables in them: which
// port of which switch each NIC port is plugged into, what the switch says there
// by LLDP, and what its counters show. Cables start as the site intends them and
// can be exchanged, pulled and spoiled; nobody else is told.
package wiring

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Port names a port of a node as cable blocks do. It converts to and from
// model.PortID.
type Port struct {
	Node  string
	NIC   string // nic or hca block
	Index int    // within the block
}

// String is the name in the site's language.
func (p Port) String() string { return p.Node + "/" + p.NIC + "/" + strconv.Itoa(p.Index) }

// End is a port of a switch.
type End struct {
	Switch string // scoped, such as net/leaf-1
	Number int    // as on the panel, from 1
	Lane   int    // from 1, of a port that is split; 0: the whole port
}

// Quality is what a cable does to the bits. The zero Quality is a good cable.
type Quality struct {
	Down      bool
	ErrorRate float64 // share of frames that arrive broken, both ways
}

// Switch is one switch.
type Switch struct {
	Name  string // scoped
	Host  string // host name: what it calls itself
	Model string
	OS    string
	MAC   addr.MAC // of the chassis, and of all its ports
	Ports int      // grows as cables need it when the site does not say
	IB    bool     // InfiniBand: no LLDP
	speed float64  // bits per second of a port
	split int      // links that a port may be split into; 0: 1
}

// Options are what a Plant is made with.
type Options struct {
	Seed  uint64
	Clock clock.Clock // nil: clock.Wall
	// Trunk says what a port has counted whose cable leads to another switch; false of
	// any other port. nil: there is no such port.
	Trunk func(End) (Counters, bool)
}

// Plant is all switches and cables of a site. Its methods are safe for concurrent
// use and do not block, but for a Source's Listen.
type Plant struct {
	seed  uint64
	clock clock.Clock
	trunk func(End) (Counters, bool)

	switches map[string]*Switch // never changed after New
	names    []string

	mu     sync.Mutex // guards what follows
	cables map[Port]*cable
	plugs  map[End]*cable
	says   map[Port]Remote
}

// cable is one cable. Counters are those of the switch port that it is in.
type cable struct {
	port    Port
	end     End
	speed   float64
	pulled  bool
	quality Quality
	count   Counters
	rate    [2]rate // from the node, to the node
}

// New builds the switches of the site's racks, and those that topologies compute,
// and plugs the cables: those of the cable blocks and of topologies (of a port
// that is split over several planes the first half), and for ports of fabrics that have none, rail by rail into the
// fabric's switches in the next free port; a fabric without switches gets one
// leaf a rail. NICs on networks without a cable block are not in the plant.
func New(inv *inventory.Inventory, o Options) *Plant {
	p := &Plant{seed: o.Seed, clock: o.Clock, trunk: o.Trunk, switches: map[string]*Switch{}, cables: map[Port]*cable{}, plugs: map[End]*cable{}, says: map[Port]Remote{}}
	if p.clock == nil {
		p.clock = clock.Wall{}
	}
	if p.trunk == nil {
		p.trunk = func(End) (Counters, bool) { return Counters{}, false }
	}
	fabric := map[*inventory.Fabric][]*Switch{}
	for _, r := range inv.Racks {
		for _, s := range r.Switches {
			sw := p.add(&Switch{Name: s.Name, Host: s.Label, Model: s.Model, OS: s.OS, Ports: s.Ports, IB: s.Kind == "infiniband" || s.Fabric != nil && s.Fabric.Kind == "infiniband"})
			if s.Fabric != nil {
				fabric[s.Fabric] = append(fabric[s.Fabric], sw)
				sw.split = s.Fabric.Switch.Split
			}
		}
	}
	for _, s := range inv.Switches {
		if s.Rack == nil && p.switches[s.Name] == nil { // computed by a topology
			sw := p.add(&Switch{Name: s.Name, Host: strings.ReplaceAll(s.Name, "/", "-"), Model: s.Model, OS: s.OS, Ports: s.Ports, IB: s.Kind == "infiniband"})
			if s.Fabric != nil {
				sw.split = s.Fabric.Switch.Split
			}
		}
	}
	p.plugCables(inv)
	p.plugRails(inv, fabric)
	return p
}

// plugCables plugs what cable blocks and topologies name.
func (p *Plant) plugCables(inv *inventory.Inventory) {
	for _, c := range inv.Cables {
		from, to := c.From, c.To
		if from.Switch != nil {
			from, to = to, from
		}
		if from.Node != nil && from.NIC != nil && to.Switch != nil {
			p.plug(Port{from.Node.Name, from.NIC.Name, from.Port}, End{to.Switch.Name, to.Port, to.Lane}, from.NIC)
		}
	}
}

// plugRails plugs what neither a cable block nor a topology names.
func (p *Plant) plugRails(inv *inventory.Inventory, fabric map[*inventory.Fabric][]*Switch) {
	next := map[string]int{}
	for _, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		for i := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[i]
			if nic.Fabric == nil {
				continue
			}
			for j, np := range nic.Ports {
				port := Port{n.Name, nic.Name, j}
				if p.cables[port] != nil {
					continue
				}
				s := p.leaf(nic.Fabric, fabric, max(np.Rail, 0))
				for next[s.Name]++; p.used(s.Name, next[s.Name]); next[s.Name]++ {
				}
				p.plug(port, End{Switch: s.Name, Number: next[s.Name]}, nic)
			}
		}
	}
}

// used reports whether a port of a switch has a cable, whole or split.
func (p *Plant) used(name string, number int) bool {
	return len(p.ends(name, number)) > 0
}

// ends lists the cabled ends of a port: itself, or its lanes.
func (p *Plant) ends(name string, number int) (list []End) {
	lanes := 0
	if s := p.switches[name]; s != nil {
		lanes = s.split
	}
	for lane := range lanes + 1 {
		if e := (End{name, number, lane}); p.plugs[e] != nil {
			list = append(list, e)
		}
	}
	return list
}

// leaf is the switch of a rail.
func (p *Plant) leaf(f *inventory.Fabric, have map[*inventory.Fabric][]*Switch, rail int) *Switch {
	if list := have[f]; len(list) > 0 {
		return list[rail%len(list)]
	}
	name := fmt.Sprintf("%s/rail-%d", f.Name, rail)
	if s := p.switches[name]; s != nil {
		return s
	}
	return p.add(&Switch{Name: name, Host: fmt.Sprintf("%s-rail-%d", f.Name, rail), OS: "cumulus", IB: f.Kind == "infiniband"})
}

func (p *Plant) add(s *Switch) *Switch {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d chassis %s", p.seed, s.Name)
	x := h.Sum64()
	s.MAC = addr.MAC{0x02, byte(x >> 32), byte(x >> 24), byte(x >> 16), byte(x >> 8), byte(x)} // locally administered
	p.switches[s.Name] = s
	p.names = append(p.names, s.Name)
	return s
}

func (p *Plant) plug(port Port, end End, nic *inventory.NIC) {
	s := p.switches[end.Switch]
	if s == nil || p.plugs[end] != nil || p.cables[port] != nil {
		return // the inventory's checks have said so, or it is a further plane of a port
	}
	s.split = max(s.split, end.Lane)
	s.Ports, s.speed = max(s.Ports, end.Number), max(s.speed, float64(nic.Speed))
	c := &cable{port: port, end: end, speed: float64(nic.Speed)}
	p.cables[port], p.plugs[end] = c, c
}

// Switches lists the switches, those of racks first.
func (p *Plant) Switches() (list []Switch) {
	for _, n := range p.names {
		list = append(list, *p.switches[n])
	}
	return list
}

// Switch returns one switch.
func (p *Plant) Switch(name string) (Switch, bool) {
	s := p.switches[name]
	if s == nil {
		return Switch{}, false
	}
	return *s, true
}

// SonicPort is how SONiC calls a port of a switch: its name, its alias, and how many
// lanes it has.
func (p *Plant) SonicPort(end End) (name, alias string, lanes int) {
	s := p.switches[end.Switch]
	if s == nil {
		return "", "", 0
	}
	o := *s
	o.OS = "sonic"
	alias, _, name = portName(&o, end)
	if lanes = lanesOf(s.Model); end.Lane > 0 && s.split > 1 {
		lanes = max(lanes/s.split, 1)
	}
	return name, alias, lanes
}

func unknownPort(p Port) error { return errkind.New(errkind.NotFound, "there is no cable at %s", p) }

// change does something to a cable.
func (p *Plant) change(port Port, do func(*cable)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cables[port]
	if c == nil {
		return unknownPort(port)
	}
	do(c)
	return nil
}

// Swap exchanges the plugs of two cables at the switches.
func (p *Plant) Swap(a, b Port) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, y := p.cables[a], p.cables[b]
	switch {
	case x == nil:
		return unknownPort(a)
	case y == nil:
		return unknownPort(b)
	}
	x.end, y.end = y.end, x.end
	x.count, y.count = y.count, x.count // they belong to the switch
	p.plugs[x.end], p.plugs[y.end] = x, y
	return nil
}

// Pull pulls the plug of a cable, or plugs it in again.
func (p *Plant) Pull(port Port, pulled bool) error {
	return p.change(port, func(c *cable) { c.pulled = pulled })
}

// SetQuality gives a cable another quality.
func (p *Plant) SetQuality(port Port, q Quality) error {
	return p.change(port, func(c *cable) { c.quality = q })
}

// Far is the switch port that a node's port is plugged into, and whether the link
// is up.
func (p *Plant) Far(port Port) (end End, up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cables[port]
	if c == nil || c.pulled {
		return End{}, false
	}
	return c.end, !c.quality.Down
}

// Ports lists a node's ports that have a cable, in the order of their names.
func (p *Plant) Ports(node string) (list []Port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for port := range p.cables {
		if port.Node == node {
			list = append(list, port)
		}
	}
	slices.SortFunc(list, func(a, b Port) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// number draws a number in [0, 1) that is always the same for a purpose.
func (p *Plant) number(purpose string, end End) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %d", p.seed, purpose, end.Switch, end.Number)
	if end.Lane > 0 {
		fmt.Fprintf(h, "/%d", end.Lane)
	}
	x := h.Sum64() // FNV of texts that differ at their end differs in its low bits only
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // the finaliser of MurmurHash3
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// phase is when within each interval a switch port speaks.
func (p *Plant) phase(end End, interval time.Duration) time.Duration {
	return time.Duration(p.number("phase", end) * float64(interval))
}
