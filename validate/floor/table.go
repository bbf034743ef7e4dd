// SPDX-License-Identifier: Apache-2.0

// Package floor knows what an acceptance measures and the least that good
// hardware gives, with the source of each figure. It holds a site's own limits
// against that: a limit of something that nobody measures, or one that faulty
// hardware keeps, is no limit. It is pure and safe for concurrent use.
package floor

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Measure is something that is measured, by the name of its limit.
type Measure struct {
	Name       string
	Dimensions []unit.Dimension // that its limit can be given in
	AtMost     bool             // small is good: its limit is a ceiling
	What       string           // in a few words
}

// The names of measures, as limit blocks say them.
const (
	HBMCopy            = "gpu.hbm_copy"
	HostToDevice       = "gpu.h2d"
	DeviceToHost       = "gpu.d2h"
	PeerRead           = "gpu.p2p_read"
	WriteBandwidth     = "rdma.write_bw"
	WriteLatency       = "rdma.write_latency"
	AllReduceBandwidth = "all_reduce.busbw"
	HostMemory         = "host.memory"
	HostCPU            = "host.cpu"
	DiskRead           = "host.disk_read"
	NetworkTCP         = "network.tcp"
)

var rate = []unit.Dimension{unit.Throughput, unit.LineRate}

// Measures are what a limit can be of, by name.
var Measures = []Measure{
	{"all_gather.busbw", rate, false, "bus bandwidth of an all-gather at the largest size"},
	{AllReduceBandwidth, rate, false, "bus bandwidth of an all-reduce at the largest size"},
	{"alltoall.busbw", rate, false, "bus bandwidth of an all-to-all at the largest size"},
	{DeviceToHost, rate, false, "copies from a GPU to the memory of its node"},
	{HostToDevice, rate, false, "copies from the memory of a node to a GPU"},
	{HBMCopy, rate, false, "copies within the memory of a GPU, read and written bytes together"},
	{PeerRead, rate, false, "reads of a GPU from another of its node"},
	{HostCPU, []unit.Dimension{unit.Time}, true, "the time that the slowest core takes for a billion dependent integer operations"},
	{DiskRead, rate, false, "reads of a disk from its start"},
	{HostMemory, rate, false, "a triad of all cores in the memory of the host"},
	{NetworkTCP, rate, false, "TCP of a node over a network that is no fabric, each way"},
	{WriteBandwidth, rate, false, "RDMA writes of one rail, one way"},
	{WriteLatency, []unit.Dimension{unit.Time}, true, "the time of a small RDMA write"},
	{"reduce_scatter.busbw", rate, false, "bus bandwidth of a reduce-scatter at the largest size"},
	{"sendrecv.busbw", rate, false, "bus bandwidth of a ring of sends at the largest size"},
}

// measureOf returns the measure of that name.
func measureOf(name string) (Measure, bool) {
	i := slices.IndexFunc(Measures, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return Measure{}, false
	}
	return Measures[i], true
}

// IsCeiling reports whether the limit of a measure is the most that is good.
func IsCeiling(name string) bool {
	m, ok := measureOf(name)
	return ok && m.AtMost
}

// gpuFloor is the least that a GPU gives.
type gpuFloor struct {
	model   string // words of the model's name, all of which it has
	measure string
	least   unit.ByteRate
	source  string
}

const gb = 1_000_000_000 // bytes per second in a GB/s

