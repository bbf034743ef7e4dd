// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// usableShare is the least share of the installed memory that the kernel may
// offer: firmware and kernel keep some of it, more on small nodes.
const usableShare = 0.85

// Fault is one way in which a node is not what its hardware block says.
type Fault struct {
	Part   string // as a technician names it
	Found  string // a sentence
	Action string
}

// CompareHardware holds a report of a node that another tool installed against its
// hardware block.
func CompareHardware(n *inventory.Node, hw wire.Hardware) []Fault {
	return compareHardware(n, hw, lastInstall{})
}

// compareHardware holds a report against the node's hardware block.
func compareHardware(n *inventory.Node, hw wire.Hardware, last lastInstall) []Fault {
	h := n.Hardware
	var fs []Fault
	add := func(part, action, format string, args ...any) {
		fs = append(fs, Fault{part, fmt.Sprintf(format, args...), action})
	}
	const block = "Correct the hardware block if it is wrong; else return the chassis."
	if h.Vendor != "" && !strings.EqualFold(h.Vendor, hw.Identity.Vendor) {
		add("chassis", block, "vendor is %q; hardware.%s says %q", hw.Identity.Vendor, h.Name, h.Vendor)
	}
	if h.Product != "" && !strings.EqualFold(h.Product, hw.Identity.Product) {
		add("chassis", block, "product is %q; hardware.%s says %q", hw.Identity.Product, h.Name, h.Product)
	}
	if want := firmwareOf(h.Boot); hw.Firmware != "" && hw.Firmware != want {
		add("firmware", "Set the boot mode in the firmware's setup, or `boot` in the hardware block.", "booted by %s; hardware.%s says %s", hw.Firmware, h.Name, want)
	}
	if h.CPU.Sockets > 0 && hw.CPU.Sockets < h.CPU.Sockets {
		add("CPU", "Reseat or replace the CPU.", "%d of %d CPU sockets are populated", hw.CPU.Sockets, h.CPU.Sockets)
	}
	if h.CPU.Cores > 0 && hw.CPU.Cores < h.CPU.Cores {
		add("CPU", "Check the core settings of the firmware.", "%d CPU cores; hardware.%s says %d", hw.CPU.Cores, h.Name, h.CPU.Cores)
	}
	if h.TPM != "" && hw.TPM != "" && hw.TPM != h.TPM {
		add("TPM", "Switch the TPM on in the firmware's setup (Security Device Support), or set its version there; else have the module fitted, or correct `tpm` of the hardware block.", "%s; hardware.%s says %s", describeTPM(hw.TPM), h.Name, h.TPM)
	}
	if f := compareSecureBoot(n, hw.SecureBoot); f != nil {
		fs = append(fs, *f)
	}
	fs = append(fs, compareMemory(h, hw.Memory)...)
	fs = append(fs, compareNICs(n, hw)...)
	fs = append(fs, compareDisks(n, hw, last)...)
	return append(fs, compareGPUs(h, hw)...)
}

// describeTPM puts what the kernel has found into words.
func describeTPM(version string) string {
	if version == wire.NoTPM {
		return "there is no TPM, or the firmware hides it"
	}
	return "the TPM is of version " + version
}

// firmwareOf is how a boot mode shows in the ramdisk.
func firmwareOf(b inventory.Firmware) string {
	if b == inventory.BootBIOS {
		return "bios"
	}
	return "uefi"
}

func compareMemory(h *inventory.Hardware, m wire.Memory) (fs []Fault) {
	const action = "Reseat or replace the DIMM that the firmware's log names."
	if h.Memory.DIMMs > 0 && m.DIMMs > 0 && m.DIMMs < h.Memory.DIMMs {
		fs = append(fs, Fault{"DIMM", fmt.Sprintf("%d of %d DIMMs are there", m.DIMMs, h.Memory.DIMMs), action})
	}
	want := int64(h.Memory.Size)
	switch {
	case want == 0:
	case m.Installed > 0 && m.Installed < want:
		fs = append(fs, Fault{"memory", fmt.Sprintf("%d MiB installed; hardware.%s says %s", m.Installed>>20, h.Name, h.Memory.Size), action})
	case float64(m.Usable) < usableShare*float64(want):
		fs = append(fs, Fault{"memory", fmt.Sprintf("%d MiB usable of %s", m.Usable>>20, h.Memory.Size), action})
	}
	return fs
}

