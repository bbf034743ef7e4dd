// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// delivered is what is in a node and is not what its block says: parts of other models,
// and settings of the BIOS that nobody asked for.
type delivered struct {
	models    map[int]model  // PCI functions of another model
	speeds    map[int]string // of the links of functions, as the kernel writes them
	cpu       string         // model; empty: that of the block
	dimms     map[int]module // by slot
	disks     map[int]string // models, by place
	mtus      map[int]int    // that interfaces have whatever is set, by port
	optics    map[int]string // part numbers of transceivers, by port
	noThreads bool           // SMT is off
	noTPM     bool           // the firmware hides the TPM
	cleared   int            // how often the TPM was cleared
	insecure  bool           // Secure Boot is switched off
	untagged  bool           // the switch port of the boot NIC is no tagged member of its VLAN
	perSocket int            // NUMA nodes of each socket; 0: one
}

// module is a memory module: bytes, and MT/s that the firmware has set.
type module struct {
	size  int64
	speed int
}

// moduleSpeed is the speed of the modules that a block comes with, MT/s: DDR5 of 2023.
const moduleSpeed = 4800

// ReplacePCI puts a part of another model into the place of the function at an address:
// name is matched as models of blocks are. False if there is no such function or model.
func (n *Node) ReplacePCI(address, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 {
		return false
	}
	rows := nicModels
	if isGPU(n.shape.functions[i]) {
		rows = gpuModels
	}
	m := findModel(rows, name, model{})
	if m.device == "" {
		return false
	}
	if n.delivered.models == nil {
		n.delivered.models = map[int]model{}
	}
	n.delivered.models[i] = m
	return true
}

// slowerLink is the speed of PCIe 4.0.
const slowerLink = "16.0 GT/s PCIe"

// SlowPCI lets the link of the function at an address run at the speed of the generation
// before, as one does that cannot train at its own; false if it has no link.
func (n *Node) SlowPCI(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 || n.shape.functions[i].vendor == emulated {
		return false
	}
	if n.delivered.speeds == nil {
		n.delivered.speeds = map[int]string{}
	}
	n.delivered.speeds[i] = slowerLink
	return true
}

// SetCPUModel puts other CPUs of as many cores into the sockets.
func (n *Node) SetCPUModel(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.cpu = name
}

// cpuModel is what the CPUs say that they are.
func (n *Node) cpuModel() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delivered.cpu != "" {
		return n.delivered.cpu
	}
	return n.shape.cpuModel()
}

// ReplaceDIMM puts a module of another size or speed into a slot; 0 leaves one of them as
// it was. False if there is no such slot.
func (n *Node) ReplaceDIMM(slot int, size int64, speed int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot < 0 || slot >= len(n.shape.dimm) {
		return false
	}
	m := n.moduleIn(slot)
	if size > 0 {
		m.size = size
	}
	if speed > 0 {
		m.speed = speed
	}
	if n.delivered.dimms == nil {
		n.delivered.dimms = map[int]module{}
	}
	n.delivered.dimms[slot] = m
	return true
}

// moduleIn is the module of a slot. The caller holds mu.
func (n *Node) moduleIn(slot int) module {
	m, other := n.delivered.dimms[slot]
	if !other {
		m = module{n.shape.dimm[slot], moduleSpeed}
	}
	at := strconv.Itoa(slot)
	return module{n.scales.Whole(quantity.DIMMSize, at, m.size), int(n.scales.Whole(quantity.DIMMSpeed, at, int64(m.speed)))}
}

// DIMMSize is the bytes of the module of a slot; 0 where there is no such slot.
func (n *Node) DIMMSize(slot int) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot < 0 || slot >= len(n.shape.dimm) {
		return 0
	}
	return n.moduleIn(slot).size
}

// SetDiskModel puts a disk of another maker and the same size into a bay; false if there
// is none. It must not have been written.
func (n *Node) SetDiskModel(bay int, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bay < 0 || bay >= len(n.shape.disks) {
		return false
	}
	if n.delivered.disks == nil {
		n.delivered.disks = map[int]string{}
	}
	n.delivered.disks[bay] = name
	return true
}

func (n *Node) diskModel(bay int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, other := n.delivered.disks[bay]; other {
		return name
	}
	return n.shape.disks[bay].model
}

