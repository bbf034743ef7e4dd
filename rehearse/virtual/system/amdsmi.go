// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// amdAddresses lists the addresses of AMD's GPUs that are on the bus.
func (n *node) amdAddresses() []string {
	var list []string
	for _, at := range n.fs.Names("sys/bus/pci/devices") {
		if n.fs.Text("sys/bus/pci/devices", at, "vendor") == "0x1002" && strings.HasPrefix(n.fs.Text("sys/bus/pci/devices", at, "class"), "0x12") {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// object is one of JSON.
type object = map[string]any

// withUnit returns a value with its unit, as amd-smi writes it in JSON.
func withUnit(value any, unit string) object { return object{"value": value, "unit": unit} }

// amdSMI is amd-smi list, static, metric, bad-pages and topology with --json, of
// ROCm 6.
func amdSMI(_ context.Context, c call) int {
	if brought, _ := c.n.installedAs([]string{"rocm", "amd-smi-lib", "rocm-smi-lib", "amdgpu-dkms"}); brought == "" {
		_, _ = fmt.Fprintln(c.Err, "sh: 1: amd-smi: not found")
		return 127
	}
	if !c.n.loaded("amdgpu") {
		_, _ = fmt.Fprintln(c.Err, "ERROR:root:Unable to get devices, driver not initialized (amdgpu not found in modules)")
		return 255
	}
	commands := map[string]func(*node, int, string) object{"list": (*node).amdList, "static": (*node).amdStatic, "metric": (*node).amdMetric, "bad-pages": (*node).amdPages, "topology": (*node).amdTopology}
	if len(c.Argv) < 3 || commands[c.Argv[1]] == nil || c.Argv[len(c.Argv)-1] != "--json" {
		_, _ = fmt.Fprintln(c.Err, "amd-smi: this one knows list, static, metric, bad-pages and topology, with --json")
		return 2
	}
	all := []object{}
	for i, at := range c.n.amdAddresses() {
		all = append(all, commands[c.Argv[1]](c.n, i, at))
	}
	b, err := json.MarshalIndent(all, "", "    ")
	if err != nil {
		return 1
	}
	c.print(string(b) + "\n")
	return 0
}

// amdSum is what serial numbers of a GPU are derived from.
func (n *node) amdSum(at string) []byte {
	sum := sha256.Sum256([]byte(n.cfg.Node + "\x00gpu\x00" + at))
	return sum[:]
}

func (n *node) amdList(i int, at string) object {
	sum := n.amdSum(at)
	return object{"gpu": i, "bdf": at, "uuid": fmt.Sprintf("%x-0000-1000-80%x-%x", sum[:4], sum[4:5], sum[5:11]), "kfd_id": 10000 + i}
}

func (n *node) amdStatic(i int, at string) object {
	sum := n.amdSum(at)
	model := inventory.GPU{Model: "MI300X"}
	for _, g := range n.cfg.Hardware.GPUs {
		if g.Vendor == "amd" {
			model = g
		}
	}
	if model = n.delivered(at, model); model.Memory == 0 {
		model.Memory = unit.Bytes(memoryOf(model.Model) << 20)
	}
	model.Memory -= unit.Bytes(float64(model.Memory) * n.memoryAt(at).Missing)
	driver := n.fs.Text("sys/module/amdgpu/version")
	if driver == "" {
		driver = n.cfg.Kernel.Release()
	}
	return object{"gpu": i, "asic": object{"market_name": "AMD Instinct " + model.Model, "vendor_id": "0x1002", "asic_serial": fmt.Sprintf("0x%X", sum[11:19]), "oam_id": i},
		"bus":    object{"bdf": at, "max_pcie_width": 16, "max_pcie_speed": withUnit(32, "GT/s"), "pcie_interface_version": "Gen 5", "slot_type": "OAM"},
		"vbios":  object{"name": "AMD MI300X", "part_number": "113-M3000100-102", "version": "022.040.003.041.000001"},
		"driver": object{"name": "amdgpu", "version": driver},
		"board":  object{"product_serial": fmt.Sprintf("6923%08d", uint32(sum[19])<<16|uint32(sum[20])<<8|uint32(sum[21])), "product_name": "AMD Instinct " + model.Model},
		"vram":   object{"type": "HBM", "size": withUnit(int64(model.Memory)>>20, "MB")}}
}

func (n *node) amdMetric(i int, at string) object {
	m, h := n.memoryAt(at), GPUHeat{Core: 38, Memory: 33, Power: 133}
	if list := n.heat(); list != nil {
		h = heatAt(list, at)
	}
	throttled := "UNTHROTTLED"
	if h.Slowed {
		throttled = "THROTTLED"
	}
	width := 0
	_, _ = fmt.Sscan(n.fs.Text("sys/bus/pci/devices", at, "current_link_width"), &width)
	block := func(bad int) object {
		return object{"correctable_count": 0, "uncorrectable_count": bad, "deferred_count": 0}
	}
	return object{"gpu": i, "power": object{"socket_power": withUnit(math.Round(h.Power), "W"), "throttle_status": throttled},
		"temperature": object{"edge": "N/A", "hotspot": withUnit(h.Core, "C"), "mem": withUnit(h.Memory, "C")},
		"pcie":        object{"width": width, "speed": withUnit(map[int]int{4: 16, 5: 32}[n.generation(at)], "GT/s"), "replay_count": correctedAt(n.cfg.CorrectedPCIe, at)},
		"ecc":         object{"total_correctable_count": 0, "total_uncorrectable_count": m.BadBits, "total_deferred_count": 0},
		"ecc_blocks":  object{"UMC": block(m.BadBits), "SDMA": block(0), "GFX": block(0), "XGMI_WAFL": block(0)}, "xgmi_err": "N/A"}
}

// amdPages lists a page for each row that failed.
func (n *node) amdPages(i int, at string) object {
	const none = "No bad pages found."
	var pending any = none
	if rows := n.memoryAt(at).BadRows; rows > 0 {
		var list []object
		for row := range rows {
			list = append(list, object{"page_address": fmt.Sprintf("0x%x", 0x7a3c1000+row<<12), "page_size": 4096, "status": "PENDING"})
		}
		pending = list
	}
	return object{"gpu": i, "retired": none, "pending": pending, "un_res": none}
}

func (n *node) amdTopology(i int, at string) object {
	kind := "PCIE"
	if n.joined("amd", "xgmi") {
		kind = "XGMI"
	}
	links := []object{}
	for j, other := range n.amdAddresses() {
		l := object{"gpu": j, "bdf": other, "weight": 15, "link_status": "ENABLED", "link_type": kind, "num_hops": 1, "bandwidth": "50000-50000"}
		if j == i {
			l["weight"], l["num_hops"], l["link_type"], l["bandwidth"] = 0, 0, "SELF", "N/A"
		}
		links = append(links, l)
	}
	return object{"gpu": i, "bdf": at, "links": links}
}
