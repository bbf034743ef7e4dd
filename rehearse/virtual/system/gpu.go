// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
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
		d := n.delivered(at, declared[i])
		memory := int64(d.Memory) >> 20
		if memory == 0 {
			memory = memoryOf(d.Model)
		}
		memory = n.cfg.Scales.Whole(quantity.GPUMemorySize, at, memory-int64(float64(memory)*n.memoryAt(at).Missing))
		list = append(list, gpu{i, gpuName(d.Model), fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
			fmt.Sprintf("165%010d", uint32(sum[20])<<16|uint32(sum[21])<<8|uint32(sum[22])), "0000" + strings.ToUpper(at), memory})
	}
	return list
}

// delivered is the GPU that is at an address, where another was put in its place.
func (n *node) delivered(address string, declared inventory.GPU) inventory.GPU {
	if n.cfg.GPUModel == nil {
		return declared
	}
	if other := n.cfg.GPUModel(address); other != "" {
		return inventory.GPU{Vendor: declared.Vendor, Model: strings.ToUpper(other)}
	}
	return declared
}

// memoryOf is the memory of a model whose block does not say it, MiB, as its driver shows it
// (public outputs of nvidia-smi; AMD's data sheets).
func memoryOf(name string) int64 {
	for _, m := range []struct {
		match string
		mib   int64
	}{{"GB300", 284208}, {"B300", 275040}, {"GB200", 189471}, {"B200", 183359}, {"GH200", 97871}, {"H200", 143771}, {"H20", 97871}, {"L40", 46068}, {"A30", 24576}, {"A40", 46068},
		{"MI300A", 131072}, {"MI300", 196592}, {"MI325", 262128}, {"MI35", 294896}, {"MI250", 65520}, {"MI210", 65520}, {"MI100", 32752}} {
		if strings.Contains(strings.ToUpper(name), m.match) {
			return m.mib
		}
	}
	if gb := gigabytes(name); gb > 0 && gb != 80 {
		return int64(gb) * 1024 * 102 / 100 // makers count GB, and say less than there is
	}
	if strings.Contains(strings.ToUpper(name), "A100") {
		return 81920
	}
	return 81559 // an H100 of 80 GB
}

// gigabytes is what the name of a model says of its memory; 0: nothing.
func gigabytes(name string) (gb int) {
	for _, w := range strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }) {
		if number, is := strings.CutSuffix(w, "GB"); is {
			if n, err := strconv.Atoi(number); err == nil && n > 0 && n < 1000 {
				gb = n
			}
		}
	}
	return gb
}

// gpuName is a model as the driver calls it.
func gpuName(model string) string {
	size := "80GB"
	if gb := gigabytes(model); gb > 0 {
		size = fmt.Sprintf("%dGB", gb)
	}
	switch m := strings.ToLower(model); {
	case strings.Contains(m, "h100"):
		return "NVIDIA H100 " + size + " HBM3"
	case strings.Contains(m, "gh200"):
		return "NVIDIA GH200 480GB"
	case strings.Contains(m, "h200"):
		return "NVIDIA H200"
	case strings.Contains(m, "a100"):
		return "NVIDIA A100-SXM4-" + size
	case strings.Contains(m, "b200") && !strings.Contains(m, "gb200"):
		return "NVIDIA B200"
	}
	return "NVIDIA " + model
}

// nvidiaSMI is nvidia-smi -L, -q -x, nvlink -s and -e, and --query-gpu=... --format=csv.
func nvidiaSMI(_ context.Context, c call) int {
	heat := c.n.heat()
	if text, ok := c.n.asked.again(strings.Join(c.Argv[1:], " "), heat); ok {
		c.print(text)
		return 0
	}
	list := c.n.listed(heat)
	if len(list) == 0 {
		if c.n.cfg.Hardware == nil || c.n.cfg.Hardware.GPUCount() == 0 {
			_, _ = fmt.Fprintln(c.Err, "sh: 1: nvidia-smi: not found")
			return 127
		}
		c.print("No devices were found\n")
		return 6
	}
	switch args := strings.Join(c.Argv[1:], " "); args {
	case "-q -x":
		c.print(c.n.nvidiaLog(list, heat))
		return 0
	case "nvlink -s", "nvlink -e":
		c.print(c.n.nvlinks(list, args == "nvlink -e"))
		return 0
	}
	fields, format := "", ""
	for _, a := range c.Argv[1:] {
		switch {
		case a == "-L", a == "--list-gpus":
			for _, g := range list {
				c.print(fmt.Sprintf("GPU %d: %s (UUID: %s)\n", g.index, g.name, g.uuid))
			}
			return 0
		case strings.HasPrefix(a, "--query-gpu="):
			fields = strings.TrimPrefix(a, "--query-gpu=")
		case strings.HasPrefix(a, "--format="):
			format = strings.TrimPrefix(a, "--format=")
		}
	}
	if fields == "" || !strings.HasPrefix(format, "csv") {
		c.print("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n")
		return 1
	}
	text, status := queryGPUs(list, heat, fields, format)
	if status == 0 {
		c.n.asked.keep(strings.Join(c.Argv[1:], " "), heat, text)
	}
	c.print(text)
	return status
}

