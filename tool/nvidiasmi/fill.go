// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// fillLog makes a Log of a tree. isGPU says which branches below the root are GPUs
// and gives their PCI addresses.
func fillLog(r reader, isGPU func(*branch) (string, bool)) Log {
	log := Log{
		Time: r.text("timestamp"), Driver: r.version("kmd_version", "driver_version"), CUDA: r.version("cuda_umd_version", "cuda_version", "cuda_uma_driver_version"),
		Attached: r.int("attached_gpus", "attached_vgpus"),
	}
	var gpus []*branch
	for _, s := range r.sub {
		id, ok := isGPU(s)
		if !ok {
			continue
		}
		gpus = append(gpus, s)
		g := fillGPU(reader{s, r.problems})
		g.Index = len(log.GPUs)
		if g.BusID == "" {
			g.BusID = BusID(id)
		} else if id != "" && g.BusID != BusID(id) {
			r.problems.Add(tool.Inconsistent, s.line, "GPU %s says that it is at %s", BusID(id), g.BusID)
		}
		findFaults(s, g.BusID, r.problems)
		findRenamed(s, g, r.problems)
		log.GPUs = append(log.GPUs, g)
	}
	checkLog(log, r)
	checkTail(gpus, r.problems)
	return log
}

// version is a version without what drivers from 610 on write behind it where it
// has another name now: "610.57 [Deprecated; ...]".
func (r reader) version(paths ...string) string {
	v, _, _ := strings.Cut(r.text(paths...), " [")
	return v
}

// checkTail notes that the last GPU lacks the section that ends the first one.
func checkTail(gpus []*branch, p *tool.Problems) {
	if len(gpus) == 0 {
		return
	}
	first, last := gpus[0], gpus[len(gpus)-1]
	switch {
	case len(last.sub) == 0:
		p.Add(tool.Truncated, last.line, "nothing is said of the last GPU")
	case len(first.sub) > 0 && last.first(first.sub[len(first.sub)-1].name) == nil && valueAt(last, "product_name") == valueAt(first, "product_name"):
		p.Add(tool.Truncated, last.line, "the last GPU ends with %s, the first one with %s", last.sub[len(last.sub)-1].name, first.sub[len(first.sub)-1].name)
	}
}

func valueAt(b *branch, path string) string {
	if at := b.at(path); at != nil {
		return at.value
	}
	return ""
}

// checkLog notes what contradicts itself in a whole log.
func checkLog(log Log, r reader) {
	if log.Driver == "" {
		r.problems.Add(tool.Missing, 0, "the driver version")
	}
	if len(log.GPUs) == 0 {
		r.problems.Add(tool.Missing, 0, "no GPU in it")
	}
	if a, n := log.Attached, int64(len(log.GPUs)); a != nil && *a > n {
		r.problems.Add(tool.Missing, r.at("attached_gpus", "attached_vgpus").line, "%d GPUs are attached and %d described: the others were not asked for, or are cut off", *a, n)
	} else if a != nil && *a < n {
		r.problems.Add(tool.Inconsistent, r.at("attached_gpus", "attached_vgpus").line, "%d GPUs are attached and %d described", *a, n)
	}
	buses, uuids := map[string]bool{}, map[string]bool{}
	for _, g := range log.GPUs {
		if g.BusID != "" && buses[g.BusID] {
			r.problems.Add(tool.Inconsistent, 0, "two GPUs at %s", g.BusID)
		}
		if g.UUID != "" && uuids[g.UUID] {
			r.problems.Add(tool.Inconsistent, 0, "two GPUs have UUID %s", g.UUID)
		}
		buses[g.BusID], uuids[g.UUID] = true, true
	}
}

