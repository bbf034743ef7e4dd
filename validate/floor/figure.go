// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"
	"math"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// floorOf is the least that good hardware gives, in bytes per second, and why; 0
// where nothing is known.
func (c *check) floorOf(measure string, h *inventory.Hardware) (float64, string) {
	switch measure {
	case WriteBandwidth:
		return OfRail(h, MainFabric(h))
	case AllReduceBandwidth:
		return c.collective(h)
	}
	return OfGPU(h, measure)
}

// collective is the floor of an all-reduce: the least of those of its scopes.
func (c *check) collective(h *inventory.Hardware) (float64, string) {
	a := c.v.AllReduce
	if a == nil || a.Engine == "mpi" {
		return 0, ""
	}
	least, source := math.Inf(1), ""
	lower := func(v float64, why string) {
		if v < least {
			least, source = v, why
		}
	}
	for _, scope := range a.Scope {
		known := false
		if scope == "node" {
			for _, g := range h.GPUs {
				if f, ok := gpuFloorOf(g, AllReduceBandwidth); ok && g.Count == 8 {
					lower(float64(f.least), f.source)
					known = true
				}
			}
		} else if wire, _ := railRate(h); wire > 0 {
			part := shareOf(h)
			lower(math.Floor(wire/8*float64(part.percent)/100/1e6)*1e6, fmt.Sprintf("%d%% of what its rails carry, %s; %s", part.percent, unit.BitRate(wire), part.source))
			known = true
		}
		if !known {
			return 0, ""
		}
	}
	if math.IsInf(least, 1) {
		return 0, ""
	}
	return least, source
}

// railRate returns the line rate of a chassis on the fabric where it has most, in bits
// per second; 0 where RDMA is in software or no speed is given.
func railRate(h *inventory.Hardware) (most float64, on *inventory.Fabric) {
	sum := map[*inventory.Fabric]float64{}
	for _, n := range h.NICs {
		if n.Fabric == nil || n.SoftwareRDMA != "" {
			continue
		}
		sum[n.Fabric] += float64(n.Speed) * float64(len(n.Ports))
		if sum[n.Fabric] > most {
			most, on = sum[n.Fabric], n.Fabric
		}
	}
	return most, on
}

// MainFabric returns the fabric on which a chassis has the highest line rate: that of its
// GPUs, where storage has a fabric of its own. It is nil where RDMA is in software
// or no speed is given.
func MainFabric(h *inventory.Hardware) *inventory.Fabric {
	_, on := railRate(h)
	return on
}

// OfRail returns the least that RDMA writes carry on the worst port of a chassis on a
// fabric, in bytes per second, and why; 0 where one is in software or no speed is
// given.
func OfRail(h *inventory.Hardware, f *inventory.Fabric) (least float64, source string) {
	least = math.Inf(1)
	for _, n := range h.NICs {
		if n.Fabric != f || f == nil {
			continue
		}
		if n.SoftwareRDMA != "" {
			return 0, ""
		}
		percent, why := rateAt(wireShare, n.Fabric)
		if v := math.Floor(float64(n.Speed)/8*float64(percent)/100/1e6) * 1e6; v < least {
			least, source = v, fmt.Sprintf("%d%% of %s", percent, n.Speed)
			if why != "" {
				source += ": " + why
			}
		}
	}
	if math.IsInf(least, 1) || least == 0 {
		return 0, ""
	}
	return least, source
}
