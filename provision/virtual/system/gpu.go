package system

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// driverVersion is the GPU driver that a virtual node runs.
const driverVersion = "550.90.07"

// gpu is one GPU as nvidia-smi sees it.
type gpu struct {
	index  int
	name   string
	uuid   string
	serial string
	bus    string
	memory int64 // MiB
}

// gpus lists the GPUs of NVIDIA that are on the bus.
func (n *node) gpus() []gpu {
	if n.cfg.Hardware == nil {
		return nil
	}
	var declared []inventory.GPU
	for _, g := range n.cfg.Hardware.GPUs {
		for range max(g.Count, 1) {
			if g.Vendor == "nvidia" {
				declared = append(declared, g)
			}
		}
	}
	var list []gpu
	for _, at := range n.fs.Names("sys/bus/pci/devices") {
		read := func(name string) string { return n.fs.Text("sys/bus/pci/devices", at, name) }
		if read("vendor") != "0x10de" || !strings.HasPrefix(read("class"), "0x03") || len(list) == len(declared) {
			continue
		}
		i := len(list)
		sum := sha256.Sum256([]byte(n.cfg.Node + "\x00gpu\x00" + at))
		d := declared[i]
		memory := int64(d.Memory) >> 20
		if memory == 0 {
			memory = 81559 // an H100 of 80 GB
		}
		list = append(list, gpu{i, gpuName(d.Model), fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
			fmt.Sprintf("165%010d", uint32(sum[20])<<16|uint32(sum[21])<<8|uint32(sum[22])), "0000" + strings.ToUpper(at), memory})
	}
	return list
}

// gpuName is a model as the driver calls it.
func gpuName(model string) string {
	switch m := strings.ToLower(model); {
	case strings.Contains(m, "h100"):
		return "NVIDIA H100 80GB HBM3"
	case strings.Contains(m, "h200"):
		return "NVIDIA H200"
	case strings.Contains(m, "a100"):
		return "NVIDIA A100-SXM4-80GB"
	case strings.Contains(m, "b200") && !strings.Contains(m, "gb200"):
		return "NVIDIA B200"
	}
	return "NVIDIA " + model
}

// nvidiaSMI is nvidia-smi -L and nvidia-smi --query-gpu=... --format=csv.
func nvidiaSMI(_ context.Context, c call) int {
	list := c.n.gpus()
	if len(list) == 0 {
		if c.n.cfg.Hardware == nil || c.n.cfg.Hardware.GPUCount() == 0 {
			_, _ = fmt.Fprintln(c.Err, "sh: 1: nvidia-smi: not found")
			return 127
		}
		c.print("No devices were found\n")
		return 6
	}
	query, format := "", ""
	for _, a := range c.Argv[1:] {
		switch {
		case a == "-L", a == "--list-gpus":
			for _, g := range list {
				c.print(fmt.Sprintf("GPU %d: %s (UUID: %s)\n", g.index, g.name, g.uuid))
			}
			return 0
		case strings.HasPrefix(a, "--query-gpu="):
			query = strings.TrimPrefix(a, "--query-gpu=")
		case strings.HasPrefix(a, "--format="):
			format = strings.TrimPrefix(a, "--format=")
		}
	}
	if query == "" || !strings.HasPrefix(format, "csv") {
		c.print("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n")
		return 1
	}
	fields := strings.Split(query, ",")
	if !strings.Contains(format, "noheader") {
		c.print(strings.Join(headings(fields), ", ") + "\n")
	}
	for _, g := range list {
		var row []string
		for _, f := range fields {
			v, ok := g.value(strings.TrimSpace(f), !strings.Contains(format, "nounits"))
			if !ok {
				c.print(fmt.Sprintf("Field \"%s\" is not a valid field to query.\n\n", f))
				return 2
			}
			row = append(row, v)
		}
		c.print(strings.Join(row, ", ") + "\n")
	}
	return 0
}

// unitsOf are what nvidia-smi writes behind numbers and into headings.
var unitsOf = map[string]string{
	"memory.total": "MiB", "memory.used": "MiB", "memory.free": "MiB", "power.draw": "W", "power.limit": "W", "utilization.gpu": "%",
	"clocks.sm": "MHz", "clocks.mem": "MHz", "clocks.max.sm": "MHz",
}

func headings(fields []string) []string {
	var out []string
	for _, f := range fields {
		f = strings.TrimSpace(f)
		if u := unitsOf[f]; u != "" {
			f += " [" + u + "]"
		}
		out = append(out, f)
	}
	return out
}

func (g gpu) value(field string, withUnit bool) (string, bool) {
	v := map[string]string{
		"index": itoa(g.index), "name": g.name, "gpu_name": g.name, "uuid": g.uuid, "gpu_uuid": g.uuid, "serial": g.serial, "gpu_serial": g.serial, "pci.bus_id": g.bus, "gpu_bus_id": g.bus,
		"driver_version": driverVersion, "vbios_version": "96.00.89.00.01", "memory.total": fmt.Sprint(g.memory), "memory.used": "1", "memory.free": fmt.Sprint(g.memory - 1),
		"temperature.gpu": "31", "power.draw": "70.52", "power.limit": "700.00", "utilization.gpu": "0", "clocks.sm": "345", "clocks.mem": "2619", "clocks.max.sm": "1980", "pstate": "P0",
		"ecc.mode.current": "Enabled", "ecc.errors.uncorrected.volatile.total": "0", "ecc.errors.corrected.volatile.total": "0", "persistence_mode": "Enabled",
		"pcie.link.gen.current": "5", "pcie.link.width.current": "16", "mig.mode.current": "Disabled", "count": "0",
	}[field]
	if u := unitsOf[field]; u != "" && withUnit {
		v += " " + u
	}
	return v, v != ""
}
