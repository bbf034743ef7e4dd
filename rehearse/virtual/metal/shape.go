// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// shape is what one hardware block comes to: every part of the chassis, equal in
// all nodes that have the block. It is immutable.
type shape struct {
	hardware  *inventory.Hardware
	sockets   int
	cores     int
	threads   int
	dimm      []int64    // bytes of each slot, populated
	functions []function // sorted by address
	ports     []port     // sorted by address
	disks     []slot     // in the order of the kernel's names
	bridges   []bridge
	parent    map[string]string // where a function's bridge stands in sysfs, by address
	numa      map[string]int    // NUMA nodes of functions, by address; 0 of others
	tree      *tree             // /sys, /proc and /dev
	ways      pathCache         // of folders in tree
}

// function is one PCI function.
type function struct {
	address, class, vendor, device, driver string
}

// port is one network port, and the one function that it is.
type port struct {
	nic      string // block
	index    int    // in the block
	function int    // in shape.functions
	boot     bool   // the firmware boots from it first
	model    model
	rail     int
	speed    int64 // bit/s; 0: not declared
	ib       bool
	netdev   string
	rdma     string // name of the RDMA device of the hardware, or of the soft one that can be made
	soft     bool   // rdma is made by the kernel when it is asked to
}

// slot is one disk bay.
type slot struct {
	function int
	name     string // nvme0n1
	kind     string // as the inventory says: nvme, sata, sas, virtio
	model    string
	size     int64
	block    string // of the inventory
	serial   string // as the block says; empty: made up
	wwn      string // the same; digits alone
	place    place
}

// What a chassis has where its block says nothing.
const (
	defaultMemory = 16 << 30
	defaultDisk   = 3_840_755_982_336 // a disk of 3.84 TB by IDEMA's LBA1-03
	largestDIMM   = 64 << 30
)

// newShape works out the parts of a block.
func newShape(h *inventory.Hardware) *shape {
	s := &shape{hardware: h, sockets: max(1, h.CPU.Sockets), parent: map[string]string{}, numa: map[string]int{}}
	s.cores = max(s.sockets, h.CPU.Cores)
	s.threads = s.cores
	if s.cores >= 8 { // smaller nodes are virtual ones, without SMT
		s.threads *= 2
	}
	s.dimm = splitDIMMs(int64(h.Memory.Size), h.Memory.DIMMs)
	a := newAddresses(h)
	s.addPorts(h, a)
	s.addGPUs(h, a)
	s.addDisks(h, a)
	s.addSwitches(a)
	s.order()
	s.nameNetdevs()
	s.tree = s.build()
	return s
}

// splitDIMMs shares memory out to slots, to the MiB.
func splitDIMMs(size int64, count int) []int64 {
	if size == 0 {
		size = defaultMemory
	}
	if count == 0 {
		count = 1
		if size > largestDIMM {
			count = 1 << bits.Len64(uint64((size-1)/largestDIMM))
		}
	}
	each := size / int64(count) >> 20 << 20
	slots := slices.Repeat([]int64{each}, count)
	slots[0] += size - each*int64(count)
	return slots
}

// addresses hands out PCI addresses that the block does not use.
type addresses struct {
	taken  map[string]bool // buses, such as 0000:18
	domain int
	bus    int
}

func newAddresses(h *inventory.Hardware) *addresses {
	a := &addresses{taken: map[string]bool{"0000:00": true}}
	for _, n := range h.NICs {
		for _, p := range n.Ports {
			a.take(p.PCI)
		}
	}
	for _, d := range h.Disks {
		a.take(d.PCI)
		a.take(parseByPath(d.ByPath).controller)
	}
	return a
}

// take keeps the bus of an address from being handed out.
func (a *addresses) take(address string) {
	if bus, _, ok := cutLast(address, ":"); ok {
		a.taken[bus] = true
	}
}

// cutLast cuts s at the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// next returns the address of a device on a bus of its own.
func (a *addresses) next() string {
	for {
		if a.bus++; a.bus > 0xff {
			a.domain, a.bus = a.domain+1, 0
		}
		if bus := fmt.Sprintf("%04x:%02x", a.domain, a.bus); !a.taken[bus] {
			return bus + ":00.0"
		}
	}
}

// addPorts adds the ports of the nic and hca blocks.
func (s *shape) addPorts(h *inventory.Hardware, a *addresses) {
	booted := false
	for i := range h.NICs {
		n := &h.NICs[i]
		m := nicModel(n)
		ib := infiniBand(n)
		class := classEthernet
		if ib {
			class = classInfiniBand
		}
		for j, p := range n.Ports {
			address := p.PCI
			if address == "" {
				address = a.next()
			}
			q := port{nic: n.Name, index: j, function: len(s.functions), model: m, rail: p.Rail, speed: int64(n.Speed), ib: ib, boot: n.Boot && !booted}
			q.soft = n.SoftwareRDMA != ""
			if q.soft {
				q.rdma = fmt.Sprintf("%s%d", n.SoftwareRDMA, p.Rail)
			}
			booted = booted || n.Boot
			s.functions = append(s.functions, function{address, class, m.vendor, m.device, m.driver})
			s.ports = append(s.ports, q)
		}
	}
}

// nicModel finds the part by the block's model, or by what the block is for.
func nicModel(n *inventory.NIC) model {
	switch {
	case n.Model == "" && n.SoftwareRDMA != "":
		return softNIC
	case n.HCA || n.Fabric != nil && n.SoftwareRDMA == "":
		return findModel(nicModels, n.Model, anyHCA)
	}
	return findModel(nicModels, n.Model, anyNIC)
}

