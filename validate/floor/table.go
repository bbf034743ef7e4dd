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
)

var rate = []unit.Dimension{unit.Throughput, unit.LineRate}

// Measures are what a limit can be of, by name.
var Measures = []Measure{
	{AllReduceBandwidth, rate, false, "bus bandwidth of an all-reduce at the largest size"},
	{DeviceToHost, rate, false, "copies from a GPU to the memory of its node"},
	{HostToDevice, rate, false, "copies from the memory of a node to a GPU"},
	{HBMCopy, rate, false, "copies within the memory of a GPU, read and written bytes together"},
	{PeerRead, rate, false, "reads of a GPU from another of its node"},
	{WriteBandwidth, rate, false, "RDMA writes of one rail, one way"},
	{WriteLatency, []unit.Dimension{unit.Time}, true, "the time of a small RDMA write"},
}

// measureOf returns the measure of that name.
func measureOf(name string) (Measure, bool) {
	i := slices.IndexFunc(Measures, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return Measure{}, false
	}
	return Measures[i], true
}

// gpuFloor is the least that a GPU gives.
type gpuFloor struct {
	model   string // a word of the model's name
	measure string
	least   unit.ByteRate
	source  string
}

const gb = 1_000_000_000 // bytes per second in a GB/s

// gpuFloors are the figures of GPUs that somebody published. Where they are
// measurements and not limits, the floor is 95% of them. The all-reduce is that
// of eight GPUs of one node at 8 GiB and more.
var gpuFloors = []gpuFloor{
	{"A100", AllReduceBandwidth, 228 * gb, "azurehpc-health-checks, nd96 A100 v4"},
	{"H100", AllReduceBandwidth, 460 * gb, "azurehpc-health-checks, nd96isr H100 v5, at 16 GiB"},
	{"H200", AllReduceBandwidth, 457 * gb, "95% of 482 GB/s, measured in the ML Engineering book"},
	{"B200", AllReduceBandwidth, 796 * gb, "95% of 838 GB/s, measured in the ML Engineering book"},
	{"B300", AllReduceBandwidth, 800 * gb, "oci-hpc health checks"},
	{"MI300X", AllReduceBandwidth, 310 * gb, "oci-hpc health checks"},
	{"H100", HBMCopy, 2850 * gb, "85% of 3350 GB/s; 2903 GB/s measured by nvbandwidth"},
	{"H100", HostToDevice, 52 * gb, "azurehpc-health-checks, PCIe Gen5 x16"},
	{"H100", DeviceToHost, 52 * gb, "azurehpc-health-checks, PCIe Gen5 x16"},
	{"H200", HostToDevice, 52 * gb, "PCIe Gen5 x16, as H100"},
	{"H200", DeviceToHost, 52 * gb, "PCIe Gen5 x16, as H100"},
	{"A100", HostToDevice, 23 * gb, "azurehpc-health-checks, PCIe Gen4 x16"},
	{"A100", DeviceToHost, 23 * gb, "azurehpc-health-checks, PCIe Gen4 x16"},
	{"MI300X", HostToDevice, 48 * gb, "azurehpc-health-checks, MI300X v5"},
	{"H100", PeerRead, 335 * gb, "azurehpc-health-checks, nd96isr H100 v5"},
	{"A100", PeerRead, 238 * gb, "azurehpc-health-checks, nd96 A100 v4"},
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
	if _, f := rails(h); f != nil {
		if left, why := at(part.percent, f); why != "" {
			return share{left, part.source + ", and there are " + why}
		}
	}
	return part
}

// writeLatency is the most that a small RDMA write takes, in nanoseconds
// (azurehpc-health-checks, ib_write_lat).
const writeLatency = 5_000

// gpuFloorOf returns the floor of a measure for a set of GPUs. Cards without links
// between them carry the name of the module and less of its memory: of them only
// the copies over PCIe are known.
func gpuFloorOf(g inventory.GPU, measure string) (gpuFloor, bool) {
	if g.Interconnect == "" && measure != HostToDevice && measure != DeviceToHost {
		return gpuFloor{}, false
	}
	words := strings.FieldsFunc(strings.ToUpper(g.Model), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	i := slices.IndexFunc(gpuFloors, func(f gpuFloor) bool { return f.measure == measure && slices.Contains(words, f.model) })
	if i < 0 {
		return gpuFloor{}, false
	}
	return gpuFloors[i], true
}
