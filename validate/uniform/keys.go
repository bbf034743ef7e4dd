// SPDX-License-Identifier: Apache-2.0

package uniform

import "slices"

// Area is what a site can allow to differ.
type Area int

// The areas.
const (
	Firmware Area = iota // versions of what is in flash
	Setting              // what is set on GPUs
	System               // the kernel and its drivers
)

// Kind is one thing that nodes of a role have in common.
type Kind struct {
	Key    string // as Trait.Key
	Area   Area
	Part   string // what has it, where its parts do not say
	Fault  bool   // an outlier is taken out: collectives run at the pace of the outlier, or fail
	Action string // what to do about an outlier
}

// The traits.
const (
	GPUVBIOS       = "GPU VBIOS"
	GPUInfoROM     = "GPU InfoROM"
	GPUMIG         = "GPU MIG mode"
	GPUECC         = "GPU ECC mode"
	GPUCompute     = "GPU compute mode"
	GPUPersistence = "GPU persistence mode"
	GPUPartition   = "GPU partition"
	GPUClock       = "GPU highest clock"
	GPUPower       = "GPU power limit"
	GPUDriver      = "GPU driver"
	NICs           = "NICs"
	NICFirmware    = "NIC firmware"
	NICDriver      = "NIC driver"
	DiskFirmware   = "disk firmware"
	BIOS           = "BIOS"
	BMC            = "BMC firmware"
	Microcode      = "CPU microcode"
	Kernel         = "kernel"
	Arguments      = "kernel arguments"
)

const (
	doFlash    = "Update or exchange the outlier's firmware so that it is as that of the others; the BMC's page or the vendor's tool does it."
	doSetGPU   = "Set it as the others have it, persistently: nvidia-smi (-mig, -e, -c, -pm, -pl, -lgc), or amd-smi set."
	doSoftware = "Find out what changed it on this node: `ironrail rebuild` installs what the site asks for."
	doNIC      = "Burn the firmware that the others have: flint -d DEVICE -i IMAGE burn, then reset or power-cycle the NIC."
	doParts    = "Find out which NIC is another model: its label, or `lspci -vv` for the part number; exchange it, or give the node a hardware block of its own."
)

// Keys are the traits in the order in which they are shown. A mere minority is a
// fault where a collective feels it; else it is a note.
var Keys = []Kind{
	{GPUVBIOS, Firmware, "GPU", true, doFlash},
	{GPUInfoROM, Firmware, "GPU", false, doFlash},
	{GPUMIG, Setting, "GPU", true, doSetGPU},
	{GPUECC, Setting, "GPU", true, doSetGPU},
	{GPUCompute, Setting, "GPU", true, doSetGPU},
	{GPUPersistence, Setting, "GPU", false, doSetGPU},
	{GPUPartition, Setting, "GPU", true, doSetGPU},
	{GPUClock, Setting, "GPU", true, doSetGPU},
	{GPUPower, Setting, "GPU", true, doSetGPU},
	{GPUDriver, System, "driver", true, doSoftware},
	{NICs, Firmware, "NICs", false, doParts},
	{NICFirmware, Firmware, "NIC", true, doNIC},
	{NICDriver, System, "driver", true, doSoftware},
	{DiskFirmware, Firmware, "disk", false, doFlash},
	{BIOS, Firmware, "BIOS", false, doFlash},
	{BMC, Firmware, "BMC", false, doFlash},
	{Microcode, Firmware, "CPU", false, doFlash},
	{Kernel, System, "kernel", true, doSoftware},
	{Arguments, System, "kernel", false, doSoftware},
}

// rankKey returns the place of a key among Keys.
func rankKey(key string) int {
	return slices.IndexFunc(Keys, func(k Kind) bool { return k.Key == key })
}
