// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// classes are the PCI classes of parts that are worth looking at; the first
// digits that fit count. GPUs lower the speed of their PCIe link when they are
// idle, so that only its width says something about them.
var classes = []struct {
	class, what string
	speed       bool
}{
	{"0302", "GPU", false}, {"0300", "display", false}, {"1200", "accelerator", false},
	{"02", "NIC", true}, {"0108", "NVMe", true}, {"0680", "NVSwitch", false},
}

// functions are GPUs, NICs and disks on the PCI bus, and their PCIe links.
func (b *reading) functions() {
	const bus = "sys/bus/pci/devices"
	for _, at := range b.FS.Names(bus) {
		text := func(name string) string { return b.FS.Text(bus, at, name) }
		class := strings.TrimPrefix(text("class"), "0x")
		for _, c := range classes {
			if !strings.HasPrefix(class, c.class) {
				continue
			}
			b.add(wire.ItemHardware, at, c.what, strings.TrimPrefix(text("vendor"), "0x")+":"+strings.TrimPrefix(text("device"), "0x"))
			b.add(wire.ItemLink, at, "PCIe width", known(text("current_link_width")))
			if c.speed {
				b.add(wire.ItemLink, at, "PCIe speed", known(text("current_link_speed")))
			}
			b.corrected(at, text("aer_dev_correctable"))
			break
		}
		b.nvidia(at)
	}
	const edac = "sys/devices/system/edac/mc"
	for _, mc := range b.FS.Names(edac) {
		if b.FS.Exists(edac, mc, "ce_count") {
			b.out.Counters = append(b.out.Counters, wire.Counter{Part: "memory " + mc, Name: wire.CorrectedMemory, Value: b.FS.Int(edac, mc, "ce_count")})
		}
	}
}

// corrected is how many errors a PCIe link corrected, where the operating system owns AER.
func (b *reading) corrected(at, text string) {
	for line := range strings.Lines(text) {
		if n, told := strings.CutPrefix(strings.TrimSpace(line), "TOTAL_ERR_COR "); told {
			if v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64); err == nil && v >= 0 {
				b.out.Counters = append(b.out.Counters, wire.Counter{Part: at, Name: wire.CorrectedPCIe, Value: v})
			}
		}
	}
}

// known drops what the kernel says of links that it cannot read.
func known(s string) string {
	if s == "0" || s == "255" || strings.HasPrefix(s, "Unknown") {
		return ""
	}
	return s
}

// nvidia is what the driver says of one GPU (/proc/driver/nvidia/gpus/*/information).
func (b *reading) nvidia(at string) {
	for line := range strings.Lines(b.FS.Text("proc/driver/nvidia/gpus", at, "information")) {
		k, v, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(k) {
		case "GPU UUID":
			b.add(wire.ItemHardware, at, "GPU uuid", v)
		case "Video BIOS":
			if !strings.Contains(v, "?") { // not read yet
				b.add(wire.ItemFirmware, at, "video BIOS", v)
			}
		}
	}
}

// ports are the network interfaces with a PCI parent, and the RDMA devices.
func (b *reading) ports() {
	seen := map[string]int{}
	for _, dev := range b.FS.Netdevs() {
		at := func(name string) string { return b.FS.Text("sys/class/net", dev, name) }
		part := b.part(b.FS.NetdevPCI(dev), seen)
		b.add(wire.ItemHardware, part, "MAC", at("address"))
		b.add(wire.ItemNetwork, part, "mtu", at("mtu"))
		state := at("operstate")
		if state == "up" || state == "down" {
			b.add(wire.ItemLink, part, "state", state)
		}
		if n, err := strconv.ParseInt(at("speed"), 10, 64); err == nil && n > 0 {
			b.add(wire.ItemLink, part, "speed", strconv.FormatInt(n, 10)+" Mb/s")
		}
		b.count(part, netCounters, "sys/class/net", dev)
	}
	for _, dev := range b.FS.Names("sys/class/infiniband") {
		b.rdma(dev)
	}
}

// part names a port by its PCI address; further ports of one function are distinguished
// by a number.
func (b *reading) part(pci string, seen map[string]int) string {
	seen[pci]++
	if n := seen[pci]; n > 1 {
		return pci + "/" + strconv.Itoa(n)
	}
	return pci
}

// The counters of errors, below a network interface and below an RDMA port.
var (
	netCounters  = []string{"statistics/rx_crc_errors", "statistics/rx_frame_errors", "statistics/tx_carrier_errors"}
	rdmaCounters = []string{"counters/symbol_error", "counters/link_downed", "counters/link_error_recovery", "counters/port_rcv_errors", "counters/local_link_integrity_errors", "counters/excessive_buffer_overrun_errors"}
)

// rdma is one RDMA device. One that is made in software is known by its name.
func (b *reading) rdma(dev string) {
	at := func(name ...string) string {
		return b.FS.Text(append([]string{"sys/class/infiniband", dev}, name...)...)
	}
	part := dev
	if real := b.FS.Real("sys/class/infiniband", dev, "device"); real != "" {
		part = b.FS.Link("sys/class/infiniband", dev, "device")
	}
	b.add(wire.ItemFirmware, part, "HCA", at("fw_ver"))
	b.add(wire.ItemHardware, part, "HCA", strings.TrimSpace(at("hca_type")+" "+at("board_id")))
	for _, port := range b.FS.Names("sys/class/infiniband", dev, "ports") {
		name := part
		if port != "1" {
			name += " port " + port
		}
		_, state, _ := strings.Cut(at("ports", port, "state"), ": ")
		b.add(wire.ItemLink, name, "RDMA state", state)
		if state == "ACTIVE" {
			b.add(wire.ItemLink, name, "RDMA rate", at("ports", port, "rate"))
		}
		b.add(wire.ItemNetwork, name, "link layer", at("ports", port, "link_layer"))
		b.count(name, rdmaCounters, "sys/class/infiniband", dev, "ports", port)
	}
}

// count reads counters; one that the driver does not have is left out.
func (b *reading) count(part string, names []string, at ...string) {
	for _, name := range names {
		n, err := strconv.ParseInt(b.FS.Text(append(at[:len(at):len(at)], name)...), 10, 64)
		if err == nil && n >= 0 {
			b.out.Counters = append(b.out.Counters, wire.Counter{Part: part, Name: name[strings.IndexByte(name, '/')+1:], Value: n})
		}
	}
}
