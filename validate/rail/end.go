// SPDX-License-Identifier: Apache-2.0

// Package rail knows the ports that nodes are tested over: which belong to the fabric of
// the GPUs, which leaf they end on, and what they count while they are loaded.
package rail

import (
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
)

// End is one node's port on a rail.
type End struct {
	Node   *inventory.Node
	Port   fabric.Port
	Fabric string // as FabricName has it
	Need   Need   // of RDMA writes
}

// Need is the least that good hardware gives.
type Need struct {
	Least float64 // bytes per second; 0 where nothing is known
	Limit string  // in words
}

// Rail names the rail that the port is of.
func (e End) Rail() string { return isolate.RailName(e.Fabric, e.Port.Rail) }
