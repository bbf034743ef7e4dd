// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"strconv"
	"time"
)

// errorRates are how many errors parts correct in a minute while the GPUs are loaded.
type errorRates struct {
	pcie   map[int]float64 // of the links of PCI functions: frames that were sent once more
	nvlink map[int]float64 // of the first NVLink of a GPU: packets that were sent once more
	memory float64         // of the first memory controller: bits of a word
	before time.Duration   // for how long they were loaded, before the load that is on
}

// DisturbPCIe lets the link of the GPU at an address make so many errors a minute under load;
// false if there is none. The link itself corrects them.
func (n *Node) DisturbPCIe(address string, perMinute float64) bool {
	return n.setOfGPU(&n.corrects.pcie, address, perMinute)
}

// DisturbNVLink lets the first NVLink of the GPU at an address make so many errors a minute
// under load; false if there is none. The link itself corrects them.
func (n *Node) DisturbNVLink(address string, perMinute float64) bool {
	return n.setOfGPU(&n.corrects.nvlink, address, perMinute)
}

// FlipBits lets a memory module of the host return so many words a minute under load that have
// one wrong bit. The memory controller corrects them.
func (n *Node) FlipBits(perMinute float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.corrects.memory = perMinute
}

// counted is what a counter stands at that rises so often in a minute of load. Called with mu
// held.
func (n *Node) counted(perMinute float64) int64 {
	long := n.corrects.before
	if n.loaded {
		long += n.options.Clock.Now().Sub(n.since)
	}
	return int64(perMinute * long.Minutes())
}

// CorrectedPCIe is how many errors the link of the function at an address corrected.
func (k *Kernel) CorrectedPCIe(address string) int64 {
	k.node.mu.Lock()
	defer k.node.mu.Unlock()
	return k.node.counted(k.node.corrects.pcie[k.node.function(address)])
}

// CorrectedNVLink is how many errors the first NVLink of the GPU at an address corrected.
func (k *Kernel) CorrectedNVLink(address string) int64 {
	k.node.mu.Lock()
	defer k.node.mu.Unlock()
	return k.node.counted(k.node.corrects.nvlink[k.node.function(address)])
}

// correctable is aer_dev_correctable (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
func (k *Kernel) correctable(address string) string {
	n := k.CorrectedPCIe(address)
	return fmt.Sprintf("RxErr 0\nBadTLP %d\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR %d", n, n)
}

// addEDAC adds a memory controller for each socket (Documentation/ABI/testing/sysfs-devices-edac).
func (s *shape) addEDAC(b branch) {
	for i := range s.sockets {
		mc := b.at("mc" + strconv.Itoa(i))
		mc.text("ue_count", "0")
		mc.live("ce_count", func(k *Kernel) string {
			k.node.mu.Lock()
			defer k.node.mu.Unlock()
			if i > 0 {
				return "0"
			}
			return strconv.FormatInt(k.node.counted(k.node.corrects.memory), 10)
		})
	}
}
