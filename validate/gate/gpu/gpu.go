// SPDX-License-Identifier: Apache-2.0

// Package gpu holds GPUs, and the links between them, against what they must be.
package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// What to do next.
const (
	doReset    = "Reset the GPU or reboot the node, then apply again; if it comes again, have the GPU replaced."
	doReplace  = "Have the GPU, or the board that it sits on, replaced."
	doReseat   = "Power the node off, reseat the GPU's board and look at its power cables; then have it replaced."
	doNVLink   = "Reset all GPUs of the node; if it comes again, have the GPU's board looked at: its NVSwitches, its connectors and the GPU."
	doDriver   = "Look at the driver on the node: dmesg, and whether a reboot is waiting; then apply again."
	doMIG      = "Set it as it is to be (nvidia-smi -mig 0 or 1) and reset the GPU: nvidia-smi --gpu-reset."
	doGSP      = "Reboot the node, so that the driver loads its own firmware; if it comes again, compare the packages of the driver and of its firmware (/lib/firmware/nvidia)."
	doSettings = "Set it back and reset the GPU: nvidia-smi -e 1 turns ECC on, nvidia-smi -pl sets the power limit."
)

// CheckDriver holds the programs against an answer at all.
func CheckDriver(j *judge.Node) {
	for _, b := range j.Seen.Broken {
		part := "GPU driver"
		if b.Program == "journalctl" || b.Program == "dmesg" {
			part = "kernel log"
		}
		j.Fail(part, doDriver, b.Program+": "+b.Says, "%s does not answer as it must: %s", b.Program, b.Says)
	}
}

// CheckCount compares the inventory, the PCI bus and the driver: a GPU that has fallen
// off the bus is in one list only.
func CheckCount(j *judge.Node) {
	for _, vendor := range []string{"nvidia", "amd"} {
		want, _ := j.Declared(vendor)
		if want == 0 {
			continue
		}
		var bus []string
		for _, l := range j.Seen.Health.PCI {
			if judge.IsGPU(l.Class) && l.Vendor == judge.Vendors[vendor] {
				bus = append(bus, l.Address)
			}
		}
		if len(bus) < want {
			j.Fail("GPUs", doReseat, "on the PCI bus: "+strings.Join(bus, " "), "%d of %d are on the PCI bus", len(bus), want)
		}
		program, have := answeringProgram(j, vendor)
		if program == "" {
			continue
		}
		for _, at := range bus {
			if !slices.Contains(have, at) {
				j.Fail(j.Part(at), doReseat, program+" lists "+strings.Join(have, " "), "it is on the PCI bus, and %s does not list it", program)
			}
		}
	}
}

// answeringProgram lists the GPUs that the driver knows, and the program that says so; ""
// when none did.
func answeringProgram(j *judge.Node, vendor string) (program string, at []string) {
	switch {
	case vendor == "nvidia" && j.Seen.NVIDIA != nil:
		for _, g := range j.Seen.NVIDIA.GPUs {
			at = append(at, g.BusID)
		}
		return "nvidia-smi", at
	case vendor == "amd" && j.Seen.AMD != nil:
		for _, g := range j.Seen.AMD.GPUs {
			at = append(at, g.BDF)
		}
		return "amd-smi", at
	}
	return "", nil
}

// eachGPU calls f with every GPU of NVIDIA.
func eachGPU(j *judge.Node, f func(g nvidiasmi.GPU, part string)) {
	if j.Seen.NVIDIA == nil {
		return
	}
	for _, g := range j.Seen.NVIDIA.GPUs {
		f(g, j.Part(g.BusID))
	}
}

func isTrue(b *bool) bool    { return b != nil && *b }
func isFalse(b *bool) bool   { return b != nil && !*b }
func valueOf(n *int64) int64 { return *n }