// compareNICs looks for each port of the block at its PCI address. Further ports of a cage
// that is split are there once the card was set so, on the installed system: a node that
// another tool installs has them already.
func compareNICs(n *inventory.Node, hw wire.Hardware) (fs []Fault) {
	h, at := n.Hardware, map[string]bool{}
	for _, nic := range hw.NICs {
		at[nic.PCI] = true
	}
	for _, p := range hw.PCI {
		at[p.Address] = at[p.Address] || strings.HasPrefix(p.Class, "02") // a NIC without a driver is there all the same
	}
	type port struct{ name, part, pci, card, function string }
	var gone []port
	isThere := func(pci string) bool {
		card, _, _ := strings.Cut(pci, ".")
		return pci == "" || at[pci] || n.Image != nil && h.AppearsLater(pci) && at[card+".0"]
	}
	for _, nic := range h.NICs {
		for i, p := range nic.Ports {
			if isThere(p.PCI) {
				continue
			}
			name := fmt.Sprintf("%s/%d", nic.Name, i)
			part := "nic " + name
			if p.Panel != "" {
				part += " (" + p.Panel + ")"
			}
			card, function, _ := strings.Cut(p.PCI, ".")
			gone = append(gone, port{name, part, p.PCI, card, function})
		}
	}
	// The kernel looks for no function of a card whose first one is gone: they are one fault.
	slices.SortStableFunc(gone, func(a, b port) int { return strings.Compare(a.function, b.function) })
	first := map[string]int{} // index into fs, by card
	for _, p := range gone {
		if k, whole := first[p.card]; whole {
			fs[k].Found += fmt.Sprintf("; with it %s at %s, of the same card", p.name, p.pci)
			continue
		}
		if p.function == "0" {
			first[p.card] = len(fs)
		}
		fs = append(fs, Fault{p.part, fmt.Sprintf("no network function at PCI %s, where hardware.%s has %s", p.pci, h.Name, p.name),
			"Reseat or replace the NIC; check that its slot is enabled in the firmware."})
	}
	return fs
}

// gpuVendors are the PCI vendor ids of GPUs by the inventory's names.
var gpuVendors = map[string]string{"nvidia": "10de", "amd": "1002"}

// compareGPUs counts display and processing accelerators (PCI classes 0302, 0300
// and 1200) of the vendor.
func compareGPUs(h *inventory.Hardware, hw wire.Hardware) (fs []Fault) {
	for _, g := range h.GPUs {
		got := 0
		for _, p := range hw.PCI {
			class := len(p.Class) >= 4 && slices.Contains([]string{"0300", "0302", "1200"}, p.Class[:4])
			if class && p.Vendor == gpuVendors[g.Vendor] {
				got++
			}
		}
		if got < g.Count {
			fs = append(fs, Fault{"GPU", fmt.Sprintf("%d of %d GPUs %s are on the PCI bus", got, g.Count, g.Model),
				"Read the BMC's event log; power the node off at the PDU and on again; then replace the board."})
		}
	}
	return fs
}

// blameHardware records one finding that names every part, and returns the
// error of the step.
func blameHardware(ctx context.Context, run stage.Run, n *inventory.Node, faults []Fault) error {
	f := stage.Finding{Cause: "the hardware is not what hardware." + n.Hardware.Name + " says", Action: faults[0].Action}
	var found []string
	for _, x := range faults {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(n.Name), Part: x.Part})
		found = append(found, x.Part+": "+x.Found)
	}
	f.Evidence = found
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "hardware: %s", strings.Join(found, "; ")).Do(f.Action)
}
