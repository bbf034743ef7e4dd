// SPDX-License-Identifier: Apache-2.0

// Package inspect reports the hardware of a node from what its kernel shows
// below /sys and /proc. It changes nothing. Text from firmware is passed on as it
// is, trimmed: whoever shows it escapes it.
package inspect

import (
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/smbios"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Inspector reads one node.
type Inspector struct {
	FS      sysfs.FS                   // the root of the node
	BootMAC addr.MAC                   // the NIC that booted, as the boot file names it
	RDMA    func(netdev string) string // the RDMA device above a network interface, "" for none; nil: not looked for
	Open    disk.Opener                // of the disks that FS lists; nil: disk.Open
}

// Chassis reports who the node is, its CPUs and its memory.
func (i Inspector) Chassis() wire.Hardware {
	return wire.Hardware{Identity: i.Identity(), CPU: i.cpu(), Memory: i.memory()}
}

// Hardware reports everything.
func (i Inspector) Hardware() wire.Hardware {
	dmi := func(name string) string { return i.FS.Text("sys/class/dmi/id", name) }
	firmware := "bios"
	if i.UEFI() {
		firmware = "uefi"
	}
	return wire.Hardware{
		Identity: i.Identity(),
		BIOS:     strings.TrimSpace(dmi("bios_vendor") + " " + dmi("bios_version")),
		Firmware: firmware,
		CPU:      i.cpu(),
		Memory:   i.memory(),
		NICs:     i.nics(),
		Disks:    i.Disks(),
		PCI:      i.pci(),
		RDMA:     i.rdma(),
		TPM:      TPM(i.FS),

		SecureBoot: secureboot.Read(i.FS),
	}
}

// TPM is the version of the specification that the node's TPM follows, wire.NoTPM where there is
// none, or "" where the kernel does not say: it was built without drivers of TPMs, or does not
// know the version. From Linux 5.6 on it does (tpm_version_major of
// Documentation/ABI/stable/sysfs-class-tpm).
func TPM(fs sysfs.FS) string {
	const class = "sys/class/tpm"
	if !fs.Exists(class) {
		return ""
	}
	devices := fs.Names(class)
	if len(devices) == 0 {
		return wire.NoTPM
	}
	switch fs.Text(class, devices[0], "tpm_version_major") {
	case "2":
		return "2.0"
	case "1":
		return "1.2"
	}
	return ""
}

// UEFI reports whether the kernel was started by UEFI firmware.
func (i Inspector) UEFI() bool { return i.FS.Exists("sys/firmware/efi") }

// Identity says which chassis this is.
func (i Inspector) Identity() wire.Identity {
	dmi := func(name string) string { return i.FS.Text("sys/class/dmi/id", name) }
	return wire.Identity{
		Vendor:  dmi("sys_vendor"),
		Product: dmi("product_name"),
		Serial:  dmi("product_serial"),
		UUID:    strings.ToLower(dmi("product_uuid")),
		BootMAC: i.BootMAC,
	}
}

// cpu counts by the topology that the kernel found. A core is a pair of package
// and core number; the numbers alone repeat in every package.
func (i Inspector) cpu() wire.CPU {
	c := wire.CPU{Model: i.model()}
	packages, cores := map[string]bool{}, map[string]bool{}
	for _, name := range i.FS.Names("sys/devices/system/cpu") {
		if !cpuName.MatchString(name) {
			continue
		}
		c.Threads++
		if !i.FS.Exists("sys/devices/system/cpu", name, "topology") { // it is offline
			continue
		}
		topology := func(what string) string { return i.FS.Text("sys/devices/system/cpu", name, "topology", what) }
		socket := topology("physical_package_id")
		packages[socket] = true
		cores[socket+" "+topology("core_id")] = true
	}
	c.Sockets, c.Cores = len(packages), len(cores)
	c.SMT, c.NUMA = i.smt(), i.numaNodes()
	return c
}

// smt reports whether a core runs more than one thread, as Linux says it from 4.19 on; nil
// where it does not.
func (i Inspector) smt() *bool {
	text := i.FS.Text("sys/devices/system/cpu/smt/active")
	if text != "0" && text != "1" {
		return nil
	}
	on := text == "1"
	return &on
}

// numaNodes counts the NUMA nodes that have CPUs: memory of GPUs and CXL has nodes of
// its own.
func (i Inspector) numaNodes() (n int) {
	for _, name := range i.FS.Names("sys/devices/system/node") {
		if i.FS.Text("sys/devices/system/node", name, "cpulist") != "" {
			n++
		}
	}
	return n
}

var cpuName = lazyregexp.New(`^cpu[0-9]+$`)

// model returns the first "model name" of /proc/cpuinfo (x86), or "".
func (i Inspector) model() string {
	for line := range strings.Lines(i.FS.Text("proc/cpuinfo")) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memory takes what is installed from SMBIOS and what is usable from the kernel.
func (i Inspector) memory() wire.Memory {
	var m wire.Memory
	for _, d := range smbios.Modules(i.FS.Bytes("sys/firmware/dmi/tables/DMI")) {
		m.Installed, m.DIMMs = m.Installed+d.Size, m.DIMMs+1
		m.Modules = append(m.Modules, moduleOf(d))
	}
	for line := range strings.Lines(i.FS.Text("proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			m.Usable = number(strings.TrimSuffix(strings.TrimSpace(rest), " kB")) << 10
		}
	}
	return m
}

func moduleOf(d smbios.Module) wire.Module {
	return wire.Module{Slot: d.Slot, Serial: d.Serial, Maker: d.Maker, Part: d.Part, Size: d.Size, Speed: d.Speed}
}

// Slots lists the memory slots; those that are empty have no size.
func (i Inspector) Slots() (list []wire.Module) {
	for _, d := range smbios.Slots(i.FS.Bytes("sys/firmware/dmi/tables/DMI")) {
		list = append(list, moduleOf(d))
	}
	return list
}

// nics lists the network interfaces with a PCI parent. The state of the link is
// known only where the interface is up, which in the ramdisk is the boot NIC.
func (i Inspector) nics() []wire.NIC {
	nics := []wire.NIC{}
	for _, name := range i.FS.Netdevs() {
		n := wire.NIC{Name: name, PCI: i.FS.NetdevPCI(name), Driver: i.FS.Link("sys/class/net", name, "device/driver")}
		n.MAC, _ = addr.ParseMAC(i.FS.Text("sys/class/net", name, "address")) // IPoIB has 20 bytes: no MAC
		n.Link = i.FS.Text("sys/class/net", name, "carrier") == "1"
		if speed := i.FS.Int("sys/class/net", name, "speed"); speed > 0 { // Mbit/s; -1 where the driver does not know
			n.Speed = speed * 1e6
		}
		nics = append(nics, n)
	}
	return nics
}

// pci lists every PCI function.
func (i Inspector) pci() []wire.PCI {
	functions := []wire.PCI{}
	for _, address := range i.FS.Names("sys/bus/pci/devices") {
		hex := func(name string) string {
			return strings.TrimPrefix(i.FS.Text("sys/bus/pci/devices", address, name), "0x")
		}
		functions = append(functions, wire.PCI{
			Address: address, Class: hex("class"), Vendor: hex("vendor"), Device: hex("device"),
			Driver: i.FS.Link("sys/bus/pci/devices", address, "driver"), Modalias: i.FS.Text("sys/bus/pci/devices", address, "modalias"),
		})
		if f := &functions[len(functions)-1]; accelerates(f.Class) {
			f.Socket = i.socket(address)
		}
	}
	return functions
}

// rdma lists the RDMA devices, each with the interface that stands below it.
func (i Inspector) rdma() []wire.RDMADev {
	below := map[string]string{}
	if i.RDMA != nil {
		for _, netdev := range i.FS.Netdevs() {
			if device := i.RDMA(netdev); device != "" {
				below[device] = netdev
			}
		}
	}
	var devices []wire.RDMADev
	for _, name := range i.FS.Names("sys/class/infiniband") {
		d := wire.RDMADev{Name: name, Netdev: below[name]}
		if guid, err := addr.ParseGUID(i.FS.Text("sys/class/infiniband", name, "node_guid")); err == nil {
			d.GUID = guid.String()
		}
		devices = append(devices, d)
	}
	return devices
}
