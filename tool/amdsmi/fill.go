// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// mostGPUs is how many GPUs or partitions of them a node may have; today there
// are at most 64.
const mostGPUs = 512

// add takes over what a tree says of a GPU.
func (r *Report) add(b *branch, p *tool.Problems) {
	n := b.int("gpu")
	if n == nil || *n < 0 || *n >= mostGPUs {
		p.Add(tool.Inconsistent, b.line, "a GPU without a number")
		return
	}
	g := r.gpu(int(*n))
	g.identify(b, p)
	if b.at("asic", "bus", "vbios", "limit", "board", "driver", "ras", "vram", "partition", "market_name", "max_pcie_width",
		"max_power", "ppt0_max_power_limit") != nil {
		g.Static = inheritValue(fillStatic(b), g.Static)
	}
	if b.at("ecc", "ecc_blocks", "pcie", "power", "temperature", "mem_usage", "usage", "xgmi_err", "clock", "throttle", "fan", "total_uncorrectable_count",
		"hotspot", "gfx_activity", "used_vram", "replay_count") != nil || b.at("socket_power") != nil && !b.limits() {
		g.Metric = inheritValue(fillMetric(b), g.Metric)
	}
	if b.text("ras/bad_page_threshold_exceeded", "bad_page_threshold_exceeded") == "True" {
		p.Add(tool.Failed, b.line, "GPU %d has more bad pages than its threshold", g.GPU)
	}
	if b.at("retired", "pending", "un_res") != nil {
		g.BadPages = &BadPages{readPages(b.at("retired")), readPages(b.at("pending")), readPages(b.at("un_res"))}
	}
	g.firmware(b)
	g.processes(b)
	g.xgmi(b)
	r.links(b, g)
}

// identify takes over the address of a GPU, its UUID and its partition.
func (g *GPU) identify(b *branch, p *tool.Problems) {
	if bdf := strings.ToLower(b.text("bdf", "bus/bdf")); g.BDF == "" {
		g.BDF = bdf
	} else if bdf != "" && bdf != g.BDF {
		p.Add(tool.Inconsistent, b.line, "GPU %d is at %s and at %s", g.GPU, g.BDF, bdf)
	}
	if g.UUID == "" {
		g.UUID = b.text("uuid")
	}
	if part := b.int("partition_id", "partition/partition_id"); part != nil && *part > 0 {
		g.Partition = part
	}
}

// processes reads the list of process, which is below process_list in JSON and one
// section each in text.
func (g *GPU) processes(b *branch) {
	for _, s := range b.sub {
		switch pid := s.int("pid"); {
		case s.name == "process_list":
			g.processes(s)
		case s.name == "process_info" && pid != nil:
			g.Processes = append(g.Processes, Process{PID: *pid, Name: s.text("name"), VRAM: s.text("memory_usage/vram_mem", "mem_usage")})
		}
	}
}

// gpu returns the GPU of a number, made if it is new.
func (r *Report) gpu(n int) *GPU {
	for i := range r.GPUs {
		if r.GPUs[i].GPU == n {
			return &r.GPUs[i]
		}
	}
	r.GPUs = append(r.GPUs, GPU{GPU: n})
	return &r.GPUs[len(r.GPUs)-1]
}

// limits reports whether a row of CSV is of static: there, socket_power is the
// limit and not what is drawn.
func (b *branch) limits() bool { return b.at("max_power", "min_power") != nil }

// inheritValue fills what is not said now with what another command said before.
func inheritValue[T any](now, before *T) *T {
	if before == nil {
		return now
	}
	v, old := reflect.ValueOf(now).Elem(), reflect.ValueOf(before).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			v.Field(i).Set(old.Field(i))
		}
	}
	return now
}

