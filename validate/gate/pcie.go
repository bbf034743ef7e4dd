package gate

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
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