// NVIDIAMemory is ECC, rows and pages. A GPU whose system processor hangs reads 0
// everywhere: nvidiaState and kernel find that.
func NVIDIAMemory(j *judge.Node) {
	eachGPU(j, func(g nvidiasmi.GPU, part string) {
		if isFalse(g.ECC.Current) || isFalse(g.ECC.Pending) {
			j.Fail(part, doSettings, "nvidia-smi -q: ECC Mode", "ECC is off, or will be after the next reset")
		}
		if n := g.ECC.Volatile.Uncorrectable; judge.AboveZero(n) {
			j.Fail(part, doReset, fmt.Sprintf("nvidia-smi -q: %d volatile uncorrectable errors", valueOf(n)), "%s since the driver was loaded", judge.FormatCount(n, "uncorrectable memory error"))
		}
		if n := g.ECC.Aggregate.SRAMUncorrectable; judge.AboveZero(n) {
			j.Fail(part, doReplace, fmt.Sprintf("nvidia-smi -q: %d aggregate SRAM uncorrectable errors", valueOf(n)), "%s in its life", judge.FormatCount(n, "uncorrectable SRAM error"))
		}
		if isTrue(g.RemappedRows.Failure) {
			j.Fail(part, doReplace, "nvidia-smi -q: Remapping Failure Occurred: Yes", "a bad row of its memory could not be remapped")
		}
		if isTrue(g.RemappedRows.Pending) {
			j.Fail(part, doReset, fmt.Sprintf("nvidia-smi -q: Remapped Rows: %s uncorrectable, Pending: Yes", formatCount(g.RemappedRows.Uncorrectable)), "a bad row of its memory waits to be remapped")
		} else if n := g.RemappedRows.Uncorrectable; judge.AboveZero(n) {
			j.Note("%s: %s remapped after uncorrectable errors", part, judge.FormatCount(n, "row"))
		}
		if isTrue(g.RetiredPages.Pending) {
			j.Fail(part, doReset, "nvidia-smi -q: Retired Pages, Pending: Yes", "pages of its memory wait to be retired")
		}
		if isTrue(g.ECC.Unrepairable) || isTrue(g.ECC.ThresholdExceeded) {
			j.Fail(part, doReplace, "nvidia-smi -q: ECC Errors", "its memory has more errors than can be repaired")
		}
	})
}

