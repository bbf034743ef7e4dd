// SPDX-License-Identifier: Apache-2.0

package wire

// What ironrail asks of the agent to find drift: `ironrail-agent baseline` takes
// BaselineParams on stdin and prints a Baseline.

// BaselineParams says what need not be sent again.
type BaselineParams struct {
	Known    []string `json:"known,omitempty"`    // digests of package lists that the caller has
	Hardware bool     `json:"hardware,omitempty"` // the whole report of an inspection is wanted as well
	Bare     bool     `json:"bare,omitempty"`     // packages are not wanted at all
}

// Baseline is how an installed node is, in items that can be compared one by one.
type Baseline struct {
	BootID   string     `json:"boot_id"`
	Uptime   float64    `json:"uptime"` // seconds
	Identity Identity   `json:"identity"`
	Items    []Item     `json:"items"`
	Counters []Counter  `json:"counters,omitempty"`
	Packages string     `json:"packages"`       // digest of the package list
	List     []Package  `json:"list,omitempty"` // the list; left out when its digest is known
	Gaps     []Gap      `json:"gaps,omitempty"`
	Hardware *Hardware  `json:"hardware,omitempty"`
	Root     []Disk     `json:"root,omitempty"` // that the root file system lies on; none: not known
	Error    *TaskError `json:"error,omitempty"`
}

// Item is one thing that is so and could be otherwise. Value is text from outside.
type Item struct {
	Kind  string `json:"kind"`           // ItemKernel and so on
	Part  string `json:"part,omitempty"` // PCI address, slot of a DIMM, ...; "": the node
	Name  string `json:"name"`           // mtu, firmware, serial, ...
	Value string `json:"value"`
}

// The kinds of item that the agent sees. The caller has others.
const (
	ItemImage    = "image"    // what install the disk carries
	ItemKernel   = "kernel"   // release and arguments
	ItemDrivers  = "drivers"  // versions of loaded modules
	ItemFirmware = "firmware" // versions of BIOS, HCAs, disks
	ItemHardware = "hardware" // what is plugged in, by serial
	ItemNetwork  = "network"  // settings of NICs
	ItemLink     = "link"     // width and speed of network and PCIe links
	ItemPackages = "packages"
	// ItemSecureBoot is the state of Secure Boot, how the kernel is locked down, and each
	// certificate that it trusts.
	ItemSecureBoot = "secure-boot"
)

// Counter is an error counter of one part. It starts anew with the node.
type Counter struct {
	Part  string `json:"part"`
	Name  string `json:"name"` // the kernel's
	Value int64  `json:"value"`
}

// Names of counters that are no port's.
const (
	CorrectedPCIe   = "aer_dev_correctable" // frames that a PCIe link sent once more
	CorrectedMemory = "ce_count"            // bits that a memory controller corrected
)

// Package is one installed package.
type Package struct {
	Name    string `json:"name"` // with the architecture where that is not the node's own: libc6:i386
	Version string `json:"version"`
}

// Gap is something that could not be read: nothing is known about that kind.
type Gap struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`
}
