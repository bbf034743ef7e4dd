package gate

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/dmesg"
)

const doSlot = "Reseat the part, then exchange its slot, riser and cable one by one; look at the slot's settings in the BIOS."

// pcie holds each link against what both ends can. An idle GPU lowers its speed,
// never its width.
func (j *judge) pcie() {
	for _, l := range j.seen.Health.PCI {
		part := j.part(l.Address)
		if l.Width != nil && l.MaxWidth != nil && *l.Width < *l.MaxWidth {
			j.fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: current_link_width %d, max_link_width %d", l.Address, *l.Width, *l.MaxWidth),
				"its PCIe link has %d of %d lanes", *l.Width, *l.MaxWidth)
		}
		if l.Speed != nil && l.MaxSpeed != nil && *l.Speed < *l.MaxSpeed && !isGPU(l.Class) {
			j.slow(l, part)
		}
		for _, e := range []struct {
			what  string
			count *int64
		}{{"fatal", l.Fatal}, {"uncorrectable", l.NonFatal}} {
			if over0(e.count) {
				j.fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: %d %s errors", l.Address, *e.count, e.what), "%d %s PCIe errors since the boot", *e.count, e.what)
			}
		}
	}
}

// slow judges a link below the speed of the part. A disk in an older slot is as
// it was bought: all disks of the model tell, which one node alone cannot.
func (j *judge) slow(l wire.PCILink, part string) {
	if strings.HasPrefix(l.Class, "0108") {
		j.note("%s: its PCIe link runs at %g GT/s and it can %g GT/s", part, *l.Speed, *l.MaxSpeed)
		return
	}
	j.fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: current_link_speed %g GT/s, max_link_speed %g GT/s", l.Address, *l.Speed, *l.MaxSpeed),
		"its PCIe link runs at %g GT/s, and it can %g GT/s", *l.Speed, *l.MaxSpeed)
}

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
	for _, g := range sortedKeys(j.seen.Health.Governors) {
		if g != "performance" {
			j.note("%d CPUs have the governor %s: performance makes measurements even", j.seen.Health.Governors[g], g)
		}
	}
	if c := j.seen.Health.Clock; c != "" && c != "tsc" {
		j.note("the clocksource is %s: reading the time is slow, and tsc may have been found unstable", c)
	}
}