// queried is what nvidia-smi printed last, and of which GPUs: a GPU under load for
// long says the same again and again.
type queried struct {
	mu   sync.Mutex // guards what follows
	args string
	heat []GPUHeat
	text string
	on   []GPUHeat // those on the bus when list was made
	list []gpu
}

// listed are the GPUs that are on the bus.
func (n *node) listed(heat []GPUHeat) []gpu {
	if n.cfg.Scales.Changed() { // of which one may be another now
		return n.gpus()
	}
	return n.asked.listed(heat, n.gpus)
}

// listed is what find finds, asked again when other GPUs are on the bus.
func (q *queried) listed(heat []GPUHeat, find func() []gpu) []gpu {
	q.mu.Lock()
	defer q.mu.Unlock()
	same := func(a, b GPUHeat) bool { return a.Address == b.Address }
	if heat == nil || q.list == nil || !slices.EqualFunc(q.on, heat, same) {
		q.on, q.list = heat, find()
	}
	return q.list
}

func (q *queried) again(args string, heat []GPUHeat) (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.text, heat != nil && q.args == args && slices.Equal(q.heat, heat)
}

func (q *queried) keep(args string, heat []GPUHeat, text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.args, q.heat, q.text = args, heat, text
}

// queryGPUs is nvidia-smi --query-gpu.
func queryGPUs(list []gpu, heat []GPUHeat, names, format string) (string, int) {
	var b strings.Builder
	fields := strings.Split(names, ",")
	if !strings.Contains(format, "noheader") {
		b.WriteString(strings.Join(columnHeadings(fields), ", ") + "\n")
	}
	for _, g := range list {
		var row []string
		for _, f := range fields {
			v, ok := g.value(strings.TrimSpace(f), !strings.Contains(format, "nounits"), heatAt(heat, g.address()))
			if !ok {
				return fmt.Sprintf("Field \"%s\" is not a valid field to query.\n\n", f), 2
			}
			row = append(row, v)
		}
		b.WriteString(strings.Join(row, ", ") + "\n")
	}
	return b.String(), 0
}

// unitsOf are what nvidia-smi writes behind numbers and into headings.
var unitsOf = map[string]string{
	"memory.total": "MiB", "memory.used": "MiB", "memory.free": "MiB", "power.draw": "W", "power.limit": "W", "utilization.gpu": "%",
	"clocks.sm": "MHz", "clocks.mem": "MHz", "clocks.max.sm": "MHz",
}

func columnHeadings(fields []string) []string {
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

func (g gpu) value(field string, withUnit bool, h GPUHeat) (string, bool) {
	if v, ok := g.warm(field, h); ok {
		if u := unitsOf[field]; u != "" && withUnit {
			v += " " + u
		}
		return v, true
	}
	if field == "pci.bus_id" { // the one of these that a burn-in asks for at each look
		return g.bus, true
	}
	v := map[string]string{
		"index": itoa(g.index), "name": g.name, "gpu_name": g.name, "uuid": g.uuid, "gpu_uuid": g.uuid, "serial": g.serial, "gpu_serial": g.serial, "pci.bus_id": g.bus, "gpu_bus_id": g.bus,
		"driver_version": driverVersion, "vbios_version": "96.00.89.00.01", "memory.total": fmt.Sprint(g.memory), "memory.used": "1", "memory.free": fmt.Sprint(g.memory - 1),
		"power.limit": "700.00", "utilization.gpu": "0", "clocks.mem": "2619", "clocks.max.sm": "1980", "pstate": "P0",
		"ecc.mode.current": "Enabled", "ecc.errors.uncorrected.volatile.total": "0", "ecc.errors.corrected.volatile.total": "0", "persistence_mode": "Enabled",
		"pcie.link.gen.current": "5", "pcie.link.width.current": "16", "mig.mode.current": "Disabled", "count": "0",
	}[field]
	if u := unitsOf[field]; u != "" && withUnit {
		v += " " + u
	}
	return v, v != ""
}

// warm is what a GPU says of its heat, its power and its clocks.
func (g gpu) warm(field string, h GPUHeat) (string, bool) {
	active := func(on bool) (string, bool) {
		if on {
			return "Active", true
		}
		return "Not Active", true
	}
	switch reason, ok := strings.CutPrefix(field, "clocks_event_reasons."); {
	case !ok:
	case reason == "hw_slowdown", reason == "hw_thermal_slowdown":
		return active(h.Slowed)
	case reason == "hw_power_brake_slowdown", reason == "sw_thermal_slowdown":
		return active(false)
	case reason == "sw_power_cap":
		return active(h.Capped)
	}
	switch field {
	case "temperature.gpu":
		return fmt.Sprint(h.Core), true
	case "temperature.memory":
		return fmt.Sprint(h.Memory), true
	case "temperature.gpu.tlimit":
		return fmt.Sprint(h.Limit + slowdownLimit - h.Core), true
	case "power.draw":
		return fmt.Sprintf("%.2f", h.Power), true
	case "clocks.sm":
		return fmt.Sprint(h.Clock), true
	}
	return "", false
}

// slowdownLimit is where a GPU slows down, in degrees of the distance that it
// shows: two beyond the end of what it may always have (H100, nvidia-smi -q).
const slowdownLimit = -2
