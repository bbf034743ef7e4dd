// SPDX-License-Identifier: Apache-2.0

package rounds

import (
	"sync"

	"github.com/ironrail/ironrail/inventory"
)

const (
	// CommandsAtOnce is how many commands run on nodes side by side: two for each port of a
	// pair, so that all pairs of 2,048 nodes with eight ports are one batch. A server whose
	// client waits for its turn would be waited for in vain, so that it is below what the
	// controller runs at once. A command costs the controller some 50 KB.
	CommandsAtOnce = 16_384
	// PortsAtOnce is how many ports of a pair are loaded side by side: as many as sshd lets
	// commands of one connection be (MaxSessions, 10 unless it says otherwise). Of more, both
	// nodes would begin with others, and wait for each other.
	PortsAtOnce = 10
)

// PairsAtOnce is how many pairs of nodes with so many ports run side by side.
func PairsAtOnce(ports int) int { return max(CommandsAtOnce/(2*max(ports, 1)), 1) }

// CountPorts is the most ports on fabrics that one of the nodes has.
func CountPorts(nodes []*inventory.Node) (most int) {
	seen := map[*inventory.Hardware]bool{}
	for _, n := range nodes {
		if n.Hardware == nil || seen[n.Hardware] {
			continue
		}
		seen[n.Hardware] = true
		ports := 0
		for _, nic := range n.Hardware.NICs {
			if nic.Fabric != nil {
				ports += len(nic.Ports)
			}
		}
		most = max(most, ports)
	}
	return most
}

// SideBySide works on all pairs, so many at once.
func SideBySide(pairs [][2]int, atOnce int, work func([2]int)) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, pair := range pairs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			work(pair)
		})
	}
	wg.Wait()
}

// usualPorts is how many ports a node of GPUs has, where only the number of nodes is known.
const usualPorts = 8

// CountPasses returns how often pairs of so many nodes run side by side: once a round, and more
// often where a round has more pairs than that.
func CountPasses(nodes int) float64 {
	return float64(CountRounds(nodes) * CountBatches(nodes/2, usualPorts))
}

// CountBatches returns how often as many pairs as run side by side are needed for a round.
func CountBatches(pairs, ports int) int {
	return (pairs + PairsAtOnce(ports) - 1) / PairsAtOnce(ports)
}
