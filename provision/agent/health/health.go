// SPDX-License-Identifier: Apache-2.0

// Package health reads from sysfs what the kernel knows of a node's parts that
// can be there and still not be well: PCIe links and their errors, memory errors,
// CPU frequency governors, the clocksource, RDMA ports, the bridges above GPUs and
// NICs, and the health log of NVMe disks; and of which CPUs, memory modules and disks
// it is made. It changes nothing.
// Source: Documentation/ABI/testing of Linux, sysfs-bus-pci,
// sysfs-bus-pci-devices-aer_stats, sysfs-devices-edac, sysfs-kernel-iommu_groups,
// sysfs-class-net, and admin-guide/pm/cpufreq.
package health

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/infiniband"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// classes are the PCI classes that are looked at: 3D controllers and displays,
// processing accelerators, network controllers and NVMe.
var classes = []string{"0302", "0300", "1200", "02", "0108"}

// Read reads everything.
func Read(fs sysfs.FS) wire.Health {
	in := inspect.Inspector{FS: fs}
	return wire.Health{
		PCI: functions(fs), Memory: memory(fs), Governors: governors(fs),
		Clock:    fs.Text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		PageSize: pageSize(fs),
		CPU:      in.Chassis().CPU, DIMMs: in.Slots(), Drives: in.Drives(),
		Ports:   infiniband.Read(fs).Ports,
		Bridges: bridges(fs), IOMMUs: fs.Names("sys/class/iommu"), DirectNIC: directNIC(fs),
		Kernel: fs.Text("proc/sys/kernel/osrelease"), Uptime: uptime(fs),
		PeerMem: fs.Exists("sys/module/nvidia_peermem"), OpenGPU: openDriver(fs),
		TPM: inspect.TPM(fs),
	}
}

// pageSize is what the kernel tells every process of its pages, AT_PAGESZ of the auxiliary
// vector (getauxval(3)): pairs of numbers of 64 bits, both architectures little-endian.
func pageSize(fs sysfs.FS) int {
	const kind = 6
	for b := fs.Bytes("proc/self/auxv"); len(b) >= 16; b = b[16:] {
		if binary.LittleEndian.Uint64(b) == kind {
			return int(binary.LittleEndian.Uint64(b[8:]))
		}
	}
	return 0
}

func uptime(fs sysfs.FS) float64 {
	first, _, _ := strings.Cut(fs.Text("proc/uptime"), " ")
	s, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return s
}

// openDriver reports whether the driver of NVIDIA that runs is the open one: "NVRM
// version: NVIDIA UNIX Open Kernel Module for x86_64 ..."; nil where none runs.
func openDriver(fs sysfs.FS) *bool {
	text := fs.Text("proc/driver/nvidia/version")
	if !strings.Contains(text, "NVIDIA UNIX") {
		return nil
	}
	open := strings.Contains(text, "Open Kernel Module")
	return &open
}

const bus = "sys/bus/pci/devices"

func functions(fs sysfs.FS) []wire.PCILink {
	list := []wire.PCILink{}
	for _, at := range fs.Names(bus) {
		text := func(name string) string { return fs.Text(bus, at, name) }
		l := wire.PCILink{Address: at, Class: strings.TrimPrefix(text("class"), "0x"), Vendor: strings.TrimPrefix(text("vendor"), "0x"), Device: strings.TrimPrefix(text("device"), "0x")}
		if !wanted(l.Class) {
			continue
		}
		l.Width, l.MaxWidth = width(text("current_link_width")), width(text("max_link_width"))
		l.Speed, l.MaxSpeed = speed(text("current_link_speed")), speed(text("max_link_speed"))
		l.Fatal, l.NonFatal = total(text("aer_dev_fatal"), "TOTAL_ERR_FATAL"), total(text("aer_dev_nonfatal"), "TOTAL_ERR_NONFATAL")
		l.Corrected = total(text("aer_dev_correctable"), "TOTAL_ERR_COR")
		l.Above, l.NUMA = sysfs.Bridges(fs.Real(bus, at)), node(text("numa_node"))
		l.Carriers, l.Bits = interfaces(fs, at)
		l.MTU = mtu(fs, at)
		l.Domain = text("iommu_group/type")
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b wire.PCILink) int { return strings.Compare(a.Address, b.Address) })
	return list
}

func wanted(class string) bool {
	for _, c := range classes {
		if strings.HasPrefix(class, c) {
			return true
		}
	}
	return false
}

// width is a count of lanes. The kernel writes 0 for a function inside of a chip
// and 255 for a link that it cannot read.
func width(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 || n == 255 {
		return nil
	}
	return &n
}

// speed reads "32.0 GT/s PCIe"; a speed that the kernel does not know is "Unknown".
func speed(s string) *float64 {
	number, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0 && v < 1e18) {
		return nil
	}
	return &v
}

// total is a line of an AER counter file, "TOTAL_ERR_FATAL 0"; nil where the
// device has no such counters.
func total(text, name string) *int64 {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == name {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}

func memory(fs sysfs.FS) []wire.MemoryErrors {
	const edac = "sys/devices/system/edac/mc"
	var list []wire.MemoryErrors
	for _, mc := range fs.Names(edac) {
		if fs.Exists(edac, mc, "ue_count") {
			list = append(list, wire.MemoryErrors{Controller: mc, Corrected: fs.Int(edac, mc, "ce_count"), Uncorrected: fs.Int(edac, mc, "ue_count")})
		}
	}
	return list
}

// governors counts CPUs by their governor.
func governors(fs sysfs.FS) map[string]int {
	const cpus = "sys/devices/system/cpu"
	var counts map[string]int
	for _, cpu := range fs.Names(cpus) {
		if g := fs.Text(cpus, cpu, "cpufreq", "scaling_governor"); g != "" {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[g]++
		}
	}
	return counts
}
