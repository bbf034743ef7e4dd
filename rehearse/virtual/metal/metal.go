// SPDX-License-Identifier: Apache-2.0

// Package metal is the hardware of one virtual node, made from its hardware block:
// DMI tables, CPUs, DIMMs, PCI functions, NICs, RDMA devices and disks, shown as
// the kernel shows them. The real agent runs on it, in the virtual ramdisk of this
// package and later as a library of the installed system. What can be changed of a
// node is physical: a DIMM, a card, a serial number, a link, a sector.
//
// Everything that nodes have in common they share, so that thousands of nodes fit
// into memory: the tree of a hardware block, and the content of disks.
package metal

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/write"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Shared is what the nodes of one rehearsal have in common. It is safe for
// concurrent use, but under testing/synctest only within one bubble. Make it with
// NewShared.
type Shared struct {
	buffers write.Buffers
	blocks  *store
	image   *tree // what a root file system holds at first

	mu     sync.Mutex
	shapes map[*inventory.Hardware]*shape // guarded by mu
}

// NewShared returns a Shared for the nodes of one rehearsal.
func NewShared() *Shared {
	return &Shared{blocks: newStore(), image: installedImage(), shapes: map[*inventory.Hardware]*shape{}}
}

// shape returns the shape of a block, made once.
func (s *Shared) shape(h *inventory.Hardware) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shapes[h] == nil {
		s.shapes[h] = newShape(h)
	}
	return s.shapes[h]
}

// Link is what the cable of a port does now. The zero value is a link that is up,
// whole and without errors.
type Link struct {
	Down  bool
	Lanes int // of 4 that carry; 0: all
	// Counters are what the port has counted, by the kernel's names (symbol_error,
	// carrier_changes, rx_crc_errors); what is absent is 0.
	Counters map[string]int64
	// LID and PKeys are what a subnet manager has written into an InfiniBand port;
	// without one it has a made-up LID and the P_Key of the factory.
	LID   int
	PKeys []uint16
}

func (l Link) up() bool { return !l.Down && l.Lanes >= 0 }

// Options are what a node needs besides its inventory. The zero value is useful.
type Options struct {
	Seed   uint64
	Clock  clock.Clock // default: the wall
	Shared *Shared     // default: the node's own
	Scale  int64       // bytes of a disk that each byte of an image stands for, in time; default 1

	// Link tells what the cable of a port does, by block and index within it. It must
	// not block. nil: what SetLink has set.
	Link        func(nic string, index int) Link
	BIOSVersion func() string // default: "1.0"
	HCAVersion  func() string // default: "28.43.1014"
	// Keys are the certificates in db of the firmware, in PEM; nil, or none: there is no db.
	Keys func() []string
}

// Node is the hardware of one node. It is safe for concurrent use and its methods
// do not block, but for disks, which take their time.
type Node struct {
	name    string
	shape   *shape
	options Options
	disks   []*Disk

	refuses   atomic.Bool          // its kernels load no other one
	successor atomic.Bool          // the ramdisk has left the node to the kernel of its installed system
	inMemory  atomic.Pointer[Root] // the same, to the system in memory

	mu       sync.Mutex
	made     string // what serial numbers and MACs are derived from; guarded by mu, like all below
	serial   string
	uuid     string
	mac      addr.MAC // of the port that boots
	ports    []portState
	modules  map[int]string                      // serial numbers of DIMMs that came from elsewhere, by slot
	pulled   map[int]bool                        // DIMM slots
	removed  map[int]bool                        // PCI functions
	settings map[string]map[string]*flashSetting // of cards whose settings were looked at, by place
	volatile map[string]bool                     // cards whose flash keeps nothing, by place
	misfits  map[int]bool                        // functions whose port runs as the other link type than its block says
	hidden   map[int]bool                        // functions that a card shows once its cage is split
	flashes  map[int]string                      // firmware of NICs that is not that of their kind, by function
	pauses   map[int]int                         // of PCI functions whose register of paused priorities has a bit that is stuck
	lanes    map[int]int                         // of PCI functions whose link is narrower than it can
	gpus     map[int]GPUMemory
	delivered
	hampered hampered
	slowed   slowed
	scales   quantity.Scales // has a lock of its own
	wear     map[string]Wear // of disks, by name
	acs      bool            // PCIe switches send what goes between their ports to the CPU

	loaded    bool            // the GPUs are
	since     time.Time       // when that began
	from      map[int]float64 // how warm each was then, by function
	insulated map[int]float64 // by how much a heat sink is worse
	sluggish  map[int]float64 // the share of its clock that a GPU makes under load
	idle      map[int]float64 // the share of its compute units that do no work
	wrong     map[int]float64 // above 0: a bit of what it computes is wrong
	corrects  errorRates

	dark   map[int]int     // NVLinks without a signal, of PCI functions
	links  map[string]Link // by PCI address
	hang   time.Duration   // negative: it does not
	kernel *Kernel         // the one that runs, or ran last
	boots  uint64
	nvram  nvram // has a lock of its own
}

