// SPDX-License-Identifier: Apache-2.0

package look

import (
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// Seen is what was read off a node. A pointer is nil where the node has no
// program that could say it.
type Seen struct {
	Health  wire.Health
	Kernel  *dmesg.Log
	NVIDIA  *nvidiasmi.Log
	Links   *nvidiasmi.NVLinks // states and counters together
	AMD     *amdsmi.Report
	Time    *Time    // of chronyd
	Fabrics []string // that the node has been brought up on, by name
	// Broken are sentences of programs that ran and could not answer, each with
	// what the program said.
	Broken []Broken
	// Gaps are sentences: what could not be looked at.
	Gaps []string
}

// Broken is a program that did not answer as it must.
type Broken struct{ Program, Says string }

// DeclaredGPUs returns how many GPUs of a vendor the hardware has, and what joins them.
func DeclaredGPUs(h *inventory.Hardware, vendor string) (n int, interconnect string) {
	for _, g := range h.GPUs {
		if g.Vendor == vendor {
			n += max(g.Count, 1)
			interconnect = g.Interconnect
		}
	}
	return n, interconnect
}
