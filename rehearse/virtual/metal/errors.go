// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"strconv"
	"time"
)

// errorRates are how many errors parts correct while the GPUs are loaded.
type errorRates struct {
	pcie   map[int]errorRate // of the links of PCI functions: frames that were sent once more
	nvlink map[int]errorRate // of the first NVLink of a GPU: packets that were sent once more
	memory errorRate         // of the first memory controller: bits of a word
	before time.Duration     // for how long they were loaded, before the load that is on
}

// errorRate is how often one part corrects an error.
type errorRate struct {
	perMinute float64
	since     time.Duration // of load, when the rate was set
	counted   float64       // until then
}

// DisturbPCIe lets the link of the GPU at an address make so many errors a minute under load,
// from now on; false if there is none. The link itself corrects them.
func (n *Node) DisturbPCIe(address string, perMinute float64) bool {
	return n.disturb(&n.corrects.pcie, address, perMinute)
}

// DisturbNVLink lets the first NVLink of the GPU at an address make so many errors a minute
// under load, from now on; false if there is none. The link itself corrects them.
func (n *Node) DisturbNVLink(address string, perMinute float64) bool {
	return n.disturb(&n.corrects.nvlink, address, perMinute)
}

// disturb sets the rate of a GPU's link.
func (n *Node) disturb(rates *map[int]errorRate, address string, perMinute float64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 || !isGPU(n.shape.functions[i]) {
		return false
	}
	if *rates == nil {
		*rates = map[int]errorRate{}
	}
	(*rates)[i] = n.changeRate((*rates)[i], perMinute)
	return true
}

// FlipBits lets a memory module of the host return so many words a minute under load that have
// one wrong bit, from now on. The memory controller corrects them.
func (n *Node) FlipBits(perMinute float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.corrects.memory = n.changeRate(n.corrects.memory, perMinute)
}

// changeRate sets a rate; what was counted stays. Called with mu held.
func (n *Node) changeRate(r errorRate, perMinute float64) errorRate {
	load := n.loadTime()
	return errorRate{perMinute, load, r.at(load)}
}

// at is what a counter stands at after so much load.
func (r errorRate) at(load time.Duration) float64 {
	return r.counted + r.perMinute*(load-r.since).Minutes()
}

// loadTime is how long the GPUs were loaded so far. Called with mu held.
func (n *Node) loadTime() time.Duration {
	long := n.corrects.before
	if n.loaded {
		long += n.options.Clock.Now().Sub(n.since)
	}
	return long
}

// counted is what a counter of errors stands at. Called with mu held.
func (n *Node) counted(r errorRate) int64 { return int64(r.at(n.loadTime())) }

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