// portState is what differs between the same port of two nodes.
type portState struct{ mac addr.MAC }

// BuildNode makes the hardware of a node. What the inventory does not give (serial,
// UUID, MACs) is derived from the node's name and stays the same.
func BuildNode(n *inventory.Node, o Options) *Node {
	if o.Clock == nil {
		o.Clock = clock.Wall{}
	}
	if o.Shared == nil {
		o.Shared = NewShared()
	}
	if o.Scale <= 0 {
		o.Scale = 1
	}
	m := &Node{name: n.Name, made: n.Name, shape: o.Shared.shape(n.Hardware), options: o, serial: n.Serial, uuid: n.UUID, hang: -1}
	if m.serial == "" {
		m.serial = serialOf(n.Name, "chassis")
	}
	if m.uuid == "" {
		m.uuid = uuidOf(n.Name)
	}
	for _, p := range m.shape.ports {
		mac := macOf(n.Name, p.nic, p.index)
		if p.boot && !n.BootMAC.IsZero() {
			mac = n.BootMAC
		}
		if p.boot || m.mac.IsZero() {
			m.mac = mac
		}
		m.ports = append(m.ports, portState{mac})
	}
	m.addDisks(n)
	m.findMisfits()
	m.kernel = &Kernel{node: m, began: o.Clock.Now()}
	return m
}

// Name returns the node's name in the inventory.
func (n *Node) Name() string { return n.name }

// Identity is what the chassis says of itself, with the MAC of the port that boots.
func (n *Node) Identity() wire.Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.shape.hardware
	return wire.Identity{Vendor: manufacturerOf(h), Product: productOf(h), Serial: n.serial, UUID: n.uuid, BootMAC: n.mac}
}

// Disks returns the disks in the order of the kernel's names.
func (n *Node) Disks() []*Disk { return n.disks }

// SetSerial changes the serial number of the chassis, as a new mainboard does.
func (n *Node) SetSerial(serial string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serial = serial
}

// Scale changes a physical quantity of the part at a place by a factor: of a PCI function at its
// address, of a memory module by the number of its slot, or of the node, when it is empty.
func (n *Node) Scale(name quantity.Name, at string, by float64) { n.scales.Set(name, at, by) }

// Scales are by which factors quantities of the node differ.
func (n *Node) Scales() *quantity.Scales { return &n.scales }

// RemoveDIMM takes a DIMM out; slots count from 0. Only one that is there can go.
func (n *Node) RemoveDIMM(slot int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot < 0 || slot >= len(n.shape.dimm) || n.pulled[slot] {
		return false
	}
	if n.pulled == nil {
		n.pulled = map[int]bool{}
	}
	n.pulled[slot] = true
	return true
}

// RemovePCI makes a function vanish from the bus, with everything that hangs on
// it: a card out of its slot, a GPU that fell off. Only one that is there can go.
func (n *Node) RemovePCI(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range n.shape.functions {
		if f.address == address && !n.removed[i] {
			if n.removed == nil {
				n.removed = map[int]bool{}
			}
			n.removed[i] = true
			return true
		}
	}
	return false
}

// SetLink says what the cable of a port does from now on, where Options.Link does
// not: the port is named by its PCI address.
func (n *Node) SetLink(pci string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.links == nil {
		n.links = map[string]Link{}
	}
	n.links[pci] = l
}

// Hang makes every kernel that the node boots from now on stop dead so long after
// its start; a negative time takes that back.
func (n *Node) Hang(after time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hang = after
}

// Hangs returns when a kernel stops after its start; ok is false when it does not.
func (n *Node) Hangs() (after time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hang, n.hang >= 0
}

// Functions returns the PCI addresses of a vendor's functions that are there, in
// order; class is the start of the PCI class, such as "0302", or "" for all.
func (n *Node) Functions(vendor, class string) []string {
	var list []string
	for i, f := range n.shape.functions {
		if f.vendor == vendor && len(f.class) >= len(class) && f.class[:len(class)] == class && !n.missing(i) {
			list = append(list, f.address)
		}
	}
	return list
}

// missing reports whether a function is off the bus.
func (n *Node) missing(function int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.removed[function] || n.hidden[function]
}

// memory is the bytes of the DIMMs that are there.
func (n *Node) memory() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var sum int64
	for i := range n.shape.dimm {
		if !n.pulled[i] {
			sum += n.moduleIn(i).size
		}
	}
	return sum
}

func (n *Node) biosVersion() string {
	if n.options.BIOSVersion != nil {
		return n.options.BIOSVersion()
	}
	return "1.0"
}

func (n *Node) hcaVersion() string {
	if n.options.HCAVersion != nil {
		return n.options.HCAVersion()
	}
	return "28.43.1014"
}