// FixMTU gives the interface of the function at an address an MTU that it keeps, whatever
// is set; false if there is none.
func (n *Node) FixMTU(address string, mtu int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.function(address)
	for i, p := range n.shape.ports {
		if at >= 0 && p.function == at {
			if n.delivered.mtus == nil {
				n.delivered.mtus = map[int]int{}
			}
			n.delivered.mtus[i] = mtu
			return true
		}
	}
	return false
}

// PlugModule plugs a transceiver with another part number into the port of the function at an
// address; false if there is none.
func (n *Node) PlugModule(address, part string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.function(address)
	for i, p := range n.shape.ports {
		if at >= 0 && p.function == at && !p.ib {
			if n.delivered.optics == nil {
				n.delivered.optics = map[int]string{}
			}
			n.delivered.optics[i] = part
			return true
		}
	}
	return false
}

// fixedMTU is the MTU that an interface keeps; 0: it has the one that is set.
func (n *Node) fixedMTU(port int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.delivered.mtus[port]
}

// DisableSMT lets each core run one thread.
func (n *Node) DisableSMT() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.noThreads = true
}

// HideTPM switches the TPM off in the BIOS.
func (n *Node) HideTPM() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.noTPM = true
}

// showsTPM reports whether the kernel finds the TPM.
func (n *Node) showsTPM() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.delivered.noTPM
}

// UntagPort makes the switch port of the boot NIC an untagged member of the boot network's VLAN, and takes the
// VLAN out of the firmware's settings.
func (n *Node) UntagPort() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.untagged = true
}

// portUntagged reports whether the switch port of the boot NIC takes frames without a tag alone.
func (n *Node) portUntagged() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.delivered.untagged
}

// DisableSecureBoot switches Secure Boot off in the firmware, from the next start of a kernel on.
func (n *Node) DisableSecureBoot() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.insecure = true
}

// SecureBoot reports whether the firmware has Secure Boot switched on.
func (n *Node) SecureBoot() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shape.hardware.SecureBoot && !n.delivered.insecure
}

// SplitNUMA makes so many NUMA nodes of each socket.
func (n *Node) SplitNUMA(perSocket int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered.perSocket = perSocket
}

// mostPerSocket is how many NUMA nodes a socket can be split into (NPS4 of AMD, SNC4 of Intel).
const mostPerSocket = 4

// threads is how many logical processors the kernel finds.
func (n *Node) threads() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delivered.noThreads {
		return n.shape.cores
	}
	return n.shape.threads
}

// numaNodes is how many NUMA nodes have CPUs.
func (n *Node) numaNodes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shape.sockets * max(1, n.delivered.perSocket)
}

// numaCPUs is the list of CPUs of a NUMA node, as the kernel writes it: cores in the order of
// their numbers, and then their second threads.
func (n *Node) numaCPUs(node int) string {
	cores, of := n.shape.cores, n.numaNodes()
	first, end := node*cores/of, (node+1)*cores/of
	if end <= first {
		return ""
	}
	list := cpuRange(first, end-1)
	if n.threads() > cores {
		list += "," + cpuRange(first+cores, end-1+cores)
	}
	return list
}

func cpuRange(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// modelAt is the other model of a function that was delivered; false where it is that of the
// block.
func (n *Node) modelAt(function int) (model, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, other := n.delivered.models[function]
	return m, other
}

// deviceOf is the PCI device id of a function.
func (n *Node) deviceOf(function int) string {
	if m, other := n.modelAt(function); other {
		return m.device
	}
	return n.shape.functions[function].device
}

// currentSpeed is how fast the link of a function runs.
func (n *Node) currentSpeed(function int, whole string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, slow := n.delivered.speeds[function]; slow {
		return s
	}
	if by := n.scales.Of(quantity.PCIeSpeed, n.shape.functions[function].address); by != 1 {
		rate, unit, _ := strings.Cut(whole, " ")
		if v, err := strconv.ParseFloat(rate, 64); err == nil {
			return strconv.FormatFloat(v*by, 'f', 1, 64) + " " + unit
		}
	}
	return whole
}

// GPUModel is the model of the GPU at an address that was delivered in the place of another,
// in lower case; empty: it is that of the block.
func (k *Kernel) GPUModel(address string) string {
	k.node.mu.Lock()
	defer k.node.mu.Unlock()
	if i := k.node.function(address); i >= 0 {
		return k.node.delivered.models[i].match
	}
	return ""
}