// findFaults notes each kind of failure that stands where values should.
func findFaults(gpu *branch, bus string, p *tool.Problems) {
	first := map[string]*branch{}
	count := map[string]int{}
	var order []string
	gpu.leaves(func(b *branch) {
		words := trimCell(b.value)
		key := strings.ToLower(words)
		if !broken[key] {
			return
		}
		if first[key] == nil {
			first[key] = b
			order = append(order, key)
		}
		count[key]++
	})
	for _, key := range order {
		p.Add(tool.Failed, first[key].line, "GPU %s: %s, in %d values from %s on", bus, trimCell(first[key].value), count[key], first[key].name)
	}
}

// fillGPU reads one GPU. Of two paths the first is that of the XML, the second
// that of the text; further ones are those of older drivers.
func fillGPU(r reader) GPU {
	g := GPU{
		BusID: BusID(r.text("pci/pci_bus_id", "pci/bus_id")),
		Name:  r.text("product_name"), Architecture: r.text("product_architecture"),
		UUID: r.text("uuid", "gpu_uuid"), Serial: r.text("serial", "serial_number"), Minor: r.int("minor_number"),
		BoardPartNumber: r.text("board_part_number"), PartNumber: r.text("gpu_part_number"),
		ModuleID: r.int("gpu_module_id", "module_id", "platforminfo/module_id", "platform_info/module_id"),
		VBIOS:    r.text("vbios_version"), InfoROM: r.text("inforom_version/img_version", "inforom_version/image_version"),
		GSPFirmware: r.text("gsp_firmware_version"), Persistence: r.bool("persistence_mode"), ComputeMode: r.text("compute_mode"),
		MIG:   Mode{r.bool("mig_mode/current_mig", "mig_mode/current"), r.bool("mig_mode/pending_mig", "mig_mode/pending")},
		C2C:   r.bool("c2c_mode", "gpu_c2c_mode"),
		State: r.text("performance_state"),
		ECC:   fillECC(r), RetiredPages: fillPages(r), RemappedRows: fillRows(r),
		RecoveryAction: r.text("gpu_recovery_action"),
		ResetRequired:  r.bool("gpu_reset_status/reset_required"),
		DrainAndReset:  r.bool("gpu_reset_status/drain_and_reset_recommended"),
		PCIe:           fillPCIe(r), Power: fillPower(r, "gpu_power_readings", "power_readings"), ModulePower: fillPower(r, "module_power_readings"),
		Clocks:    Clocks{r.float("clocks/sm_clock", "clocks/sm"), r.float("clocks/mem_clock", "clocks/memory")},
		MaxClocks: Clocks{r.float("max_clocks/sm_clock", "max_clocks/sm"), r.float("max_clocks/mem_clock", "max_clocks/memory")},
		Temperature: Temperature{r.float("temperature/gpu_temp", "temperature/gpu_current_temp"),
			r.float("temperature/memory_temp", "temperature/memory_current_temp"),
			r.float("temperature/gpu_temp_tlimit", "temperature/gpu_t_limit_temp", "temperature/gpu_current_t_limit_temp"), // "Current" from driver 610 on
			r.float("temperature/gpu_temp_slow_threshold", "temperature/gpu_slowdown_temp"),
			r.float("temperature/gpu_temp_slow_tlimit_threshold", "temperature/gpu_slowdown_t_limit_temp", "temperature/gpu_slowdown_t_limit_temp_specification")},
		Memory:      fillFB(r),
		Utilization: r.float("utilization/gpu_util", "utilization/gpu"),
		Fabric:      fillFabric(r), Platform: fillPlatform(r), Processes: fillProcesses(r), MIGDevices: fillMIG(r),
	}
	g.Reasons, g.ReasonTime = fillReasons(r)
	return g
}