// firstText returns the first of two texts that is not empty.
func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Of two paths, the second is that of CSV.
func fillStatic(b *branch) *Static {
	s := &Static{
		Name: b.text("asic/market_name", "market_name"), DeviceID: b.text("asic/device_id", "device_id"),
		Serial: b.text("asic/asic_serial", "asic_serial"), OAM: b.int("asic/oam_id", "oam_id"),
		ProductSerial: b.text("board/product_serial", "product_serial"), ProductName: b.text("board/product_name", "product_name"),
		Model: b.text("board/model_number", "model_number"), MaxWidth: b.int("bus/max_pcie_width", "max_pcie_width"),
		MaxSpeed: b.float("bus/max_pcie_speed", "max_pcie_speed"), Slot: b.text("bus/slot_type", "slot_type"),
		VBIOS:  firstText(b.text("vbios/version", "ifwi/version"), b.text("vbios/part_number", "ifwi/part_number")),
		Driver: b.text("driver/version", "driver/driver_version", "driver_version"), MaxPower: b.float("limit/max_power", "limit/ppt0/max_power_limit", "max_power", "ppt0_max_power_limit"),
		PowerLimit: b.float("limit/socket_power", "limit/ppt0/socket_power_limit", "limit/current_power", "ppt0_socket_power_limit"),
		VRAM:       b.float("vram/size", "vram/vram_size_mb"), NUMA: b.int("numa/node"),
		Compute: b.text("partition/compute_partition", "partition/accelerator_partition", "compute_partition"),
		Memory:  b.text("partition/memory_partition", "memory_partition"),
	}
	if b.limits() {
		s.PowerLimit = cmp.Or(s.PowerLimit, b.float("socket_power", "current_power"))
	}
	if blocks := b.at("ras/ecc_block_state"); blocks != nil {
		for _, e := range blocks.sub {
			if v, ok := readValue(e.value); ok {
				if s.RAS == nil {
					s.RAS = map[string]string{}
				}
				s.RAS[strings.ToUpper(e.name)] = v
			}
		}
	}
	return s
}

func fillMetric(b *branch) *Metric {
	m := &Metric{
		Power:   b.float("power/socket_power", "power/average_socket_power", "power/current_socket_power", "socket_power"),
		Hotspot: b.float("temperature/hotspot", "hotspot"), MemoryTemp: b.float("temperature/mem", "temperature/vram", "mem"),
		Throttled: b.text("power/throttle_status", "throttle_status"),
		Width:     b.int("pcie/width", "pcie/current_lanes", "width"), Speed: b.float("pcie/speed", "pcie/current_speed"),
		Replays:     b.int("pcie/replay_count", "replay_count"),
		NAKReceived: b.int("pcie/nak_received_count", "nak_received_count"), NAKSent: b.int("pcie/nak_sent_count", "nak_sent_count"),
		ECC: ECC{b.int("ecc/total_correctable_count", "ecc/total_correctable", "total_correctable_count"),
			b.int("ecc/total_uncorrectable_count", "ecc/total_uncorrectable", "total_uncorrectable_count"),
			b.int("ecc/total_deferred_count", "total_deferred_count")},
		XGMIErrors: b.text("xgmi_err"), VRAMTotal: b.float("mem_usage/total_vram", "total_vram"), VRAMUsed: b.float("mem_usage/used_vram", "used_vram"),
		GFX: b.float("usage/gfx_activity", "gfx_activity"),
	}
	if m.Width != nil && m.Speed == nil { // in CSV the fan has a speed, too
		m.Speed = b.float("speed")
	}
	if b.limits() {
		m.Power = b.float("power/socket_power")
	}
	if at := b.at("throttle"); at != nil {
		m.violations(at)
	}
	blocks := b.at("ecc_blocks")
	if blocks == nil {
		return m
	}
	for _, e := range blocks.sub {
		if m.Blocks == nil {
			m.Blocks = map[string]ECC{}
		}
		m.Blocks[strings.ToUpper(e.name)] = ECC{e.int("correctable_count", "correctable"), e.int("uncorrectable_count", "uncorrectable"), e.int("deferred_count")}
	}
	return m
}

// accumulated is in how many ticks something held the clocks down.
var accumulated = lazyregexp.New(`^(prochot|ppt|socket_thermal|vr_thermal|hbm_thermal)_accumulated$`)

