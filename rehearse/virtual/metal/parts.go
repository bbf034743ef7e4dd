// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// GPUMemory is what has happened to the memory of a GPU. Its driver says the rest.
type GPUMemory struct {
	BadRows int // that failed; spare ones take their places at the next reset of the GPU
	BadBits int // double bit errors that the GPU met since its start
	// Slower is by which part the memory's clock is below what it should be.
	Slower float64
	// Missing is the part of the memory that is not there: a stack of HBM that is off.
	Missing float64
}

// pcieLinks are the links of parts by their class: lanes, and the speed as the
// kernel writes it.
var pcieLinks = []struct {
	class, speed string
	lanes        int
}{
	{class3D, "32.0 GT/s PCIe", 16}, {classProcessing, "32.0 GT/s PCIe", 16},
	{classEthernet, "32.0 GT/s PCIe", 16}, {classInfiniBand, "32.0 GT/s PCIe", 16}, {classNVMe, "16.0 GT/s PCIe", 4},
}

// emulated is the vendor of virtio; such functions have no link.
const emulated = "1af4"

// addPCIe adds what the kernel says of a function's link: how it was trained, how
// it could be, and what AER counted.
func (s *shape) addPCIe(b branch, i int, f function) {
	for _, l := range pcieLinks {
		if l.class != f.class || f.vendor == emulated {
			continue
		}
		b.text("max_link_width", strconv.Itoa(l.lanes))
		b.text("max_link_speed", l.speed)
		b.live("current_link_speed", func(k *Kernel) string { return k.node.currentSpeed(i, l.speed) })
		b.live("current_link_width", func(k *Kernel) string { return strconv.Itoa(k.node.lanesOf(i, l.lanes)) })
		b.text("aer_dev_fatal", "TOTAL_ERR_FATAL 0")
		b.text("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 0")
		b.live("aer_dev_correctable", func(k *Kernel) string { return k.correctable(f.address) })
	}
}

// lanesOf is how many lanes of a function's link carry, of so many that it has.
func (n *Node) lanesOf(function, all int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w, narrow := n.lanes[function]; narrow {
		return w
	}
	return int(n.scales.Whole(quantity.PCIeWidth, n.shape.functions[function].address, int64(all)))
}

// isGPU reports whether a function is one.
func isGPU(f function) bool { return f.class == class3D || f.class == classProcessing }

// GPUs lists the addresses of the GPUs that are on the bus, in their order.
func (n *Node) GPUs() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for i, f := range n.shape.functions {
		if isGPU(f) && !n.removed[i] {
			list = append(list, f.address)
		}
	}
	return list
}

// NarrowPCI leaves so many lanes of the link of the function at an address; false
// if there is none.
func (n *Node) NarrowPCI(address string, lanes int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 {
		return false
	}
	if n.lanes == nil {
		n.lanes = map[int]int{}
	}
	n.lanes[i] = lanes
	return true
}

// SetGPUMemory changes the memory of the GPU at an address; false if there is none.
func (n *Node) SetGPUMemory(address string, m GPUMemory) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 || !isGPU(n.shape.functions[i]) {
		return false
	}
	if n.gpus == nil {
		n.gpus = map[int]GPUMemory{}
	}
	n.gpus[i] = m
	return true
}

// function finds a function that is on the bus; -1 if there is none. The caller
// holds mu.
func (n *Node) function(address string) int {
	for i, f := range n.shape.functions {
		if strings.EqualFold(f.address, address) && !n.removed[i] {
			return i
		}
	}
	return -1
}

// GPUMemory is what has happened to the memory of the GPU at an address.
func (k *Kernel) GPUMemory(address string) GPUMemory {
	k.node.mu.Lock()
	defer k.node.mu.Unlock()
	if i := k.node.function(address); i >= 0 {
		return k.node.gpus[i]
	}
	return GPUMemory{}
}
