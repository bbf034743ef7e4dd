// SPDX-License-Identifier: Apache-2.0

package dmesg

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// rule finds one kind of event. Its word is looked for first, which costs little.
type rule struct {
	word  string
	match *lazyregexp.Regexp
	event func(m []string) (Event, bool)
}

const pci = `([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])`

// rules are tried in this order; the first that matches is the event.
var rules = []rule{
	{"SXid (", lazyregexp.New(`SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+), (Fatal|Non-fatal), (.*)`), sxidEvent},
	{"Xid (", lazyregexp.New(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, (.*)|$)`), xidEvent},
	{"NVRM: ", lazyregexp.New(`NVRM: (?:GPU |The NVIDIA GPU )?([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]).*(RmInitAdapter failed|fallen off the bus)`), nvrmEvent},
	{"NVRM: ", lazyregexp.New(`NVRM: ()(RmInitAdapter failed)`), nvrmEvent}, // older drivers name no GPU
	{"NVRM: API mismatch", lazyregexp.New(`NVRM: API mismatch: (.*)`), func([]string) (Event, bool) {
		return Event{Kind: "nvrm", Level: Fatal, Meaning: "the kernel module and the user space of the driver are of two versions", Action: "Reboot the node, so that the module of the installed driver is loaded."}, true
	}},
	{"hardware errors detected in", lazyregexp.New(`amdgpu ` + pci + `: .*?(\d+) (?:new )?(correctable|uncorrectable|deferred) hardware errors detected in (?:total in )?(\w+) block`), rasEvent},
	{"amdgpu", lazyregexp.New(`amdgpu ` + pci + `: (?:amdgpu: )?.*?(device lost from bus|GPU reset begin|Saved bad pages \d+ reaches threshold|ERREVENT_ATHUB_INTERRUPT|ring \S+ timeout|poison is consumed|\[\w+\] (?:no-retry |retry )?page fault|GPU reset(?:\(\d+\))? failed|GPU reset end with ret = -\d+|MES might be in unrecoverable state|SMU: I'm not done with your previous command|Fatal error during GPU init|RAS: .*(?:WARN|ERROR))`), amdEvent},
	{"[amdgpu]] *ERROR* ring ", lazyregexp.New(`\[drm:\w+ \[amdgpu\]\] \*ERROR\* ()(ring \S+ timeout)`), amdEvent}, // older drivers name no GPU
	{"PCIe Bus Error", lazyregexp.New(pci + `: (?:AER: )?PCIe Bus Error: severity=(\w+)(?: \(([\w-]+)\))?, type=([^,]+)`), busErrorEvent},
	{"AER: ", lazyregexp.New(`AER: (?:Multiple )?(Corrected|Correctable|Uncorrected \(Non-Fatal\)|Uncorrectable \(Non-Fatal\)|Uncorrected \(Fatal\)|Uncorrectable \(Fatal\)) error (?:message )?received(?: from|:)? (?:id=)?(\S+)`), aerEvent},
	{"available PCIe bandwidth, limited by", lazyregexp.New(pci + `: ([0-9.]+) Gb/s available PCIe bandwidth, limited by ([0-9.]+) GT/s PCIe x(\d+) link at ` + pci + ` \(capable of ([0-9.]+) Gb/s with ([0-9.]+) GT/s PCIe x(\d+) link\)`), linkEvent},
	{"EDAC", lazyregexp.New(`EDAC (\S+): (\d+) (CE|UE) `), edacEvent},
	{"[Hardware Error]: ", lazyregexp.New(`mce: \[Hardware Error\]: (?:CPU (\d+): )?Machine Check(?: Exception)?: (.*)`), mceEvent},
	{"[Hardware Error]: event severity", lazyregexp.New(`\{\d+\}\[Hardware Error\]: event severity: (\w+)`), platformEvent},
	{"nvme", lazyregexp.New(`nvme (nvme\d+|` + pci + `): (?:I/O .*timeout|controller is down|Device not ready|Removing after probe failure)`), nvmeEvent},
}

// parseEvent finds what a line without its time says.
func parseEvent(line string) (Event, bool) {
	if len(line) > 4*longest {
		line = line[:4*longest]
	}
	for _, list := range [][]rule{rules, hostRules} {
		for _, r := range list {
			if !strings.Contains(line, r.word) {
				continue
			}
			if m := r.match.FindStringSubmatch(line); m != nil {
				if e, ok := r.event(m); ok {
					return e, true
				}
			}
		}
	}
	return Event{}, false
}

var nonfatal = lazyregexp.New(`^[A-Z0-9_]+ +Nonfatal\b`)

func xidEvent(m []string) (Event, bool) {
	code, err := strconv.Atoi(m[2])
	if err != nil {
		return Event{}, false
	}
	x := lookupXid(code)
	if x.Level == Fatal && nonfatal.MatchString(m[3]) {
		x.Level = Degraded // NVLink 5 errors say it themselves: "145, RLW_REMAP Nonfatal XC1 i0 Link 08"
	}
	return Event{Kind: "xid", Bus: NormalizeAddress(m[1]), Code: code, Level: x.Level, Meaning: x.Meaning, Action: x.Action}, true
}

var sxidLink = lazyregexp.New(`^Link (\d+) (.*)`)

// sxidEvent reads an error of an NVSwitch. Whether it is fatal is said by the
// message (Fabric Manager User Guide, appendix on SXid errors).
func sxidEvent(m []string) (Event, bool) {
	code, err := strconv.Atoi(m[2])
	if err != nil {
		return Event{}, false
	}
	e := Event{Kind: "sxid", Bus: NormalizeAddress(m[1]), Code: code, Level: Degraded, Meaning: "NVSwitch error, not fatal: " + m[4], Action: doLink}
	if m[3] == "Fatal" {
		e.Level, e.Meaning = Fatal, "NVSwitch error, fatal: "+m[4]
	}
	if l := sxidLink.FindStringSubmatch(m[4]); l != nil {
		if n, err := strconv.Atoi(l[1]); err == nil {
			e.Link = &n
		}
	}
	return e, true
}

func nvrmEvent(m []string) (Event, bool) {
	meaning := "the GPU has fallen off the bus"
	if strings.HasPrefix(m[2], "RmInit") {
		meaning = "the driver could not initialise the GPU"
	}
	bus := ""
	if m[1] != "" {
		bus = NormalizeAddress(m[1])
	}
	return Event{Kind: "nvrm", Bus: bus, Level: Fatal, Meaning: meaning, Action: doPCIe}, true
}

// rasEvent reads the counts of amdgpu_ras.c.
func rasEvent(m []string) (Event, bool) {
	if m[2] == "0" {
		return Event{}, false
	}
	e := Event{Kind: "amdgpu", Bus: m[1], Level: Notice, Meaning: "corrected errors in block " + m[4]}
	switch m[3] {
	case "uncorrectable":
		e.Level, e.Meaning, e.Action = Fatal, "uncorrectable errors in block "+m[4], doReset
	case "deferred":
		e.Level, e.Meaning, e.Action = Degraded, "uncorrectable errors found before use in block "+m[4], doReset
	}
	return e, true
}

func amdEvent(m []string) (Event, bool) {
	e := Event{Kind: "amdgpu", Bus: m[1], Level: Fatal, Action: doReset}
	switch what := m[2]; {
	case strings.HasPrefix(what, "device lost"):
		e.Meaning, e.Action = "the GPU has fallen off the bus", doPCIe
	case strings.HasSuffix(what, "page fault"):
		e.Level, e.Meaning, e.Action = Application, "a program touched memory that is not its own", doProgram
	case strings.Contains(what, "failed"), strings.Contains(what, "ret = -"):
		e.Meaning, e.Action = "the driver could not reset the GPU", doPCIe
	case strings.HasPrefix(what, "MES"):
		e.Level, e.Meaning = Degraded, "the scheduler of the GPU's queues (MES) did not answer"
	case strings.HasPrefix(what, "SMU"):
		e.Level, e.Meaning = Degraded, "the GPU's power management (SMU) did not answer"
	case strings.HasPrefix(what, "GPU reset begin"):
		e.Level, e.Meaning = Degraded, "the driver reset the GPU"
	case strings.HasPrefix(what, "Saved bad pages"):
		e.Meaning, e.Action = "too many bad pages: the GPU has to be replaced", doReplace
	case strings.HasPrefix(what, "ERREVENT"):
		e.Meaning = "RAS event: a fatal error of the data fabric"
	case strings.HasPrefix(what, "ring"):
		e.Level, e.Meaning = Degraded, "a queue of the GPU did not finish in time"
	case strings.HasPrefix(what, "poison"):
		e.Level, e.Meaning = Degraded, "a program met an uncorrectable memory error"
	case strings.HasPrefix(what, "Fatal error during"):
		e.Meaning, e.Action = "the driver could not initialise the GPU", doPCIe
	default:
		e.Level, e.Meaning = Degraded, "RAS warning"
	}
	return e, true
}

// pcieLevel is the level of a severity of AER (PCI Express Base Specification,
// 6.2).
func pcieLevel(severity string) Level {
	switch {
	case strings.Contains(severity, "Non-Fatal"):
		return Degraded
	case strings.Contains(severity, "Fatal"):
		return Fatal
	case strings.HasPrefix(severity, "Corrected"), strings.HasPrefix(severity, "Correctable"):
		return Notice
	}
	return Degraded
}

const doSlot = "Look at the slot, the riser and the cable of the device; exchange them one by one."

func busErrorEvent(m []string) (Event, bool) {
	severity := strings.TrimSpace(m[2] + " " + m[3])
	return Event{Kind: "aer", Bus: m[1], Level: pcieLevel(severity), Meaning: "PCIe error, " + strings.ToLower(severity) + ", " + strings.ToLower(m[4]), Action: doSlot}, true
}

func aerEvent(m []string) (Event, bool) {
	bus := ""
	if strings.Count(m[2], ":") == 2 {
		bus = NormalizeAddress(m[2])
	}
	return Event{Kind: "aer", Bus: bus, Level: pcieLevel(m[1]), Meaning: "the root port received a PCIe error, " + strings.ToLower(m[1]), Action: doSlot}, true
}

// linkEvent reads what pcie_report_downtraining of the kernel prints.
func linkEvent(m []string) (Event, bool) {
	return Event{Kind: "pcie-link", Bus: m[1], Level: Degraded, Action: doSlot,
		Meaning: "PCIe link at " + m[5] + " runs at " + m[3] + " GT/s x" + m[4] + " and can " + m[7] + " GT/s x" + m[8]}, true
}

func edacEvent(m []string) (Event, bool) {
	if m[3] == "UE" {
		return Event{Kind: "edac", Level: Fatal, Meaning: "uncorrectable memory error, controller " + m[1], Action: "Have the DIMM that the message names replaced."}, true
	}
	return Event{Kind: "edac", Level: Notice, Meaning: "corrected memory errors, controller " + m[1]}, true
}

func mceEvent([]string) (Event, bool) {
	return Event{Kind: "mce", Level: Degraded, Meaning: "machine check", Action: "Decode the lines with rasdaemon or mcelog, and look at the CPU and the memory that they name."}, true
}

// platformEvent reads what the platform's firmware reports (ACPI, APEI: cper.c of
// the kernel); the lines below it name the part.
func platformEvent(m []string) (Event, bool) {
	e := Event{Kind: "mce", Level: Notice, Meaning: "the platform reports a hardware error, severity " + m[1]}
	switch m[1] {
	case "fatal":
		e.Level = Fatal
	case "recoverable":
		e.Level = Degraded
	case "info":
		return Event{}, false
	}
	if e.Level != Notice {
		e.Action = "Look at the part that the lines below name, and at the BMC's event log."
	}
	return e, true
}

func nvmeEvent(m []string) (Event, bool) {
	return Event{Kind: "nvme", Bus: m[2], Level: Degraded, Meaning: "the disk " + m[1] + " did not answer", Action: "Look at the disk's SMART log and its slot."}, true
}
