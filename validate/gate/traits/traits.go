// SPDX-License-Identifier: Apache-2.0

// Package traits finds what nodes of a role have in common, of what was read off one. It is pure.
package traits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Common returns what nodes of a role have in common, of what was read off one: what
// the agent says (items), and what the programs of its GPUs say. What is each
// node's own, such as serial numbers, is not among them.
func Common(node string, s look.Seen, items []wire.Item) []uniform.Trait {
	t := &traits{}
	t.bought(s)
	t.time(s)
	t.nvidia(s)
	t.amd(s)
	t.nvlinks(s)
	t.nics(items)
	t.disks(items)
	if h := s.Health; h.OpenGPU != nil || h.PeerMem { // the driver of NVIDIA runs
		t.own(uniform.PeerMem, "", map[bool]string{true: "loaded", false: "not loaded"}[h.PeerMem])
	}
	for _, i := range items {
		switch {
		case i.Kind == wire.ItemFirmware && i.Part == "BIOS":
			t.own(uniform.BIOS, "", i.Value)
		case i.Kind == wire.ItemFirmware && i.Part == "CPU":
			t.own(uniform.Microcode, "", i.Value)
		case i.Kind == wire.ItemDrivers && isNIC(i.Part):
			t.own(uniform.NICDriver, i.Part, i.Value)
		case i.Kind == wire.ItemKernel && i.Name == "release":
			t.own(uniform.Kernel, "", i.Value)
		case i.Kind == wire.ItemKernel && i.Name == "arguments":
			t.own(uniform.Arguments, "", commonArguments(node, i.Value))
		}
	}
	return t.list()
}

// isNIC reports whether a module is that of a NIC.
func isNIC(module string) bool {
	return slices.Contains([]string{"mlx5_core", "bnxt_en", "ice"}, module)
}

// traits collects values part by part.
type traits struct {
	order []uniform.About
	parts map[uniform.About]map[string][]string // parts by value; "" for the node itself
}

// add notes the value of one part. What a program does not say is left out.
func (t *traits) add(key, of, part, value string) {
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	k := uniform.About{Key: key, Of: of}
	if t.parts == nil {
		t.parts = map[uniform.About]map[string][]string{}
	}
	if t.parts[k] == nil {
		t.parts[k] = map[string][]string{}
		t.order = append(t.order, k)
	}
	t.parts[k][value] = append(t.parts[k][value], part)
}

// time is whether the clock follows another. Servers that do not answer are told by a gate.
func (t *traits) time(s look.Seen) {
	switch {
	case s.Time == nil || s.Time.Servers > 0 && s.Time.Answering == 0:
	case s.Time.Synced:
		t.own(uniform.TimeSource, "", "a time server")
	default:
		t.own(uniform.TimeSource, "", "none")
	}
}

func (t *traits) own(key, of, value string) { t.add(key, of, "", value) }

// list names parts only where they tell one from another: a node has many that
// are alike.
func (t *traits) list() (all []uniform.Trait) {
	for _, k := range t.order {
		values := t.parts[k]
		for _, v := range slices.Sorted(maps.Keys(values)) {
			x := uniform.Trait{Key: k.Key, Of: k.Of, Value: v, Count: len(values[v])}
			if p := values[v]; p[0] != "" && (len(values) > 1 || len(p) == 1) {
				x.Parts = p
			}
			all = append(all, x)
		}
	}
	return all
}

func (t *traits) nvidia(s look.Seen) {
	if s.NVIDIA == nil {
		return
	}
	t.own(uniform.GPUDriver, "", s.NVIDIA.Driver)
	for _, g := range s.NVIDIA.GPUs {
		part := judge.GPUName(g.Index, g.BusID, g.Serial)
		for _, v := range []struct{ key, value string }{
			{uniform.GPUModel, g.Name}, {uniform.GPUMemory, formatAmount(g.Memory.Total, "MiB")}, {uniform.GPUVBIOS, g.VBIOS}, {uniform.GPUPart, cmp.Or(g.PartNumber, g.BoardPartNumber)}, {uniform.GPUGSP, g.GSPFirmware}, {uniform.GPUInfoROM, g.InfoROM}, {uniform.GPUMIG, onOff(g.MIG.Current)}, {uniform.GPUECC, onOff(g.ECC.Current)},
			{uniform.GPUCompute, g.ComputeMode}, {uniform.GPUPersistence, onOff(g.Persistence)},
			{uniform.GPUClock, formatAmount(g.MaxClocks.SM, "MHz")}, {uniform.GPUPower, formatAmount(g.Power.Limit, "W")},
		} {
			t.add(v.key, "", part, v.value)
		}
	}
}

