package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/tool/dmesg"
)

// hostMemory takes the errors that no code could correct.
func (j *judge) hostMemory() {
	for _, m := range j.seen.Health.Memory {
		if m.Uncorrected > 0 {
			j.fail("memory", "Have the DIMM replaced: dmesg and the BMC's event log name its slot.", fmt.Sprintf("EDAC %s: ue_count %d", m.Controller, m.Uncorrected),
				"memory controller %s met %d uncorrectable errors", m.Controller, m.Uncorrected)
		}
	}
}

// kernel takes the events that are about parts of the node, but for links that it
// found slow: path judges these.
func (j *judge) kernel() {
	if j.seen.Kernel == nil {
		return
	}
	for _, e := range j.seen.Kernel.Events {
		if e.Level != dmesg.Fatal && e.Level != dmesg.Degraded || e.Kind == "pcie-link" {
			continue
		}
		part := "kernel log"
		switch {
		case e.Kind == "sxid":
			part = "NVSwitch at " + e.Bus
		case e.Bus != "":
			part = j.part(e.Bus)
		case e.Kind == "edac", e.Kind == "mce":
			part = "memory"
		}
		j.fail(part, e.Action, fmt.Sprintf("kernel, line %d: %s", e.Line, e.Text), "%s", e.Meaning+code(e))
	}
}

// code is the number of an Xid behind its meaning.
func code(e dmesg.Event) string {
	switch e.Kind {
	case "xid":
		return fmt.Sprintf(" (Xid %d)", e.Code)
	case "sxid":
		return fmt.Sprintf(" (SXid %d)", e.Code)
	}
	return ""
}

// settings are worth knowing and no part's fault.
func (j *judge) settings() {
	for _, g := range slices.Sorted(maps.Keys(j.seen.Health.Governors)) {
		if g != "performance" {
			j.note("%d CPUs have the governor %s: performance makes measurements even", j.seen.Health.Governors[g], g)
		}
	}
	if c := j.seen.Health.Clock; c != "" && c != "tsc" {
		j.note("the clocksource is %s: reading the time is slow, and tsc may have been found unstable", c)
	}
}