func formatCount(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// NVIDIAState is what the driver wants done, and what holds the clocks down.
func NVIDIAState(j *judge.Node) {
	eachGPU(j, func(g nvidiasmi.GPU, part string) {
		if a := g.RecoveryAction; a != "" && a != "None" {
			j.Fail(part, doReset, "nvidia-smi -q: GPU Recovery Action: "+a, "the driver asks for it to be recovered: %s", a)
		}
		if isTrue(g.ResetRequired) || isTrue(g.DrainAndReset) {
			j.Fail(part, doReset, "nvidia-smi -q: GPU Reset Status", "the driver asks for it to be reset")
		}
		if c, p := g.MIG.Current, g.MIG.Pending; c != nil && p != nil && *c != *p {
			j.Fail(part, doMIG, fmt.Sprintf("nvidia-smi -q: MIG Mode: Current %s, Pending %s", enabled(*c), enabled(*p)), "its MIG mode is %s, and will be %s after the next reset", enabled(*c), enabled(*p))
		}
		if v := g.GSPFirmware; v != "" && j.Seen.NVIDIA.Driver != "" && v != j.Seen.NVIDIA.Driver {
			j.Fail(part, doGSP, "nvidia-smi -q: GSP Firmware Version: "+v, "its system processor runs firmware %s, and the driver is %s, which brings its own", v, j.Seen.NVIDIA.Driver)
		}
		if g.Reasons["hw_power_brake_slowdown"] {
			j.Fail(part, "Look at the node's power supplies and its PDU: the chassis asks the GPU to draw less.", "nvidia-smi -q: HW Power Brake Slowdown: Active", "the chassis' power brake holds its clocks down")
		}
		if g.Reasons["hw_thermal_slowdown"] {
			j.Fail(part, "Look at its heat sink or cold plate, the fans and the air or water that comes in.", "nvidia-smi -q: HW Thermal Slowdown: Active", "heat holds its clocks down while it is idle")
		}
	})
}

func enabled(on bool) string {
	if on {
		return "enabled"
	}
	return "disabled"
}

// linkRow is how many NVLinks a model has, and their rate in each direction, GB/s
// (nvidia-smi nvlink -s; NVIDIA's data sheets). The first row that fits counts.
type linkRow struct {
	match string
	links int
	rate  float64
}

var linkRows = []linkRow{
	{"GB200", 18, 50}, {"GB300", 18, 50}, {"B200", 18, 50}, {"B300", 18, 50}, {"GH200", 18, 25}, {"H200", 18, 25}, {"H100", 18, 25}, {"H800", 8, 25},
	{"H20", 18, 25}, {"A100", 12, 25}, {"A800", 8, 25},
}

// NVLinks holds the states of links against the model. Only boards whose GPUs are
// joined have them.
func NVLinks(j *judge.Node) {
	_, interconnect := j.Declared("nvidia")
	if j.Seen.Links == nil || interconnect != "nvswitch" && interconnect != "nvlink" {
		return
	}
	listed := map[int]bool{}
	for _, g := range j.Seen.Links.GPUs {
		listed[g.Index] = true
		nvlinksOf(j, g)
	}
	eachGPU(j, func(g nvidiasmi.GPU, part string) {
		if len(listed) > 0 && !listed[g.Index] {
			j.Fail(part, doNVLink, fmt.Sprintf("nvidia-smi nvlink -s: %d GPUs, without GPU %d", len(listed), g.Index), "nvidia-smi nvlink says nothing of its links, and tells of other GPUs")
		}
	})
}

// nvlinksOf holds the states of one GPU's links against its model.
func nvlinksOf(j *judge.Node, g nvidiasmi.NVLinkGPU) {
	row := rowOf(g.Name)
	up, known := 0, 0
	var down, slow []string
	for _, l := range g.Links {
		switch {
		case l.Active == nil:
			continue
		case !*l.Active:
			down = append(down, fmt.Sprint(l.Link))
		case l.Rate != nil && *l.Rate < row.rate:
			slow = append(slow, fmt.Sprintf("%d (%g GB/s)", l.Link, *l.Rate))
		default:
			up++
		}
		known++
	}
	part, evidence := byIndex(j, g.Index), fmt.Sprintf("nvidia-smi nvlink -s: %d links are up", up)
	if len(down) > 0 {
		j.Fail(part, doNVLink, evidence, "NVLink %s is not up", strings.Join(down, ", "))
	} else if known > 0 && known < row.links {
		j.Fail(part, doNVLink, evidence, "it has %d of %d NVLinks", known, row.links)
	}
	if len(slow) > 0 {
		j.Fail(part, doNVLink, evidence, "NVLink %s is below %g GB/s", strings.Join(slow, ", "), row.rate)
	}
}

// rowOf is the row of a GPU's model; zero for one that is not known.
func rowOf(name string) linkRow {
	for _, r := range linkRows {
		if strings.Contains(name, r.match) {
			return r
		}
	}
	return linkRow{}
}

// byIndex names a GPU by the driver's number.
func byIndex(j *judge.Node, index int) string {
	if l := j.Seen.NVIDIA; l != nil {
		for _, g := range l.GPUs {
			if g.Index == index {
				return j.Part(g.BusID)
			}
		}
	}
	return fmt.Sprintf("GPU %d", index)
}

// NVLinkErrors holds the counters against zero. Bit error rates and recoveries
// that were successful are no errors.
func NVLinkErrors(j *judge.Node) {
	if j.Seen.Links == nil {
		return
	}
	for _, g := range j.Seen.Links.GPUs {
		for _, l := range g.Links {
			for _, name := range slices.Sorted(maps.Keys(l.Counters)) {
				n := l.Counters[name]
				if n > 0 && (strings.HasSuffix(name, "errors") || strings.HasSuffix(name, "discards") || strings.Contains(name, "failed")) {
					j.Fail(byIndex(j, g.Index), doNVLink, fmt.Sprintf("nvidia-smi nvlink -e: link %d: %s: %g", l.Link, name, n), "NVLink %d counted %g %s", l.Link, n, strings.ReplaceAll(name, "_", " "))
				}
			}
		}
	}
}

// CheckFabric holds the GPUs of a board with NVSwitches against being in its domain.
func CheckFabric(j *judge.Node) {
	eachGPU(j, func(g nvidiasmi.GPU, part string) {
		const action = "Look at Fabric Manager, whose version must be the driver's: systemctl status nvidia-fabricmanager, /var/log/fabricmanager.log."
		f := g.Fabric
		if _, interconnect := j.Declared("nvidia"); interconnect != "nvswitch" || f.State == "" {
			return
		}
		if f.State != "Completed" || f.Status != "" && f.Status != "Success" {
			state := f.State
			if f.Status != "" {
				state += ", status " + f.Status
			}
			j.Fail(part, action, "nvidia-smi -q: Fabric: state "+state, "it is not in the NVLink fabric: state %s", state)
		}
		for _, name := range slices.Sorted(maps.Keys(f.Health)) {
			v := f.Health[name]
			if v == "True" || v == "Unhealthy" || v == "Degraded" {
				j.Fail(part, doNVLink, "nvidia-smi -q: Fabric Health: "+name+": "+v, "the NVLink fabric is not healthy: %s is %s", strings.ReplaceAll(name, "_", " "), v)
			}
		}
	})
}

// CheckPower holds the limit in force against the default.
func CheckPower(j *judge.Node) {
	eachGPU(j, func(g nvidiasmi.GPU, part string) {
		if p := g.Power; p.Limit != nil && p.Default != nil && *p.Limit < *p.Default {
			j.Fail(part, doSettings, fmt.Sprintf("nvidia-smi -q: Current Power Limit %g W, Default %g W", *p.Limit, *p.Default), "its power limit is %g W, and %g W is the default", *p.Limit, *p.Default)
		}
	})
}
