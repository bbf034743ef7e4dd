// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"hash/fnv"
	"path"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// What GPUs move. Memory: peak of the data sheet in GB/s, and the part of it that a
// copy reaches, read and written bytes together. Read: 3038 of an H100 (Smol
// Training Playbook), 6625 of a GB200 (oci-hpc's guide), 4177 and more of an MI300X
// (AMD's acceptance guide); the others are belief.
var gpuMemories = []struct {
	match string // a part of the model's name
	peak  float64
	part  float64
}{
	{"GB300", 8000, 0.83}, {"GB200", 8000, 0.83}, {"B300", 8000, 0.83}, {"B200", 8000, 0.83}, {"H200", 4800, 0.88}, {"H100", 3350, 0.907}, {"A100", 2039, 0.88},
	{"MI355X", 8000, 0.82}, {"MI325X", 6000, 0.82}, {"MI300X", 5300, 0.82}, {"", 2000, 0.85},
}

const (
	// pcieShare is what a copy reaches of a PCIe link: 55.4 GB/s of 16 lanes of 32
	// GT/s. Read: public acceptance tests.
	pcieShare = 0.88
	// pcieCoding is what 128b/130b leaves.
	pcieCoding = 128.0 / 130
	// c2cTo and c2cFrom are what copies to and from a GPU show over NVLink-C2C, GB/s.
	// Read: oci-hpc's guide of GB200.
	c2cTo, c2cFrom = 211, 193
	// nvlinkShare and xgmiShare are what a copy between two GPUs reaches of the links
	// between them: 376 of 450 GB/s (ML Engineering book), 48.9 of 64 (AMD).
	nvlinkShare, xgmiShare = 0.836, 0.764
	// xgmiLink is what lies between two GPUs of AMD, GB/s in each direction.
	xgmiLink = 64
)

// memoryRate is what a copy within the memory of a GPU moves, read and written, in
// bytes per second.
func (n *node) memoryRate(address, model string) float64 {
	for _, m := range gpuMemories {
		if strings.Contains(strings.ToUpper(model), m.match) {
			return m.peak * m.part * 1e9 * (1 - n.memoryAt(address).Slower) * n.differs(address, "memory") * n.cfg.Scales.Of(quantity.GPUMemoryRate, address)
		}
	}
	return 0
}

// hostRate is what a copy between the host and a GPU moves, bytes per second.
func (n *node) hostRate(address, model string, toGPU bool) float64 {
	test := "from"
	if toGPU {
		test = "to"
	}
	scatter := n.differs(address, test) * n.cfg.Scales.Of(quantity.GPUHostRate, address)
	if strings.Contains(model, "GB200") || strings.Contains(model, "GB300") {
		if toGPU {
			return c2cTo * 1e9 * scatter
		}
		return c2cFrom * 1e9 * scatter
	}
	lanes, _ := strconv.Atoi(n.fs.Text("sys/bus/pci/devices", address, "current_link_width"))
	speed, _, _ := strings.Cut(n.fs.Text("sys/bus/pci/devices", address, "current_link_speed"), " ")
	transfers, err := strconv.ParseFloat(speed, 64)
	if err != nil {
		return 0 // no link
	}
	return float64(lanes) * transfers / 8 * pcieCoding * pcieShare * 1e9 * scatter
}

// peerRate is what a copy between two GPUs moves, bytes per second: over their
// links, else over PCIe.
func (n *node) peerRate(a, b, model, vendor string) float64 {
	scatter := n.differs(a, b) * n.cfg.Scales.Of(quantity.GPUPeerRate, a)
	switch {
	case vendor == "amd" && n.joined("amd", "xgmi"):
		return xgmiLink * xgmiShare * 1e9 * scatter
	case vendor == "nvidia" && n.joined("nvidia", "nvswitch", "nvlink"):
		links, rate := nvlinksOf(model)
		shown, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			return 0 // rates are constants of this package
		}
		data := map[bool]float64{true: 50, false: 25}[shown > 50]
		return float64(links) * data * nvlinkShare * 1e9 * scatter
	}
	return min(n.hostRate(a, model, false), n.hostRate(b, model, true))
}

// differs is how a figure of a GPU lies below the best of its kind, within half a
// per cent.
func (n *node) differs(address, test string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.cfg.Node + "\x00" + address + "\x00" + test))
	return 1 - float64(h.Sum32()%100)/2e4
}

// measuring are the programs that measure GPUs, which packages put into folders of
// their own.
var measuring = map[string]program{"nvbandwidth": {run: runNvbandwidth}, "rvs": {run: runRvs}}

// placed are the files that packages bring, of those that something looks for.
var placed = map[string]string{
	"nvbandwidth":                     "usr/bin/nvbandwidth",
	"ironrail-nvbandwidth":            "usr/bin/nvbandwidth",
	"ironrail-stream":                 "usr/bin/stream",
	"ironrail-checksum":               "usr/bin/ironrail_checksum",
	"datacenter-gpu-manager-4-cuda12": "usr/libexec/datacenter-gpu-manager-4/plugins/cuda12/nvbandwidth",
	"datacenter-gpu-manager-4-cuda13": "usr/libexec/datacenter-gpu-manager-4/plugins/cuda13/nvbandwidth",
	"rocm-validation-suite":           "opt/rocm/bin/rvs",
}

// place writes the files of packages that are there.
func (n *node) place() {
	have := n.packages()
	put := func(name, at string) {
		if have[name] != "" && !n.tree.exists(at) && n.tree.MkdirAll(path.Dir(at), 0o755) == nil {
			_ = n.tree.write(at, nil, 0o755) // a full disk shows elsewhere
		}
	}
	for name, at := range placed {
		put(name, at)
	}
	for program := range perfPrograms {
		put("ironrail-nccl-tests", "usr/bin/"+program+withMPI)
		put("ironrail-rccl-tests", "usr/bin/"+program+withMPI)
	}
}

// formatGBps writes bytes per second as GB/s.
func formatGBps(v float64, digits int) string { return fmt.Sprintf("%.*f", digits, v/1e9) }