// gpuFloors are the figures of GPUs that somebody published. Where they are
// measurements and not limits, the floor is 95% of them. The all-reduce is that
// of eight GPUs of one node at 8 GiB and more.
//
// The memory of some models was measured by another program than the one that is
// used here, BabelStream: 90% of its copy is asked for. (Of an H100, nvbandwidth shows
// 5% more than BabelStream does.) Of others nobody has published a figure: then it is
// 70% of the peak of the data sheet, which finds what is grossly wrong, such as memory
// at half its clock, in all GPUs of a node. Measured were 79% of an A100 and of an
// MI300X, 83% of a GB200, 87% of an H200, 91% of an H100. An H20 reaches 46%
// (github.com/NVIDIA/nvbandwidth issue 48), as it has too few units for its memory: it
// has no floor.
var gpuFloors = []gpuFloor{
	{"A100", AllReduceBandwidth, 228 * gb, "azurehpc-health-checks, nd96 A100 v4"},
	{"H100", AllReduceBandwidth, 460 * gb, "azurehpc-health-checks, nd96isr H100 v5, at 16 GiB"},
	{"H200", AllReduceBandwidth, 457 * gb, "95% of 482 GB/s, measured in the ML Engineering book"},
	{"B200", AllReduceBandwidth, 796 * gb, "95% of 838 GB/s, measured in the ML Engineering book"},
	{"B300", AllReduceBandwidth, 800 * gb, "oci-hpc health checks"},
	{"MI300X", AllReduceBandwidth, 310 * gb, "oci-hpc health checks"},
	{"H100", HBMCopy, 2850 * gb, "94% of 3038 GB/s, twice the 1519 GB/s that nvbandwidth's device_local_copy shows in the Smol Training Playbook"},
	{"GB200", HBMCopy, 6290 * gb, "95% of 6625 GB/s, twice what nvbandwidth's device_local_copy shows in oci-hpc's guide"},
	{"MI300X", HBMCopy, 4177 * gb, "AMD's acceptance guide of MI300X, copy of BabelStream"},
	{"H200", HBMCopy, 3960 * gb, "95% of 4168 GB/s, twice the 2084 GB/s that nvbandwidth's device_local_copy shows (docs/gpu.md)"},
	{"A100 80GB", HBMCopy, 1449 * gb, "90% of 1610 GB/s, BabelStream's copy in Azure's AI benchmarking guide"},
	{"A100", HBMCopy, 1088 * gb, "70% of the data sheet's 1555 GB/s, with 40 GB; no measurement is published"},
	{"B200", HBMCopy, 5390 * gb, "70% of the data sheet's 7700 GB/s; no measurement is published"},
	{"B300", HBMCopy, 5600 * gb, "70% of the data sheet's 8000 GB/s; no measurement is published"},
	{"GB300", HBMCopy, 5600 * gb, "70% of the data sheet's 8000 GB/s; no measurement is published"},
	{"MI325X", HBMCopy, 4200 * gb, "70% of the data sheet's 6000 GB/s; no measurement is published"},
	{"MI350X", HBMCopy, 5600 * gb, "70% of the data sheet's 8000 GB/s; no measurement is published"},
	{"MI355X", HBMCopy, 5600 * gb, "70% of the data sheet's 8000 GB/s; no measurement is published"},
	{"H100", HostToDevice, 52 * gb, "azurehpc-health-checks, PCIe Gen5 x16"},
	{"H100", DeviceToHost, 52 * gb, "azurehpc-health-checks, PCIe Gen5 x16"},
	{"H200", HostToDevice, 52 * gb, "PCIe Gen5 x16, as H100; 55 GB/s are measured in docs/gpu.md"},
	{"H200", DeviceToHost, 52 * gb, "PCIe Gen5 x16, as H100; 55 GB/s are measured in docs/gpu.md"},
	{"A100", HostToDevice, 23 * gb, "azurehpc-health-checks, PCIe Gen4 x16"},
	{"A100", DeviceToHost, 23 * gb, "azurehpc-health-checks, PCIe Gen4 x16"},
	{"MI300X", HostToDevice, 48 * gb, "azurehpc-health-checks, MI300X v5"},
	{"GB200", HostToDevice, 200 * gb, "95% of 211 GB/s over NVLink-C2C, measured in oci-hpc's guide"},
	{"GB200", DeviceToHost, 183 * gb, "95% of 193 GB/s over NVLink-C2C, measured in oci-hpc's guide"},
	{"H100", PeerRead, 335 * gb, "azurehpc-health-checks, nd96isr H100 v5"},
	{"A100", PeerRead, 238 * gb, "azurehpc-health-checks, nd96 A100 v4"},
	{"GB200", PeerRead, 730 * gb, "95% of 769 GB/s, measured in oci-hpc's guide"},
	{"MI300X", PeerRead, 44 * gb, "azurehpc-health-checks, MI300X v5"},
}

// wireShare is what RDMA writes in host memory carry of the line rate, in per
// cent, with full packets: oci-hpc holds 384 of 400 Gb/s.
const wireShare = 96

// share is what a collective over all rails carries of the line rate.
type share struct {
	percent int
	source  string
}

// collective is the share with NCCL, and collectiveAMD that with RCCL.
var (
	collective    = share{92, "Together accepts 370 of 400 GB/s"}
	collectiveAMD = share{87, "AMD's cluster validation suite asks 350 of 400 GB/s at 16 GiB"}
)

// shareOf is the share for a chassis, on the fabric where it has most rails.
func shareOf(h *inventory.Hardware) share {
	part := collective
	if len(h.GPUs) > 0 && h.GPUs[0].Vendor == "amd" {
		part = collectiveAMD
	}
	if _, f := railRate(h); f != nil {
		if left, why := rateAt(part.percent, f); why != "" {
			return share{left, part.source + ", and there are " + why}
		}
	}
	return part
}

// writeLatency is the most that a small RDMA write takes, in nanoseconds
// (azurehpc-health-checks, ib_write_lat).
const writeLatency = 5_000

// OfGPU returns the least of a measure that good GPUs of a chassis give, in bytes
// per second, and where the figure is from; 0 where nothing is known.
func OfGPU(h *inventory.Hardware, measure string) (least float64, source string) {
	for _, g := range h.GPUs {
		if f, ok := gpuFloorOf(g, measure); ok {
			return float64(f.least), f.source
		}
	}
	return 0, ""
}

// gpuFloorOf returns the floor of a measure for a set of GPUs. Cards without links
// between them carry the name of the module and less of its memory: of them only
// the copies over PCIe are known. A module that stands alone, as in a virtual machine
// that was given one GPU, has the memory of its model.
func gpuFloorOf(g inventory.GPU, measure string) (gpuFloor, bool) {
	words := strings.FieldsFunc(strings.ToUpper(g.Model), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	switch {
	case g.Interconnect != "" || measure == HostToDevice || measure == DeviceToHost:
	case measure == HBMCopy && isModule(words):
	default:
		return gpuFloor{}, false
	}
	i := slices.IndexFunc(gpuFloors, func(f gpuFloor) bool { return f.measure == measure && f.names(words) })
	if i < 0 {
		return gpuFloor{}, false
	}
	return gpuFloors[i], true
}

// isModule reports whether a name of those words is one that NVIDIA's driver gives to
// modules alone: "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200". Cards
// are called "NVIDIA A100 80GB PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL"; what has
// neither mark may be either.
func isModule(words []string) bool {
	return slices.Equal(words, []string{"NVIDIA", "H200"}) || slices.Contains(words, "HBM3") ||
		slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "SXM") })
}

// names reports whether a name of those words is that of the floor's model.
func (f gpuFloor) names(words []string) bool {
	return !slices.ContainsFunc(strings.Fields(f.model), func(w string) bool { return !slices.Contains(words, w) })
}
