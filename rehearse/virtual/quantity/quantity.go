// SPDX-License-Identifier: Apache-2.0

// Package quantity names the physical quantities of the simulated hardware, and holds by
// how much those of one node differ from what its models say.
package quantity

import (
	"math"
	"sync"
	"sync/atomic"
)

// Name names a quantity.
type Name string

// The quantities. Those of a part are of the part at a PCI address, of a port at that of its
// function, of a disk of NVMe at that of its controller; the others are of the whole node.
const (
	GPUAir         Name = "air at a GPU's heat sink"
	GPURest        Name = "power of a GPU at rest"
	GPULimit       Name = "power of a GPU under load"
	GPUResistance  Name = "resistance of a GPU's heat sink"
	GPUMemoryHeat  Name = "heat of a GPU's memory"
	GPUSlow        Name = "temperature at which a GPU slows down"
	GPUIdle        Name = "clock of a GPU at rest"
	GPUBoost       Name = "clock of a GPU under load"
	GPUWarming     Name = "time in which a GPU warms"
	GPUMemorySize  Name = "size of a GPU's memory"
	GPUMemoryRate  Name = "bandwidth of a GPU's memory"
	GPUHostRate    Name = "bandwidth between a GPU and its host"
	GPUPeerRate    Name = "bandwidth between two GPUs"
	GPUCompute     Name = "what a GPU computes"
	GPUPowerLimit  Name = "power limit of a GPU"
	NVLinkRate     Name = "rate of a GPU's NVLinks"
	NVLinkCount    Name = "number of a GPU's NVLinks"
	PCIeWidth      Name = "lanes of a PCIe link"
	PCIeSpeed      Name = "speed of a PCIe link"
	DIMMSize       Name = "size of a memory module"
	DIMMSpeed      Name = "speed of a memory module"
	MemoryRate     Name = "bandwidth of the host's memory"
	CoreRate       Name = "what a core computes"
	DiskRate       Name = "bandwidth of a disk"
	DiskSpare      Name = "spare blocks of a disk"
	DiskSpareLeast Name = "spare blocks at which a disk warns"
	DiskHours      Name = "hours of a disk"
	PortRate       Name = "bandwidth of a port"
	PortLatency    Name = "latency of a port"
	PortMTU        Name = "MTU of a port"
	LightSent      Name = "light that a transceiver sends"
	LightReceived  Name = "light that a transceiver receives"
)

// All are the quantities.
var All = []Name{
	GPUAir, GPURest, GPULimit, GPUResistance, GPUMemoryHeat, GPUSlow, GPUIdle, GPUBoost, GPUWarming, GPUMemorySize, GPUMemoryRate, GPUHostRate, GPUPeerRate, GPUCompute, GPUPowerLimit, NVLinkRate,
	NVLinkCount, PCIeWidth, PCIeSpeed, DIMMSize, DIMMSpeed, MemoryRate, CoreRate, DiskRate, DiskSpare, DiskSpareLeast, DiskHours, PortRate, PortLatency, PortMTU,
	LightSent, LightReceived,
}

// part is a quantity of a part.
type part struct {
	name Name
	at   string
}

// Scales is by which factors quantities of a node differ. The zero value and a nil pointer
// have none. It is safe for concurrent use.
type Scales struct {
	any atomic.Bool // one was changed

	mu sync.Mutex
	by map[part]float64 // guarded by mu
}

// Set changes a quantity of the part at a place, or of the node when it is empty, by a factor.
func (s *Scales) Set(name Name, at string, by float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[part]float64{}
	}
	s.by[part{name, at}] = by
	s.any.Store(true)
}

// Changed reports whether a quantity was ever changed.
func (s *Scales) Changed() bool { return s != nil && s.any.Load() }

// Of is the factor of a quantity of the part at a place; 1 where nothing has changed it.
func (s *Scales) Of(name Name, at string) float64 {
	if !s.Changed() {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if by, changed := s.by[part{name, at}]; changed {
		return by
	}
	return 1
}

// Whole is a whole number by its factor; it differs by 1 at least where the factor is not 1.
func (s *Scales) Whole(name Name, at string, n int64) int64 {
	switch by := s.Of(name, at); {
	case by < 1:
		return min(int64(math.Round(float64(n)*by)), n-1)
	case by > 1:
		return max(int64(math.Round(float64(n)*by)), n+1)
	}
	return n
}