// infiniBand reports whether the ports of a block speak InfiniBand.
func infiniBand(n *inventory.NIC) bool {
	if n.LinkType != "" {
		return n.LinkType == "infiniband"
	}
	return n.SoftwareRDMA == "" && n.Fabric != nil && n.Fabric.Kind == "infiniband"
}

// switches is how many NVSwitch functions a board with NVSwitch shows.
const switches = 4

func (s *shape) addGPUs(h *inventory.Hardware, a *addresses) {
	for _, g := range h.GPUs {
		other, known := anyGPU[g.Vendor]
		if !known {
			continue
		}
		var rows []model
		for _, m := range gpuModels {
			if m.vendor == other.vendor {
				rows = append(rows, m)
			}
		}
		m, class := findModel(rows, g.Model, other), class3D
		if g.Vendor == "amd" {
			class = classProcessing
		}
		for range g.Count {
			s.functions = append(s.functions, function{address: a.next(), class: class, vendor: m.vendor, device: m.device})
		}
		for range switches {
			if g.Interconnect == "nvswitch" {
				s.functions = append(s.functions, function{address: a.next(), class: classBridge, vendor: "10de", device: "22a3"})
			}
		}
	}
}

// diskKinds is what a disk of each type shows; the number of the type's disks
// before it completes the name.
var diskKinds = map[string]struct {
	class, vendor, device, driver, model string
	name                                 func(i int) string
}{
	"nvme":   {classNVMe, "144d", "a80a", "nvme", "SAMSUNG MZQL23T8HCLS-00A07", func(i int) string { return fmt.Sprintf("nvme%dn1", i) }},
	"sata":   {classSATA, "8086", "1d02", "ahci", "INTEL SSDSC2KB038T8", func(i int) string { return "sd" + diskLetters(i) }},
	"sas":    {classSAS, "1000", "0097", "mpt3sas", "KPM6XRUG3T84", func(i int) string { return "sd" + diskLetters(i) }},
	"virtio": {classSCSI, "1af4", "1042", "virtio_blk", "", func(i int) string { return "vd" + diskLetters(i) }},
}

// diskLetters counts a to z, aa, ab, ... as the kernel names SCSI disks.
func diskLetters(i int) string {
	s := string(rune('a' + i%26))
	if i >= 26 {
		return diskLetters(i/26-1) + s
	}
	return s
}

// addDisks puts the disks of every block where the block says that they are. Without
// that each disk has a controller of its own, and the next bay.
func (s *shape) addDisks(h *inventory.Hardware, a *addresses) {
	count := map[string]int{} // by the first letters of the name
	free := newPlaces(h)
	for _, d := range h.Disks {
		at := parseByPath(d.ByPath)
		kind := d.Type
		if _, known := diskKinds[kind]; !known {
			if kind = at.kind(); kind == "" {
				kind = "nvme"
			}
		}
		k := diskKinds[kind]
		m := d.Model
		if m == "" {
			m = k.model
		}
		for range max(1, d.Count) {
			family := k.name(0)[:2]
			x := slot{name: k.name(count[family]), kind: kind, model: m, size: diskSize(d.Size), block: d.Name, serial: d.Serial, wwn: inventory.NormalWWN(d.WWN)}
			x.function = s.controllerOf(a, at, d.PCI, function{class: k.class, vendor: k.vendor, device: k.device, driver: k.driver})
			x.place = free.place(x, len(s.disks), free.bus(at, kind, s.functions[x.function].address), d.Bay)
			s.disks = append(s.disks, x)
			count[family]++
		}
	}
}

// diskSize returns the size that a disk with such a label has, or else one of whole
// MiB that keeps the limit, where it can.
func diskSize(l unit.Limit[unit.Bytes]) int64 {
	switch {
	case l.IsZero():
		return defaultDisk
	case l.Op == unit.Printed:
		return int64(unit.DriveCapacity(l.Value))
	}
	v, const1M := int64(l.Value), int64(1<<20)
	if up := (v + const1M - 1) / const1M * const1M; l.Allows(unit.Bytes(up)) {
		return up
	}
	if down := v / const1M * const1M; l.Allows(unit.Bytes(down)) {
		return down
	}
	return v / 512 * 512
}

// order sorts functions by address, and ports after them, as the kernel finds them.
func (s *shape) order() {
	byAddress := make([]int, len(s.functions))
	for i := range byAddress {
		byAddress[i] = i
	}
	slices.SortStableFunc(byAddress, func(a, b int) int { return strings.Compare(s.functions[a].address, s.functions[b].address) })
	sorted, at := make([]function, len(byAddress)), make([]int, len(byAddress))
	for i, old := range byAddress {
		sorted[i], at[old] = s.functions[old], i
	}
	s.functions = sorted
	for i := range s.ports {
		s.ports[i].function = at[s.ports[i].function]
	}
	for i := range s.disks {
		s.disks[i].function = at[s.disks[i].function]
	}
	slices.SortStableFunc(s.ports, func(a, b port) int { return a.function - b.function })
}

// nameNetdevs names interfaces and RDMA devices as drivers do, in the order of
// their addresses. A port has an RDMA device when its driver makes one.
func (s *shape) nameNetdevs() {
	eth, ib := 0, 0
	rdma := map[string]int{}
	for i := range s.ports {
		p := &s.ports[i]
		if p.ib {
			p.netdev = fmt.Sprintf("ib%d", ib)
			ib++
		} else {
			p.netdev = fmt.Sprintf("eth%d", eth)
			eth++
		}
		if family := map[string]string{"mlx5_core": "mlx5_", "bnxt_en": "bnxt_re"}[p.model.driver]; family != "" && !p.soft {
			p.rdma = fmt.Sprintf("%s%d", family, rdma[family])
			rdma[family]++
		}
	}
}