// violated is how long something held the clocks down of late, in percent: "0 %".
var violated = lazyregexp.New(`^(\w+)_violation_activity$`)

// violations reads the section THROTTLE of metric.
func (m *Metric) violations(b *branch) {
	m.Ticks = b.int("accumulation_counter")
	for _, s := range b.sub {
		if name := accumulated.FindStringSubmatch(s.name); name != nil {
			if n := b.int(s.name); n != nil {
				if m.Accumulated == nil {
					m.Accumulated = map[string]int64{}
				}
				m.Accumulated[name[1]] = *n
			}
		}
		if name := violated.FindStringSubmatch(s.name); name != nil && len(s.sub) == 0 {
			m.violation(name[1], s.value)
		}
	}
}

func (m *Metric) violation(name, value string) {
	v, ok := parseNumber(value)
	if !ok {
		return
	}
	if m.Violations == nil {
		m.Violations = map[string]float64{}
	}
	m.Violations[name] = v
}

// readPages reads a list of pages. In text their lines follow one another without a
// mark, so each address begins a page.
func readPages(b *branch) []Page {
	if b == nil {
		return nil
	}
	if len(b.sub) == 0 {
		if strings.HasPrefix(strings.ToLower(b.value), "no bad pages") {
			return []Page{}
		}
		return nil
	}
	list := []Page{}
	b.leaves(func(l *branch) {
		if l.name == "page_address" {
			list = append(list, Page{Address: l.value})
		}
		if len(list) == 0 {
			return
		}
		switch last := &list[len(list)-1]; l.name {
		case "page_size":
			last.Size = l.value
		case "status":
			last.Status = l.value
		}
	})
	return list
}

// firmware reads the versions of parts: a list of pairs, or a row of CSV each.
func (g *GPU) firmware(b *branch) {
	list := b.at("fw_list")
	if list == nil {
		list = b
	}
	id := ""
	list.leaves(func(l *branch) {
		switch l.name {
		case "fw_id", "fw_name":
			id = l.value
		case "fw_version":
			if v, ok := readValue(l.value); ok && id != "" {
				if g.Firmware == nil {
					g.Firmware = map[string]string{}
				}
				g.Firmware[id] = v
			}
		}
	})
}

// xgmi reads xgmi of JSON.
func (g *GPU) xgmi(b *branch) {
	if b.at("link_metrics", "link_status") == nil {
		return
	}
	if g.XGMI == nil {
		g.XGMI = &XGMI{}
	}
	if b.at("link_metrics") != nil {
		g.XGMI.BitRate, g.XGMI.MaxBandwidth = b.float("link_metrics/bit_rate"), b.float("link_metrics/max_bandwidth")
		if rate := g.XGMI.BitRate; rate != nil && *rate == noRate {
			g.XGMI.BitRate = nil
		}
		g.XGMI.Type = b.text("link_metrics/link_type")
	}
	if at := b.at("link_status"); at != nil && len(at.sub) == 0 {
		g.XGMI.Status = strings.Fields(at.value)
	}
}

// links reads the links of topology and of xgmi, JSON.
func (r *Report) links(b *branch, g *GPU) {
	r.oldLinks(b, g)
	list := b.at("links", "link_metrics/links")
	if list == nil {
		return
	}
	for _, l := range list.sub {
		to := l.int("gpu")
		if to == nil || int(*to) == g.GPU {
			continue
		}
		r.Links = append(r.Links, Link{
			From: g.GPU, To: int(*to), FromBDF: g.BDF, ToBDF: strings.ToLower(l.text("bdf")), Type: l.text("link_type"), Access: l.text("link_status"),
			Weight: l.int("weight"), Hops: l.int("num_hops"), Bandwidth: l.text("bandwidth"), Read: parseKilobytes(l.text("read")), Written: parseKilobytes(l.text("write")),
		})
	}
}

