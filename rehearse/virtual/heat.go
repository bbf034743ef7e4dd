// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
)

// heatOf is the heat of the GPUs of a node, as its kernel sees it.
func heatOf(k *metal.Kernel) (list []system.GPUHeat) {
	for _, h := range k.Heats() {
		list = append(list, system.GPUHeat(h))
	}
	return list
}

// loadGPUs puts load on all GPUs of the node, or takes it off; its supplies feel it.
func (n *Node) loadGPUs(on bool) {
	n.metal.LoadGPUs(on)
	n.world.grid.Changed(n.inv.Name)
}

// warmer is by how many degrees the air is warmer that comes into a node.
const warmer = 15

// warmAir lets warm air into the node: its BMC measures it, and its GPUs feel it.
func (n *Node) warmAir(fault.Fault) error {
	n.chassis.WarmAir(chassis.CoolAir + warmer)
	n.metal.WarmAir(warmer)
	return nil
}

// insulated is by how much the heat sink of a GPU is worse whose thermal paste is
// missing.
const insulated = 1.6

// sluggish is the share of its clock that a slow GPU makes.
const sluggish = 5.0 / 6

// idleUnits is the share of the compute units of a GPU that do no work.
const idleUnits = 0.2

// Errors a minute under load. A PCIe link of 16 lanes at 32 GT/s that keeps the rate of bit
// errors that PCIe promises makes 31.
const (
	pcieErrors   = 400
	nvlinkErrors = 2
	memoryErrors = 3
)
