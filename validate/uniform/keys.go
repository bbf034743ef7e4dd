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
	Model                // what was bought: models, sizes, places
)

// Kind is one thing that nodes of a role have in common.
type Kind struct {
	Key    string // as Trait.Key
	Area   Area
	Part   string // what has it, where its parts do not say
	Fault  bool   // an outlier is taken out: it is not what was bought, or collectives run at its pace or fail
	Action string // what to do about an outlier
	// Mixture: parts of one node are meant to differ, such as rails and boot NICs, and what
	// most nodes have is a mixture.
	Mixture bool
	// Mixed: makers deliver several that are alike, so that more than a few outliers are a
	// second kind, which is noted.
	Mixed bool
	// Elsewhere: a part without it, and one of which it has changed, is found by another check.
	Elsewhere bool
}

// The traits.
const (
	CPUModel       = "CPU model"
	CPUCores       = "CPU cores"
	DIMMSlots      = "DIMMs"
	DIMM           = "DIMM"
	GPUModel       = "GPU model"
	GPUMemory      = "GPU memory"
	GPUID          = "GPU PCI id"
	GPUPCIe        = "GPU PCIe link"
	NICModel       = "NIC model"
	NICPCIe        = "NIC PCIe link"
	DiskSize       = "disk size"
	DiskModel      = "disk model"
	DiskPCIe       = "disk PCIe link"
	SMT            = "SMT"
	NUMA           = "NUMA nodes"
	TPM            = "TPM"
	MTU            = "MTU"
	TimeSource     = "time source"
	Transceiver    = "transceiver"
	OpticFirmware  = "transceiver firmware"
	MemoryNode     = "nearest NUMA node"
	PCIePath       = "PCIe path"
	Bridges        = "PCIe bridges"
	BridgeACS      = "ACS control"
	Disks          = "disks"
	DiskType       = "disk type"
	DiskSector     = "disk sector"
	RDMAPort       = "RDMA port"
	PeerMem        = "nvidia_peermem"
	Fans           = "fans"
	Supplies       = "power supplies"
	GPUPart        = "GPU part number"
	GPUGSP         = "GPU GSP firmware"
	GPUInstances   = "GPU MIG devices"
	GPURAS         = "GPU error correction"
	NVLinkRate     = "NVLink rate"
	XGMI           = "xGMI link"
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
	doBought   = "Read the part's label and compare it with the order; exchange the part, or give the node a hardware block of its own."
	doDIMM     = "Compare the module's label with those of the others, and its slot with the board's table of slots; reseat or exchange it."
	doOptic    = "Compare the label of the transceiver or cable with the order and with the list of parts that the NIC supports; exchange it."
	doLink     = "Look at the slot's settings in the BIOS, then exchange the part, its riser and its slot one by one."
	doBIOS     = "Set it in the BIOS as the others have it (`bios` of a hardware block sets it on all), and boot the node again."
	doTPM      = "Switch the TPM on in the firmware's setup as it is on the others, or set its version there; else have its module fitted."
	doMTU      = "Find out what set it on this node, and set it as the others have it."
	doTime     = "Look at `chronyc sources` or `timedatectl` of the node: the service must run, and its time servers must answer."
	doPlace    = "Compare the node's slots, risers and cables with those of the others and with its maker's drawing, and its BIOS settings with theirs."
	doFans     = "Look which fan or power supply is not plugged in, or which the BMC does not list; compare the BMC's firmware with that of the others."
	doDisks    = "Look which disk is not there, or more than was ordered: its bay, its cable and its backplane; or give the node a hardware block of its own."
	doParts    = "Find out which NIC is another model: its label, or `lspci -vv` for the part number; exchange it, or give the node a hardware block of its own."
)

