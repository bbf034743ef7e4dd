// SPDX-License-Identifier: Apache-2.0

package wire

// Health is what the kernel knows of a node's parts that can be there and still
// not be well: `ironrail-agent health` prints it. Pointers are nil, and strings
// empty, where the kernel does not say.
type Health struct {
	PCI       []PCILink        `json:"pci"`               // GPUs, NICs and NVMe disks
	Bridges   []PCIBridge      `json:"bridges,omitempty"` // above one of them
	Memory    []MemoryErrors   `json:"memory,omitempty"`  // of each memory controller
	Disks     []NVMe           `json:"disks,omitempty"`   // with what they say of themselves
	CPU       CPU              `json:"cpu,omitzero"`
	DIMMs     []Module         `json:"dimms,omitempty"`     // every slot; an empty one has no size
	Drives    []Disk           `json:"drives,omitempty"`    // fixed disks of every kind, without what is on them
	Governors map[string]int   `json:"governors,omitempty"` // CPUs by cpufreq governor
	Clock     string           `json:"clock,omitempty"`     // the clocksource in use
	PageSize  int              `json:"page_size,omitempty"` // bytes of a page of memory
	Ports     []InfiniBandPort `json:"ports,omitempty"`
	Kernel    string           `json:"kernel,omitempty"`      // release
	Uptime    float64          `json:"uptime,omitempty"`      // seconds since the boot
	IOMMUs    []string         `json:"iommus,omitempty"`      // that translate: dmar0, ivhd0, smmu3.0x...
	DirectNIC bool             `json:"direct_nic,omitempty"`  // a NIC has a PCI function of its own for GPUs (ConnectX-8 Data Direct)
	PeerMem   bool             `json:"peer_mem,omitempty"`    // nvidia_peermem is loaded
	OpenGPU   *bool            `json:"open_driver,omitempty"` // NVIDIA's driver that runs is the open one
	TPM       string           `json:"tpm,omitempty"`         // as of Hardware
	Error     *TaskError       `json:"error,omitempty"`
}

// PCILink is one PCI function and its link.
type PCILink struct {
	Address  string   `json:"address"`
	Class    string   `json:"class"`  // six hex digits
	Vendor   string   `json:"vendor"` // four hex digits
	Device   string   `json:"device"`
	Width    *int     `json:"width,omitempty"` // lanes
	MaxWidth *int     `json:"max_width,omitempty"`
	Speed    *float64 `json:"speed,omitempty"` // GT/s
	MaxSpeed *float64 `json:"max_speed,omitempty"`
	Fatal    *int64   `json:"fatal,omitempty"`    // errors that AER counted since the boot
	NonFatal *int64   `json:"nonfatal,omitempty"` // uncorrectable, not fatal
	// Corrected are the errors that the link corrected since the boot, as AER counted them.
	Corrected *int64   `json:"corrected,omitempty"`
	NUMA      *int     `json:"numa,omitempty"`  // node of the memory nearest to it
	Above     []string `json:"above,omitempty"` // addresses of the bridges above it, the root port first
	// Domain is how the IOMMU takes its addresses: identity (as they are), DMA or
	// DMA-FQ (translated), blocked.
	Domain string `json:"iommu_domain,omitempty"`
	// Carriers is how often its network interface lost or found its carrier, and Bits
	// what that interface carries, bits a second.
	Carriers *int64 `json:"carrier_changes,omitempty"`
	Bits     *int64 `json:"bits,omitempty"`
	MTU      *int64 `json:"mtu,omitempty"` // of that interface, bytes
	// Transceiver is what is plugged into it, where the driver tells.
	Transceiver *Transceiver `json:"transceiver,omitempty"`
}

// Transceiver is what is plugged into a port of a NIC, by its own memory: a module, or a cable
// with its ends. Its texts are those of its maker.
type Transceiver struct {
	Maker  string `json:"maker,omitempty"`
	Part   string `json:"part"`
	Serial string `json:"serial,omitempty"`
	// Firmware is the version that runs in the module; "" where it does not say.
	Firmware string `json:"firmware,omitempty"`
	// Received and Sent are the optical power of each lane, dBm; nil where the module, or
	// the driver, does not say.
	Received []float64 `json:"received_dbm,omitempty"`
	Sent     []float64 `json:"sent_dbm,omitempty"`
}

// PCIBridge is a root port, or a port of a PCIe switch.
type PCIBridge struct {
	Address  string   `json:"address"`
	Port     string   `json:"port,omitempty"` // root, upstream or downstream
	ACS      *int     `json:"acs,omitempty"`  // its ACS control register
	Width    *int     `json:"width,omitempty"`
	MaxWidth *int     `json:"max_width,omitempty"`
	Speed    *float64 `json:"speed,omitempty"` // GT/s
	MaxSpeed *float64 `json:"max_speed,omitempty"`
}

// The bits of the ACS control register that send what goes from one port of a
// switch to another through the root complex (PCI Express Base Specification,
// 7.7.11.3).
const (
	ACSRequestRedirect    = 1 << 2
	ACSCompletionRedirect = 1 << 3
)

// NVMe is a disk and its SMART / Health Information log.
type NVMe struct {
	Name   string `json:"name"` // nvme0
	PCI    string `json:"pci,omitempty"`
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	SMART  *SMART `json:"smart,omitempty"`
	Why    string `json:"why,omitempty"` // there is no SMART
}

// SMART is the log page 02h of an NVMe disk (NVM Express Base Specification).
type SMART struct {
	Critical    int    `json:"critical"`     // bits: 0 spare, 1 temperature, 2 reliability, 3 read only, 4 volatile memory, 5 persistent memory
	Spare       int    `json:"spare"`        // percent that is left
	SpareLeast  int    `json:"spare_least"`  // percent, below which the disk warns
	Used        int    `json:"used"`         // percent of its life; may pass 100
	MediaErrors uint64 `json:"media_errors"` // data that could not be read or written
	Hours       uint64 `json:"hours"`        // with power
}

// MemoryErrors is what EDAC counted of a memory controller since the boot.
type MemoryErrors struct {
	Controller  string `json:"controller"` // mc0
	Corrected   int64  `json:"corrected"`
	Uncorrected int64  `json:"uncorrected"`
}
