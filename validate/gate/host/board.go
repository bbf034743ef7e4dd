// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// HostMemory takes the errors that no code could correct.
func HostMemory(j *judge.Node) {
	for _, m := range j.Seen.Health.Memory {
		if m.Uncorrected > 0 {
			j.Fail("memory", "Have the DIMM replaced: dmesg and the BMC's event log name its slot.", fmt.Sprintf("EDAC %s: ue_count %d", m.Controller, m.Uncorrected),
				"memory controller %s met %d uncorrectable errors", m.Controller, m.Uncorrected)
		}
	}
}

// CheckKernel takes the events that are about parts of the node, but for links that it
// found slow: path judges these.
func CheckKernel(j *judge.Node) {
	if j.Seen.Kernel == nil {
		return
	}
	for _, e := range j.Seen.Kernel.Events {
		if e.Level != dmesg.Fatal && e.Level != dmesg.Degraded || e.Kind == "pcie-link" {
			continue
		}
		part := "kernel log"
		switch {
		case e.Kind == "sxid":
			part = "NVSwitch at " + e.Bus
		case e.Bus != "":
			part = j.Part(e.Bus)
		case e.Kind == "edac", e.Kind == "mce":
			part = "memory"
		}
		j.Fail(part, e.Action, fmt.Sprintf("kernel, line %d: %s", e.Line, e.Text), "%s", e.Meaning+formatCode(e))
	}
}

// formatCode returns the number of an Xid behind its meaning.
func formatCode(e dmesg.Event) string {
	switch e.Kind {
	case "xid":
		return fmt.Sprintf(" (Xid %d)", e.Code)
	case "sxid":
		return fmt.Sprintf(" (SXid %d)", e.Code)
	}
	return ""
}

// CheckPageSize compares the page size that the kernel has with the one that the hardware
// block says.
func CheckPageSize(j *judge.Node) {
	want, have := j.Hardware.PageSize, j.Seen.Health.PageSize
	if want == 0 || have == 0 || have == want {
		return
	}
	j.Fail("kernel", "Name the kernel of that page size in the image block (kernel) and rebuild the node, or correct page_size of the hardware block.",
		fmt.Sprintf("AT_PAGESZ: %d, release %s", have, j.Seen.Health.Kernel), "the kernel has pages of %dK, and page_size of hardware %s says %dK", have>>10, j.Hardware.Name, want>>10)
}

// PageSizeCoverage is what CheckPageSize saw: nothing where no page size is asked for.
func PageSizeCoverage(j *judge.Node) judge.Coverage {
	switch {
	case j.Hardware.PageSize == 0:
		return judge.Coverage{}
	case j.Seen.Health.PageSize == 0:
		return judge.Coverage{Missing: "the kernel did not report its page size"}
	}
	return judge.Covered("pages of %dK", j.Seen.Health.PageSize>>10)
}

// CheckSettings are worth knowing and no part's fault.
func CheckSettings(j *judge.Node) {
	for _, g := range slices.Sorted(maps.Keys(j.Seen.Health.Governors)) {
		if g != "performance" {
			j.Note("%d CPUs have the governor %s: performance makes measurements even", j.Seen.Health.Governors[g], g)
		}
	}
	// arch_sys_counter is the one of arm64 (Documentation/timers/timekeeping.rst).
	if c := j.Seen.Health.Clock; c != "" && c != "tsc" && c != "arch_sys_counter" {
		j.Note("the clocksource is %s: reading the time is slow, and tsc may have been found unstable", c)
	}
}