// Keys are the traits in the order in which they are shown. A mere minority is a
// fault where a collective feels it; else it is a note.
var Keys = []Kind{
	{Key: CPUModel, Area: Model, Part: "CPU", Fault: true, Action: doBought},
	{Key: CPUCores, Area: Model, Part: "CPU", Fault: true, Action: doBIOS},
	{Key: DIMMSlots, Area: Model, Part: "memory", Fault: true, Action: doDIMM},
	{Key: DIMM, Area: Model, Part: "memory", Fault: true, Action: doDIMM, Mixture: true},
	{Key: GPUModel, Area: Model, Part: "GPUs", Fault: true, Action: doBought, Mixture: true},
	{Key: GPUMemory, Area: Model, Part: "GPUs", Fault: true, Action: doBought, Mixture: true},
	{Key: GPUID, Area: Model, Part: "GPUs", Fault: true, Action: doBought, Mixture: true},
	{Key: GPUPCIe, Area: Model, Part: "GPUs", Fault: true, Action: doLink},
	{Key: NICModel, Area: Model, Part: "NIC", Fault: true, Action: doBought, Mixture: true},
	{Key: NICPCIe, Area: Model, Part: "NIC", Fault: true, Action: doLink, Mixture: true},
	{Key: Transceiver, Area: Model, Part: "NIC", Fault: true, Action: doOptic, Mixed: true, Mixture: true},
	{Key: OpticFirmware, Area: Firmware, Part: "NIC", Action: doFlash},
	{Key: PCIePath, Area: Model, Part: "PCIe slot", Fault: true, Action: doPlace, Mixed: true, Mixture: true, Elsewhere: true},
	{Key: Bridges, Area: Model, Part: "PCIe slots", Action: doPlace, Elsewhere: true},
	{Key: Fans, Area: Model, Part: "fans", Fault: true, Action: doFans, Mixed: true},
	{Key: Supplies, Area: Model, Part: "power supplies", Fault: true, Action: doFans, Mixed: true},
	{Key: Disks, Area: Model, Part: "disks", Fault: true, Action: doDisks},
	{Key: DiskType, Area: Model, Part: "disk", Fault: true, Action: doBought, Mixture: true, Elsewhere: true},
	{Key: DiskSector, Area: Setting, Part: "disk", Action: doBought, Mixture: true, Elsewhere: true},
	{Key: DiskSize, Area: Model, Part: "disk", Fault: true, Action: doBought, Mixture: true},
	{Key: DiskModel, Area: Model, Part: "disk", Fault: true, Action: doBought, Mixed: true, Mixture: true},
	{Key: DiskPCIe, Area: Model, Part: "disk", Fault: true, Action: doLink, Mixed: true, Mixture: true},
	{Key: SMT, Area: Setting, Part: "CPU", Fault: true, Action: doBIOS},
	{Key: NUMA, Area: Setting, Part: "CPU", Fault: true, Action: doBIOS},
	{Key: TPM, Area: Setting, Part: "TPM", Fault: true, Action: doTPM},
	{Key: MemoryNode, Area: Setting, Part: "PCIe slot", Fault: true, Action: doPlace, Mixture: true, Elsewhere: true},
	{Key: BridgeACS, Area: Setting, Part: "PCIe switches", Action: doBIOS, Mixture: true, Elsewhere: true},
	{Key: RDMAPort, Area: Setting, Part: "NIC", Action: doOptic, Mixture: true, Elsewhere: true},
	{Key: MTU, Area: Setting, Part: "NIC", Fault: true, Action: doMTU, Mixture: true},
	{Key: TimeSource, Area: Setting, Part: "clock", Fault: true, Action: doTime},
	{Key: GPUVBIOS, Area: Firmware, Part: "GPU", Fault: true, Action: doFlash},
	{Key: GPUInfoROM, Area: Firmware, Part: "GPU", Action: doFlash},
	{Key: GPUPart, Area: Model, Part: "GPU", Action: doBought},
	{Key: GPUGSP, Area: Firmware, Part: "GPU", Action: doSoftware, Elsewhere: true},
	{Key: NVLinkRate, Area: Setting, Part: "GPU", Action: doSetGPU, Elsewhere: true},
	{Key: XGMI, Area: Setting, Part: "GPU", Action: doSetGPU, Mixture: true, Elsewhere: true},
	{Key: GPURAS, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUInstances, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUMIG, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUECC, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUCompute, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUPersistence, Area: Setting, Part: "GPU", Action: doSetGPU},
	{Key: GPUPartition, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUClock, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUPower, Area: Setting, Part: "GPU", Fault: true, Action: doSetGPU},
	{Key: GPUDriver, Area: System, Part: "driver", Fault: true, Action: doSoftware},
	{Key: PeerMem, Area: System, Part: "driver", Action: doSoftware},
	{Key: NICs, Area: Firmware, Part: "NICs", Action: doParts},
	{Key: NICFirmware, Area: Firmware, Part: "NIC", Fault: true, Action: doNIC},
	{Key: NICDriver, Area: System, Part: "driver", Fault: true, Action: doSoftware},
	{Key: DiskFirmware, Area: Firmware, Part: "disk", Action: doFlash},
	{Key: BIOS, Area: Firmware, Part: "BIOS", Action: doFlash},
	{Key: BMC, Area: Firmware, Part: "BMC", Action: doFlash},
	{Key: Microcode, Area: Firmware, Part: "CPU", Action: doFlash},
	{Key: Kernel, Area: System, Part: "kernel", Fault: true, Action: doSoftware},
	{Key: Arguments, Area: System, Part: "kernel", Action: doSoftware},
}

// rankKey returns the place of a key among Keys.
func rankKey(key string) int {
	return slices.IndexFunc(Keys, func(k Kind) bool { return k.Key == key })
}