// oldLinks reads topology as ROCm 6.0 wrote it: of each GPU an object for every
// matrix, with a member "gpu_1" for GPU 1.
func (r *Report) oldLinks(b *branch, g *GPU) {
	matrix := func(name string, to *branch) string {
		if m := b.at(name); m != nil {
			return m.text(to.name)
		}
		return ""
	}
	first := b.at("link_accessibility", "link_type", "weight", "hops", "numa_bandwidth")
	if first == nil {
		return
	}
	for _, to := range first.sub {
		n, ok := parseNumber(strings.TrimPrefix(to.name, "gpu_"))
		if !ok || n < 0 || n >= mostGPUs || int(n) == g.GPU || !strings.HasPrefix(to.name, "gpu_") {
			continue
		}
		l := Link{From: g.GPU, To: int(n), FromBDF: g.BDF, Type: matrix("link_type", to), Access: matrix("link_accessibility", to), Bandwidth: matrix("numa_bandwidth", to)}
		if m := b.at("weight"); m != nil {
			l.Weight = m.int(to.name)
		}
		if m := b.at("hops"); m != nil {
			l.Hops = m.int(to.name)
		}
		r.Links = append(r.Links, l)
	}
}

// check notes what contradicts itself.
func (r *Report) check(p *tool.Problems) {
	if len(r.GPUs) == 0 && len(r.Links) == 0 && r.Versions == nil {
		p.Add(tool.Missing, 0, "no GPU in it")
	}
	at := map[string]GPU{}
	for _, g := range r.GPUs {
		// Parts of one GPU have its address, and in ROCm before 6.3 its UUID.
		if other, twice := at[g.BDF]; twice && g.BDF != "" && g.Partition == nil && (g.UUID == "" || g.UUID != other.UUID) {
			p.Add(tool.Inconsistent, 0, "GPU %d and GPU %d are both at %s", other.GPU, g.GPU, g.BDF)
		}
		at[g.BDF] = g
		if g.GPU >= len(r.GPUs) && len(r.GPUs) > 1 {
			p.Add(tool.Missing, 0, "there is GPU %d, and only %d GPUs are described", g.GPU, len(r.GPUs))
		}
		g.checkLinks(p)
	}
	for _, l := range r.Links {
		if l.Status == "D" {
			p.Add(tool.Failed, 0, "the xGMI link of GPU %d to GPU %d is down", l.From, l.To)
		}
	}
}

// checkLinks notes the xGMI links of a GPU that are down.
func (g *GPU) checkLinks(p *tool.Problems) {
	if g.XGMI == nil {
		return
	}
	for i, state := range g.XGMI.Status {
		if state == "D" {
			p.Add(tool.Failed, 0, "GPU %d: xGMI link %d is down", g.GPU, i)
		}
	}
}

// Summary is a line for each GPU.
func (r Report) Summary() []string {
	out := []string{fmt.Sprintf("%d GPUs, %d links", len(r.GPUs), len(r.Links))}
	if v := r.Versions; v != nil && v.ROCm != "" {
		out[0] += ", ROCm " + v.ROCm
	}
	for _, g := range r.GPUs {
		words := []string{strings.TrimSpace(fmt.Sprintf("GPU %d %s", g.GPU, g.BDF))}
		if s := g.Static; s != nil && s.Name != "" {
			words = append(words, s.Name)
		}
		if m := g.Metric; m != nil && m.ECC.Uncorrectable != nil {
			words = append(words, fmt.Sprintf("%d uncorrectable errors", *m.ECC.Uncorrectable))
		}
		if p := g.BadPages; p != nil && p.Retired != nil {
			words = append(words, fmt.Sprintf("%d bad pages", len(p.Retired)))
		}
		if len(g.Firmware) > 0 {
			words = append(words, fmt.Sprintf("%d firmware parts", len(g.Firmware)))
		}
		if x := g.XGMI; x != nil && len(x.Status) > 0 {
			words = append(words, "xGMI "+strings.Join(x.Status, ""))
		}
		out = append(out, strings.Join(words, ", "))
	}
	return out
}