func fillPCIe(r reader) PCIe {
	const x, t = "pci/pci_gpu_link_info/", "pci/gpu_link_info/"
	return PCIe{
		Generation:     r.int(x+"pcie_gen/current_link_gen", t+"pcie_generation/current"),
		MaxGeneration:  r.int(x+"pcie_gen/max_device_link_gen", t+"pcie_generation/device_max", x+"pcie_gen/max_link_gen", t+"pcie_generation/max"),
		HostGeneration: r.int(x+"pcie_gen/max_host_link_gen", t+"pcie_generation/host_max"),
		Width:          r.int(x+"link_widths/current_link_width", t+"link_width/current"),
		MaxWidth:       r.int(x+"link_widths/max_link_width", t+"link_width/max"),
		Replays:        r.int("pci/replay_counter", "pci/replays_since_reset"),
		DeviceID:       strings.TrimPrefix(r.text("pci/pci_device_id", "pci/device_id"), "0x"),
	}
}

// ceilings are the sections within the power readings that limits stand in: none, or
// from driver 610 on, in the text, one of their own beside that of the base power.
var ceilings = []string{"", "gpu_ceiling_power_limit/", "ceiling_power_limit/", "module_ceiling_power_limit/"}

func fillPower(r reader, sections ...string) Power {
	all := func(names ...string) []string {
		var paths []string
		for _, n := range names {
			for _, s := range sections {
				for _, c := range ceilings {
					paths = append(paths, s+"/"+c+n)
				}
			}
		}
		return paths
	}
	return Power{
		Draw:    r.float(all("instant_power_draw", "instantaneous_power_draw", "power_draw", "average_power_draw")...),
		Limit:   r.float(all("current_power_limit", "enforced_power_limit", "power_limit")...),
		Default: r.float(all("default_power_limit")...),
		Min:     r.float(all("min_power_limit")...), Max: r.float(all("max_power_limit")...),
	}
}

// fillFB reads the frame buffer's use. Newer drivers say of a MIG device that it is
// shared among the devices of one GPU instance.
func fillFB(r reader) Memory {
	const plain, shared = "fb_memory_usage/", "shared_fb_memory_usage/"
	return Memory{r.float(plain+"total", shared+"total"), r.float(plain+"used", shared+"used"), r.float(plain+"free", shared+"free")}
}

// fillMIG reads the MIG devices of a GPU: elements below mig_devices in the XML,
// sections "MIG Device" of the GPU in the text.
func fillMIG(r reader) (list []MIGDevice) {
	from := r.sub
	if at := r.at("mig_devices"); at != nil {
		from = append(slices.Clone(at.sub), from...)
	}
	for _, s := range from {
		if s.name != "mig_device" {
			continue
		}
		in := reader{s, r.problems}
		d := MIGDevice{Index: len(list), UUID: in.text("uuid", "mig_uuid"), Instance: in.int("gpu_instance_id"), Compute: in.int("compute_instance_id"),
			SMs: in.int("device_attributes/shared/multiprocessor_count")}
		if n := in.int("index"); n != nil {
			d.Index = int(*n)
		}
		fb := fillFB(in)
		d.Used, d.Total = fb.Used, fb.Total
		list = append(list, d)
	}
	return list
}

// otherLimit are temperatures that are not read.
var otherLimit = lazyregexp.New("shutdown|max_operating|memory")

// findRenamed notes a section whose values stand under names that are not known here: a
// driver newer than this reader. Without it such values would be absent, and nobody
// would know that they were printed.
func findRenamed(s *branch, g GPU, p *tool.Problems) {
	for _, x := range []struct {
		section, part, what string
		known               bool
	}{
		{"gpu_power_readings", "power_limit", "power limit", g.Power.Limit != nil || g.Power.Max != nil || g.Power.Min != nil || g.Power.Default != nil},
		{"gpu_power_readings", "power_draw", "power draw", g.Power.Draw != nil},
		{"temperature", "t_limit", "T.Limit temperature", g.Temperature.Limit != nil || g.Temperature.SlowdownLimit != nil},
		{"temperature", "gpu_slowdown", "slowdown temperature", g.Temperature.Slowdown != nil || g.Temperature.SlowdownLimit != nil},
	} {
		at := s.at(x.section)
		if x.known || at == nil {
			continue
		}
		eachBranch(at, func(b *branch) {
			if v, err := parseNumber(b.value); !x.known && strings.Contains(b.name, x.part) && !otherLimit.MatchString(b.name) && err == nil && v != nil {
				x.known = true // said once
				p.Add(tool.Missing, b.line, "GPU %s: a %s is printed as %q, a name that this version does not know", g.BusID, x.what, b.name)
			}
		})
	}
}

