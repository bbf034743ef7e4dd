// SPDX-License-Identifier: Apache-2.0

package traits

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/uniform"
)

// bought are the parts that the node is made of, by what its kernel and its firmware show.
func (t *traits) bought(s look.Seen) {
	t.cpu(s.Health.CPU)
	t.own(uniform.TPM, "", s.Health.TPM)
	t.memory(s.Health.DIMMs)
	names := judge.PartNames(nil, s)
	for _, l := range s.Health.PCI {
		switch {
		case isCompute(l):
			part := cmp.Or(names[l.Address], "GPU at "+l.Address)
			t.add(uniform.GPUID, "", part, l.Vendor+":"+l.Device)
			t.add(uniform.GPUPCIe, "", part, highestLink(l))
		case strings.HasPrefix(l.Class, "02"):
			part := "NIC at " + l.Address
			t.add(uniform.NICModel, "", part, "PCI "+l.Vendor+":"+l.Device)
			t.add(uniform.NICPCIe, "", part, highestLink(l))
			if x := l.Transceiver; x != nil {
				t.add(uniform.Transceiver, "", part, x.Maker+" "+x.Part)
				t.add(uniform.OpticFirmware, strings.TrimSpace(x.Maker+" "+x.Part), part, x.Firmware)
			}
			if l.MTU != nil && !strings.HasPrefix(l.Class, infiniBand) {
				t.add(uniform.MTU, "", part, strconv.FormatInt(*l.MTU, 10))
			}
		}
	}
	t.drives(s.Health)
	t.places(s.Health)
	t.ports(s.Health.Ports)
}

// infiniBand is the PCI class of ports that speak InfiniBand. The MTU of IPoIB on one follows what
// the port has joined at the moment, and RDMA does not use it.
const infiniBand = "0207"

func (t *traits) cpu(c wire.CPU) {
	t.own(uniform.CPUModel, "", c.Model)
	if c.Cores > 0 {
		t.own(uniform.CPUCores, "", fmt.Sprintf("%d in %d sockets", c.Cores, c.Sockets))
	}
	t.own(uniform.SMT, "", onOff(c.SMT))
	if c.NUMA > 0 {
		t.own(uniform.NUMA, "", strconv.Itoa(c.NUMA))
	}
}

// mostEmptyShown is how many empty slots are named.
const mostEmptyShown = 4

// memory are the slots, and what stands in each.
func (t *traits) memory(slots []wire.Module) {
	if len(slots) == 0 {
		return
	}
	var empty []string
	for _, m := range slots {
		if m.Size == 0 {
			empty = append(empty, m.Slot)
			continue
		}
		value := unit.Bytes(m.Size).String()
		if m.Speed > 0 {
			value += fmt.Sprintf(" at %d MT/s", m.Speed)
		}
		t.add(uniform.DIMM, "", strings.TrimSpace("DIMM "+m.Slot), value)
	}
	value := fmt.Sprintf("%d in %d slots", len(slots)-len(empty), len(slots))
	if len(empty) > 0 {
		value += "; empty: " + strings.Join(empty[:min(len(empty), mostEmptyShown)], ", ")
	}
	if len(empty) > mostEmptyShown {
		value += " ..."
	}
	t.own(uniform.DIMMSlots, "", value)
}