// nvlinks are the rates of each GPU's NVLinks, and how many MIG devices it is divided into.
func (t *traits) nvlinks(s look.Seen) {
	if s.Links == nil {
		return
	}
	for _, g := range s.Links.GPUs {
		part := fmt.Sprintf("GPU %d", g.Index)
		t.add(uniform.GPUInstances, "", part, strconv.Itoa(g.MIGDevices))
		var rates []string
		for _, l := range g.Links {
			if rate := formatAmount(l.Rate, "GB/s"); rate != "" && !slices.Contains(rates, rate) {
				rates = append(rates, rate)
			}
		}
		slices.Sort(rates)
		t.add(uniform.NVLinkRate, "", part, strings.Join(rates, ", "))
	}
}

func (t *traits) amd(s look.Seen) {
	if s.AMD == nil {
		return
	}
	for _, l := range s.AMD.Links {
		t.add(uniform.XGMI, "", fmt.Sprintf("link of GPU at %s to %s", l.FromBDF, l.ToBDF), strings.Trim(l.Type+", "+l.Access, ", "))
	}
	for _, g := range s.AMD.GPUs {
		if g.Static == nil {
			continue
		}
		part := judge.GPUName(g.GPU, g.BDF, g.Static.ProductSerial)
		t.add(uniform.GPUModel, "", part, cmp.Or(g.Static.ProductName, g.Static.Name, g.Static.Model))
		t.add(uniform.GPUMemory, "", part, formatAmount(g.Static.VRAM, "MB"))
		t.add(uniform.GPUPart, "", part, g.Static.Model)
		t.add(uniform.GPUVBIOS, "", part, g.Static.VBIOS)
		for _, block := range slices.Sorted(maps.Keys(g.Static.RAS)) {
			t.add(uniform.GPURAS, block, part, g.Static.RAS[block])
		}
		t.add(uniform.GPUDriver, "", part, g.Static.Driver)
		t.add(uniform.GPUPower, "", part, formatAmount(g.Static.PowerLimit, "W"))
		t.add(uniform.GPUPartition, "", part, strings.Trim(g.Static.Compute+" "+g.Static.Memory, " "))
	}
}

func onOff(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "on"
	}
	return "off"
}

func formatAmount(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64) + " " + unit
}

// nics are the RDMA NICs: how many of each kind, and the firmware of each, by its
// PSID where it has one. NICs of one model and several makers differ in it.
func (t *traits) nics(items []wire.Item) {
	model, count := map[string]string{}, map[string]int{}
	for _, i := range items {
		if i.Kind == wire.ItemHardware && i.Name == "HCA" && strings.Contains(i.Part, ":") {
			model[i.Part] = i.Value
			count[i.Value]++
		}
	}
	var all []string
	for _, m := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%d x %s", count[m], m))
	}
	t.own(uniform.NICs, "", strings.Join(all, ", "))
	for _, i := range items {
		if i.Kind == wire.ItemFirmware && i.Name == "HCA" && model[i.Part] != "" {
			t.add(uniform.NICFirmware, model[i.Part], "NIC at "+i.Part, i.Value)
		}
	}
}

// disks are those of the system and the data, their firmware by model.
func (t *traits) disks(items []wire.Item) {
	model := map[string]string{}
	for _, i := range items {
		if i.Kind == wire.ItemHardware && i.Name == "model" && strings.HasPrefix(i.Part, "disk ") {
			f := strings.Fields(i.Value)
			model[i.Part] = strings.Join(f[:max(len(f)-1, 0)], " ") // the last is its size
		}
	}
	for _, i := range items {
		if i.Kind == wire.ItemFirmware && model[i.Part] != "" {
			t.add(uniform.DiskFirmware, model[i.Part], i.Part, i.Value)
		}
	}
}

// ownArguments begin kernel arguments that are each node's own, or say from where
// it was booted.
var ownArguments = []string{"root=", "resume=", "BOOT_IMAGE=", "BOOTIF=", "initrd=", "ip=", "hostname=", "systemd.hostname=", "systemd.machine_id=", "ironrail."}

// commonArguments returns those of a command line that nodes have in common. Their order
// says nothing, but for repeated ones, which keep theirs.
func commonArguments(node, line string) string {
	var kept []string
	for _, a := range strings.Fields(line) {
		own := strings.HasSuffix(a, "="+node) || slices.ContainsFunc(ownArguments, func(p string) bool { return strings.HasPrefix(a, p) })
		if !own {
			kept = append(kept, a)
		}
	}
	slices.SortStableFunc(kept, func(a, b string) int {
		x, _, _ := strings.Cut(a, "=")
		y, _, _ := strings.Cut(b, "=")
		return strings.Compare(x, y)
	})
	if len(kept) == 0 {
		return "none"
	}
	return strings.Join(kept, " ")
}
