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

// restingSpeed is what the link of a GPU at rest is lowered to, GT/s.
const restingSpeed = 2.5

// CheckGPUSpeed finds GPUs whose links run neither at full speed nor at that of rest, while
// most of the node's are at full speed: they did not train. A second look, by the driver,
// must say so too where it tells.
func CheckGPUSpeed(j *judge.Node) {
	full, slow := gpuSpeeds(j)
	for _, l := range slow {
		if 2*len(slow) > full || driverSaysFull(j, l) {
			continue
		}
		j.Fail(j.Part(l.Address), doSlot, fmt.Sprintf("/sys/bus/pci/devices/%s: current_link_speed %g GT/s, max_link_speed %g GT/s", l.Address, *l.Speed, *l.MaxSpeed),
			"its PCIe link runs at %g GT/s and can %g GT/s, as those of %d other GPUs do", *l.Speed, *l.MaxSpeed, full)
	}
}

// gpuSpeeds counts the GPUs whose link runs as fast as it can, and lists those that are
// between that and rest.
func gpuSpeeds(j *judge.Node) (full int, slow []wire.PCILink) {
	for _, l := range j.Seen.Health.PCI {
		switch {
		case !judge.IsGPU(l.Class) || l.Speed == nil || l.MaxSpeed == nil:
		case *l.Speed >= *l.MaxSpeed:
			full++
		case *l.Speed > restingSpeed:
			slow = append(slow, l)
		}
	}
	return full, slow
}

// driverSaysFull reports whether nvidia-smi, which looked later, found the link at the
// generation that it can.
func driverSaysFull(j *judge.Node, l wire.PCILink) bool {
	if j.Seen.NVIDIA == nil {
		return false
	}
	for _, g := range j.Seen.NVIDIA.GPUs {
		if p := g.PCIe; g.BusID == l.Address && p.Generation != nil && p.MaxGeneration != nil {
			return *p.Generation >= *p.MaxGeneration
		}
	}
	return false
}

// GPUSpeedCoverage is how many GPUs' links ran at full speed or were found slower.
func GPUSpeedCoverage(j *judge.Node) judge.Coverage {
	if j.Hardware.GPUCount() == 0 {
		return judge.Coverage{}
	}
	full, slow := gpuSpeeds(j)
	if full == 0 {
		return judge.Coverage{Missing: "no GPU's PCIe link ran at full speed while the node was at rest"}
	}
	return judge.Covered("links of %d GPUs at full speed or above that of rest", full+len(slow))
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