// drives are the fixed disks by their places, which nodes have in common: serial numbers
// are each node's own.
func (t *traits) drives(h wire.Health) {
	links := map[string]wire.PCILink{}
	for _, l := range h.PCI {
		links[l.Address] = l
	}
	count := 0
	for _, d := range h.Drives {
		place := cmp.Or(d.ByPath, d.PCI)
		if place == "" || strings.Contains(place, "usb") { // a stick, or a disk of the BMC
			continue
		}
		part := "disk at " + place
		if d.Bay != "" {
			part += " (bay " + d.Bay + ")"
		}
		count++
		t.add(uniform.DiskType, "", part, d.Type)
		if d.Sector > 0 {
			t.add(uniform.DiskSector, "", part, fmt.Sprintf("%d bytes", d.Sector))
		}
		t.add(uniform.DiskSize, "", part, strconv.FormatInt(d.Size, 10)+" bytes")
		t.add(uniform.DiskModel, "", part, d.Model)
		if l, ok := links[d.PCI]; ok && d.Type == "nvme" {
			t.add(uniform.DiskPCIe, "", part, describeLink(l.Width, l.Speed))
		}
	}
	if count > 0 {
		t.own(uniform.Disks, "", strconv.Itoa(count))
	}
}

// places are where parts are plugged in: the memory nearest to each, and the bridges above it.
// Parts are named by their addresses alone, which nodes have in common. A host with another
// number of NUMA nodes numbers all of them otherwise, and is found by that.
func (t *traits) places(h wire.Health) {
	for _, l := range h.PCI {
		part := ""
		switch {
		case isCompute(l):
			part = "GPU at " + l.Address
		case strings.HasPrefix(l.Class, "02"):
			part = "NIC at " + l.Address
		case strings.HasPrefix(l.Class, "0108"):
			part = "NVMe disk at " + l.Address
		default:
			continue
		}
		if l.NUMA != nil {
			t.add(uniform.MemoryNode, fmt.Sprintf("hosts with %d", h.CPU.NUMA), part, strconv.Itoa(*l.NUMA))
		}
		if n := len(l.Above); n > 0 {
			t.add(uniform.PCIePath, "", part, fmt.Sprintf("%d bridges", n))
		}
	}
	if n := len(h.Bridges); n > 0 {
		t.own(uniform.Bridges, "", strconv.Itoa(n))
	}
	for _, b := range h.Bridges {
		if b.ACS != nil {
			t.add(uniform.BridgeACS, "", strings.TrimSpace(b.Port+" port at "+b.Address), fmt.Sprintf("%#04x", *b.ACS))
		}
	}
}

// ports are the RDMA ports that are up: what they are linked with, and how fast.
func (t *traits) ports(ports []wire.InfiniBandPort) {
	for _, p := range ports {
		if p.PCI != "" && p.State == "ACTIVE" {
			t.add(uniform.RDMAPort, "", fmt.Sprintf("port %d of NIC at %s", p.Number, p.PCI), strings.Trim(p.Layer+", "+p.Physical+", "+p.Rate, ", "))
		}
	}
}

// Chassis counts what a BMC tells of a chassis: fans that turn, or whose failure the BMC itself
// reports, and power supplies where the hardware block does not say how many there are.
func Chassis(h *inventory.Hardware, parts []chassis.Part) []uniform.Trait {
	t, count := &traits{}, map[chassis.PartKind]int{}
	for _, p := range parts {
		if !p.Absent && (p.Failed || p.Speed == nil || *p.Speed > 0) {
			count[p.Kind]++
		}
	}
	if n := count[chassis.Fan]; n > 0 {
		t.own(uniform.Fans, "", strconv.Itoa(n))
	}
	if n := count[chassis.Supply]; n > 0 && h.Power.Supplies == 0 {
		t.own(uniform.Supplies, "", strconv.Itoa(n))
	}
	return t.list()
}

// isCompute reports whether a part is a GPU that computes: others are displays of BMCs.
func isCompute(l wire.PCILink) bool {
	return judge.IsGPU(l.Class) && (l.Vendor == judge.Vendors["nvidia"] || l.Vendor == judge.Vendors["amd"])
}

// highestLink is the most that the link of a part can be, which does not change with load.
func highestLink(l wire.PCILink) string { return describeLink(l.MaxWidth, l.MaxSpeed) }

func describeLink(width *int, speed *float64) string {
	if width == nil || speed == nil {
		return ""
	}
	return fmt.Sprintf("x%d at %g GT/s", *width, *speed)
}
