// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const doSlot = "Reseat the part, then exchange its slot, riser and cable one by one; look at the slot's settings in the BIOS."

// CheckPCIe holds each link against what both ends can. An idle GPU lowers its speed,
// never its width.
func CheckPCIe(j *judge.Node) {
	for _, l := range j.Seen.Health.PCI {
		part := j.Part(l.Address)
		if l.Width != nil && l.MaxWidth != nil && *l.Width < *l.MaxWidth {
			j.Fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: current_link_width %d, max_link_width %d", l.Address, *l.Width, *l.MaxWidth),
				"its PCIe link has %d of %d lanes", *l.Width, *l.MaxWidth)
		}
		if l.Speed != nil && l.MaxSpeed != nil && *l.Speed < *l.MaxSpeed && !judge.IsGPU(l.Class) {
			judgeSlow(j, l, part)
		}
		for _, e := range []struct {
			what  string
			count *int64
		}{{"fatal", l.Fatal}, {"uncorrectable", l.NonFatal}} {
			if judge.AboveZero(e.count) {
				j.Fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: %d %s errors", l.Address, *e.count, e.what), "%d %s PCIe errors since the boot", *e.count, e.what)
			}
		}
	}
}

// judgeSlow judges a link below the speed of the part. A disk in an older slot is as
// it was bought: all disks of the model tell, which one node alone cannot.
func judgeSlow(j *judge.Node, l wire.PCILink, part string) {
	if strings.HasPrefix(l.Class, "0108") {
		j.Note("%s: its PCIe link runs at %g GT/s and it can %g GT/s", part, *l.Speed, *l.MaxSpeed)
		return
	}
	j.Fail(part, doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: current_link_speed %g GT/s, max_link_speed %g GT/s", l.Address, *l.Speed, *l.MaxSpeed),
		"its PCIe link runs at %g GT/s, and it can %g GT/s", *l.Speed, *l.MaxSpeed)
}