func fillFabric(r reader) Fabric {
	f := Fabric{State: r.text("fabric/state"), Status: r.text("fabric/status"), Cluster: r.text("fabric/clusteruuid"), Clique: r.int("fabric/cliqueid")}
	health := r.at("fabric/health")
	if health == nil {
		return f
	}
	for _, h := range health.sub {
		if v, ok := readValue(h.value); ok {
			if f.Health == nil {
				f.Health = map[string]string{}
			}
			f.Health[h.name] = v
		}
	}
	return f
}

func fillPlatform(r reader) Platform {
	const x, t = "platforminfo/", "platform_info/"
	return Platform{
		Chassis: r.text(x+"chassis_serial_number", t+"chassis_serial_number"), Slot: r.int(x+"slot_number", t+"slot_number"),
		Tray: r.int(x+"tray_index", t+"tray_index"), Host: r.int(x+"host_id", t+"host_id"),
		Peer: r.text(x+"peer_type", t+"peer_type"), ModuleID: r.int(x+"module_id", t+"module_id"),
		GUID: r.text(x+"gpu_fabric_guid", t+"gpu_fabric_guid"),
	}
}

// reasonNames are names of the text whose element is called otherwise.
var reasonNames = map[string]string{
	"idle": "gpu_idle", "display_clock_setting": "display_clocks_setting", "unknown": "", "active": "",
	"sw_power_capping": "sw_power_cap", "sw_therm_slowdown": "sw_thermal_slowdown", "hw_therm_slowdown": "hw_thermal_slowdown",
	"hw_power_brake": "hw_power_brake_slowdown", "hw_power_braking": "hw_power_brake_slowdown",
}

// fillReasons reads why the clocks are not higher, and for how long that was so.
func fillReasons(r reader) (map[string]bool, map[string]float64) {
	name := func(s string) string {
		for _, prefix := range []string{"clocks_event_reasons_counters_", "clocks_event_reason_", "clocks_throttle_reason_"} {
			s = strings.TrimPrefix(s, prefix)
		}
		if other, ok := reasonNames[s]; ok {
			return other
		}
		return s
	}
	var now map[string]bool
	var times map[string]float64
	eachBranch(r.at("clocks_event_reasons", "clocks_throttle_reasons"), func(b *branch) {
		if v, err := parseYes(b.value); err == nil && v != nil && name(b.name) != "" {
			now = putValue(now, name(b.name), *v)
		}
	})
	eachBranch(r.at("clocks_event_reasons_counters"), func(b *branch) {
		if v, err := parseNumber(b.value); err == nil && v != nil && name(b.name) != "" {
			times = putValue(times, name(b.name), *v)
		}
	})
	return now, times
}

// eachBranch calls f with every branch below, sections with a value of their own too.
func eachBranch(b *branch, f func(*branch)) {
	if b == nil {
		return
	}
	for _, s := range b.sub {
		f(s)
		eachBranch(s, f)
	}
}

func putValue[V any](m map[string]V, k string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[k] = v
	return m
}

func fillProcesses(r reader) []Process {
	at := r.at("processes")
	if at == nil {
		return nil
	}
	var list []Process
	for _, s := range at.sub {
		in := reader{s, r.problems}
		pid := in.int("pid")
		if s.name == "process_id" {
			v, _ := parseNumber(s.value)
			if v != nil {
				n := int64(*v)
				pid = &n
			}
		}
		if pid == nil {
			continue
		}
		list = append(list, Process{PID: *pid, Type: in.text("type"), Name: in.text("process_name", "name"), Memory: in.float("used_memory", "used_gpu_memory")})
	}
	return slices.Clip(list)
}
