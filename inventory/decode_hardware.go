// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

func (l *loader) hardwareBlock(b *language.Body) *Hardware {
	h := &Hardware{
		Name: b.Name, Vendor: language.Get[string](b, "vendor"), Product: language.Get[string](b, "product"), Arch: Arch(language.Get[string](b, "arch")), RackUnits: language.Get[int](b, "rack_units"),
		Weight: language.Get[unit.Mass](b, "weight"), Boot: Firmware(language.Get[string](b, "boot")), SecureBoot: language.Get[bool](b, "secure_boot"), Kexec: language.Get[bool](b, "kexec"),
		BootTimeout: time.Duration(language.Get[unit.Duration](b, "boot_timeout")), Loader: language.Get[string](b, "loader"), BootOrder: language.Get[string](b, "boot_order"),
		TPM: language.Get[string](b, "tpm"), BIOS: language.Get[map[string]string](b, "bios"), Decl: b.Decl, Ranges: rangesOf(b),
	}
	l.pageSize(h, b)
	l.chassis(h, b)
	for _, g := range b.Blocks("gpu") {
		h.GPUs = append(h.GPUs, GPU{
			Vendor: language.Get[string](g, "vendor"), Model: language.Get[string](g, "model"), Count: language.Get[int](g, "count"),
			Memory: language.Get[unit.Bytes](g, "memory"), Interconnect: language.Get[string](g, "interconnect"), Decl: g.Decl,
		})
	}
	for _, d := range b.Blocks("disk") {
		h.Disks = append(h.Disks, Disk{
			Name: d.Name, Type: language.Get[string](d, "type"), Model: language.Get[string](d, "model"), Count: language.Get[int](d, "count"),
			Size: language.Get[unit.Limit[unit.Bytes]](d, "size"), Serial: language.Get[string](d, "serial"), WWN: language.Get[string](d, "wwn"),
			PCI: language.Get[string](d, "pci"), Bay: language.Get[string](d, "bay"), ByPath: language.Get[string](d, "by_path"), Decl: d.Decl,
		})
	}
	for _, n := range slices.Concat(b.Blocks("nic"), b.Blocks("hca")) {
		h.NICs = append(h.NICs, l.nic(n))
	}
	slices.SortStableFunc(h.NICs, func(a, b NIC) int { return a.Decl.Start.Byte - b.Decl.Start.Byte })
	for _, d := range b.Blocks("dpu") {
		h.DPUs = append(h.DPUs, DPU{
			Name: d.Name, Model: language.Get[string](d, "model"), Mode: language.Get[string](d, "mode"), PCI: language.GetList[string](d, "pci"), Count: language.Get[int](d, "count"), BMC: language.Get[bool](d, "bmc"), Decl: d.Decl, Ranges: rangesOf(d),
		})
	}
	l.checkHardware(h, b)
	return h
}

// chassis reads the blocks that a chassis has once.
func (l *loader) chassis(h *Hardware, b *language.Body) {
	if p := b.Block("power"); p != nil {
		h.Power = Power{Typical: language.Get[unit.Watts](p, "typical"), Max: language.Get[unit.Watts](p, "max"), Supplies: language.Get[int](p, "supplies"), Required: language.Get[int](p, "required"),
			Inrush: language.Get[unit.Watts](p, "inrush"), Liquid: language.Get[unit.Percent](p, "liquid"), Decl: p.Decl}
		l.positive(p, "max", float64(h.Power.Max))
		if h.Power.Typical == 0 {
			h.Power.Typical = h.Power.Max
		}
		if !p.Given("required") {
			h.Power.Required = h.Power.Supplies
		}
	}
	if c := b.Block("cpu"); c != nil {
		h.CPU = CPU{Model: language.Get[string](c, "model"), Sockets: language.Get[int](c, "sockets"), Cores: language.Get[int](c, "cores"), Decl: c.Decl}
	}
	if m := b.Block("memory"); m != nil {
		l.positive(m, "size", float64(language.Get[unit.Bytes](m, "size")))
		h.Memory = Memory{Size: language.Get[unit.Bytes](m, "size"), DIMMs: language.Get[int](m, "dimms"), Decl: m.Decl}
	}
	if f := b.Block("firmware"); f != nil {
		h.Versions = FirmwareVersions{
			BMC: language.Get[unit.VersionLimit](f, "bmc"), BIOS: language.Get[unit.VersionLimit](f, "bios"), HCA: language.Get[unit.VersionLimit](f, "hca"),
			GPU: language.Get[unit.VersionLimit](f, "gpu"), Decl: f.Decl,
		}
	}
	if c := b.Block("console"); c != nil {
		h.Console = Console{Port: language.Get[string](c, "port"), Baud: language.Get[int](c, "baud"), Decl: c.Decl}
	} else if h.Arch == ARM64 {
		h.Console = Console{Port: armConsole, Baud: armBaud, Decl: h.Decl}
	}
}

// armConsole is the serial port of servers with arm64 processors: SBSA asks for a UART of
// ARM's (PL011), which Linux calls so.
const (
	armConsole = "ttyAMA0"
	armBaud    = 115200
)

func (l *loader) nic(b *language.Body) NIC {
	n := NIC{
		Name: b.Name, HCA: b.Type == "hca", Model: language.Get[string](b, "model"), Speed: language.Get[unit.BitRate](b, "speed"), LinkType: language.Get[string](b, "link_type"),
		SoftwareRDMA: language.Get[string](b, "software_rdma"), Network: readRef(b, "network", l.networks), Fabric: readRef(b, "fabric", l.fabrics), Boot: language.Get[bool](b, "boot"), Tagged: readRefs(b, "tagged", l.networks),
		Ports: language.Get[[]NICPort](b, "ports"), Split: language.Get[int](b, "split"), Decl: b.Decl, Ranges: rangesOf(b),
	}
	if b.Given("option_rom") {
		on := language.Get[bool](b, "option_rom")
		n.OptionROM = &on
	}
	for _, pci := range language.GetList[string](b, "pci") {
		n.Ports = append(n.Ports, NICPort{Rail: -1, PCI: pci})
	}
	l.checkNIC(&n, b)
	return n
}
