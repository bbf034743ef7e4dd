// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/unit"
)

// Firmware is how a node boots from its network.
type Firmware string

// The boot ways of a hardware block.
const (
	BootUEFI     Firmware = "uefi"      // PXE by UEFI
	BootUEFIHTTP Firmware = "uefi-http" // UEFI HTTP boot
	BootBIOS     Firmware = "bios"      // PXE by BIOS
)

// Arch is an architecture of processors, by the name that Debian, Go and OCI have for it.
type Arch string

// The architectures of hardware and images.
const (
	AMD64 Arch = "amd64" // the default
	ARM64 Arch = "arm64"
)

// Hardware is what one chassis is, and what it must measure up to. Counts that
// are zero were not given and are not checked.
type Hardware struct {
	Name        string
	Vendor      string // as SMBIOS says it; empty: not checked
	Product     string
	Arch        Arch // of its processors
	PageSize    int  // bytes of a page of memory, as the kernel is to have it; 0: not checked
	RackUnits   int
	Weight      unit.Mass
	Boot        Firmware
	BootTimeout time.Duration // longest silence between power-on, netboot and agent; 0: 15 minutes
	Loader      string        // "" or "undionly.kpxe": forced on BIOS ROMs that are iPXE themselves
	BootOrder   string        // "disk" or "network": what UEFI firmware is to try first
	SecureBoot  bool
	Kexec       bool   // the install ramdisk starts the installed system itself
	TPM         string // "", "1.2" or "2.0"
	Power       Power
	CPU         CPU
	Memory      Memory
	GPUs        []GPU
	Disks       []Disk
	NICs        []NIC // nic and hca blocks, in the order of the file
	DPUs        []DPU
	Versions    FirmwareVersions
	BIOS        map[string]string // settings by the vendor's names
	Console     Console
	Decl        hcl.Range
	Ranges      map[string]hcl.Range // the places of the attributes that were given
}

// GPUCount is the number of GPUs of one chassis.
func (h *Hardware) GPUCount() int {
	n := 0
	for _, g := range h.GPUs {
		n += g.Count
	}
	return n
}

// NIC returns the nic or hca block of that name.
func (h *Hardware) NIC(name string) (*NIC, bool) {
	for i := range h.NICs {
		if h.NICs[i].Name == name {
			return &h.NICs[i], true
		}
	}
	return nil, false
}

// Port returns the NIC and the index of a port, which is written nic/index.
func (h *Hardware) Port(name string) (nic *NIC, index int, ok bool) {
	block, number, _ := strings.Cut(name, "/")
	nic, ok = h.NIC(block)
	index, err := strconv.Atoi(number)
	return nic, index, ok && err == nil && index >= 0 && index < len(nic.Ports)
}

// BootNIC returns the NIC with boot = true: a site with a second one is refused
// (nic.boot).
func (h *Hardware) BootNIC() (*NIC, bool) {
	for i := range h.NICs {
		if h.NICs[i].Boot {
			return &h.NICs[i], true
		}
	}
	return nil, false
}

// Disk returns the disk block of that name.
func (h *Hardware) Disk(name string) (*Disk, bool) {
	for i := range h.Disks {
		if h.Disks[i].Name == name {
			return &h.Disks[i], true
		}
	}
	return nil, false
}

// Power is what a chassis draws.
type Power struct {
	Typical, Max unit.Watts
	Supplies     int          // built in
	Required     int          // needed at Max
	Inrush       unit.Watts   // while it is switched on, until it has settled; 0: not given
	Liquid       unit.Percent // share of the heat that goes into liquid
	Decl         hcl.Range
}

// CPU is the processors of a chassis.
type CPU struct {
	Model   string
	Sockets int
	Cores   int // of all sockets
	Decl    hcl.Range
}

// Memory is the main memory of a chassis.
type Memory struct {
	Size  unit.Bytes
	DIMMs int
	Decl  hcl.Range
}

// GPU is a set of equal GPUs.
type GPU struct {
	Vendor       string // "nvidia" or "amd"
	Model        string
	Count        int
	Memory       unit.Bytes // of each; 0: not given
	Interconnect string     // "nvswitch", "nvlink", "xgmi" or "" (PCIe)
	Decl         hcl.Range
}

// Disk is a set of equal disks under the name that disk layouts use. A disk fits
// when it has all that is given.
type Disk struct {
	Name   string
	Type   string // "nvme", "sata", "sas", "virtio"
	Model  string // or a part of it
	Count  int    // exactly so many; default 1
	Size   unit.Limit[unit.Bytes]
	Serial string // of one disk, wherever it is
	WWN    string // the same
	PCI    string // of the controller, or of the NVMe disk itself
	Bay    string // the label on the chassis
	ByPath string // link in /dev/disk/by-path, without the folder
	Decl   hcl.Range
}

// Identified reports whether the block says which very disk it is.
func (d Disk) Identified() bool { return d.Serial != "" || d.WWN != "" }

// Placed reports whether the block says where its disks are.
func (d Disk) Placed() bool { return d.PCI != "" || d.Bay != "" || d.ByPath != "" }

// NIC is a set of equal network ports: a nic block (Ethernet of the node) or an
// hca block (a port of a fabric).
type NIC struct {
	Name         string
	HCA          bool // written as hca
	Model        string
	Speed        unit.BitRate // 0: not given
	LinkType     string       // "", "infiniband" or "ethernet"
	SoftwareRDMA string       // "" or "rxe"
	Network      *Network     // of a nic; nil on a fabric. One with a vlan is tagged, but for the network that boots
	Tagged       []*Network   // of a nic: further networks on its ports, each with a vlan
	Fabric       *Fabric      // nil on a network
	Boot         bool         // the firmware boots from these ports, in this order
	OptionROM    *bool        // of the card: the firmware can boot from it; nil: as delivered
	Split        int          // ports that the one cage of each card is split into, each a function of the card; 0: as delivered
	Ports        []NICPort
	Decl         hcl.Range
	Ranges       map[string]hcl.Range // the places of the attributes that were given
}

// NICPort is one port of a NIC.
type NICPort struct {
	Rail  int    // of its fabric; -1 on a network
	PCI   string // address such as 0000:18:00.0
	Panel string // label on the case, for technicians
}

// DPU is a set of equal data processing units.
type DPU struct {
	Name, Model, Mode string   // Mode "dpu" or "nic"
	PCI               []string // of the first function of each card: 0000:3b:00.0
	Count             int
	BMC               bool // has a BMC of its own
	Decl              hcl.Range
	Ranges            map[string]hcl.Range // the places of the attributes that were given
}

// FirmwareVersions are the versions that the chassis must run.
type FirmwareVersions struct {
	BMC, BIOS, HCA, GPU unit.VersionLimit
	Decl                hcl.Range
}

// Console is the serial console of a chassis.
type Console struct {
	Port string // Linux name such as ttyS1; empty: none
	Baud int
	Decl hcl.Range
}

// Splits reports whether the cages of NICs are split into several ports.
func (h *Hardware) Splits() bool {
	return slices.ContainsFunc(h.NICs, func(n NIC) bool { return n.Split > 0 })
}

// AppearsLater reports whether a PCI function is one that its card shows once its cage is
// split: all but the first.
func (h *Hardware) AppearsLater(pci string) bool {
	_, function, _ := strings.Cut(pci, ".")
	return function != "0" && slices.ContainsFunc(h.NICs, func(n NIC) bool {
		return n.Split > 0 && slices.ContainsFunc(n.Ports, func(p NICPort) bool { return strings.EqualFold(p.PCI, pci) })
	})
}
