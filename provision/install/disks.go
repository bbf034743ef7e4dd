// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// diskFits reports whether a disk has all that a disk block gives.
func diskFits(d inventory.Disk, got wire.Disk) bool {
	same := func(want, is string) bool { return want == "" || strings.EqualFold(want, strings.TrimSpace(is)) }
	return sameBus(d.Type, got.Type) && d.Size.Allows(unit.Bytes(got.Size)) && (d.Model == "" || strings.Contains(got.Model, d.Model)) &&
		same(d.Serial, got.Serial) && same(inventory.NormalWWN(d.WWN), inventory.NormalWWN(got.WWN)) && same(d.PCI, got.PCI) && same(d.Bay, got.Bay) && same(d.ByPath, got.ByPath)
}

// sameBus reports whether a disk that the agent saw can be of a type of the
// language: behind SATA and SAS the agent tells rotating disks from others.
func sameBus(want, got string) bool {
	switch want {
	case "", got:
		return true
	case "sata", "sas":
		return got == "ssd" || got == "hdd"
	}
	return false
}

// hasName reports whether a disk has a serial number or World Wide Name.
func hasName(d wire.Disk, name string) bool {
	wwn := inventory.NormalWWN(name)
	return strings.EqualFold(strings.TrimSpace(d.Serial), strings.TrimSpace(name)) || wwn != "" && wwn == inventory.NormalWWN(d.WWN)
}

// sameDisk reports whether two reports are of one disk, wherever it is: by serial
// number and World Wide Name. A disk without either is never known again.
func sameDisk(a, b wire.Disk) bool {
	serial := strings.TrimSpace(a.Serial) != "" && strings.TrimSpace(b.Serial) != ""
	wwn := a.WWN != "" && b.WWN != ""
	return (serial || wwn) && (!serial || strings.EqualFold(strings.TrimSpace(a.Serial), strings.TrimSpace(b.Serial))) && (!wwn || strings.EqualFold(a.WWN, b.WWN))
}

// sameShown reports whether a disk is the one that a plan shows. One that has
// neither serial number nor World Wide Name is compared by what else is known.
func sameShown(shown, is wire.Disk) bool {
	if shown.Serial == "" && shown.WWN == "" && is.Serial == "" && is.WWN == "" {
		return shown.PCI == is.PCI && shown.ByPath == is.ByPath && shown.Bay == is.Bay && shown.Model == is.Model && shown.Size == is.Size && shown.Name == is.Name
	}
	return sameDisk(shown, is)
}

// disksByPlace are disks in the order of their PCI addresses and names.
func disksByPlace(list []wire.Disk) []wire.Disk {
	out := slices.Clone(list)
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].PCI != out[j].PCI {
			return out[i].PCI < out[j].PCI
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// shares are the disks of a node by the disk blocks that they fit.
type shares struct {
	of    map[string][]wire.Disk // by the name of the block
	twice []string               // disks that fit two blocks, in words
}

// shareDisks shares the disks of a node out to the blocks of its hardware. A disk
// that fits several belongs to the block of the highest rank; own, the disk that is
// known to be the node's system disk (nil: none is), belongs to block on, and tells
// a block of one disk which it is.
func shareDisks(h *inventory.Hardware, hw wire.Hardware, on string, own *wire.Disk) shares {
	s := shares{of: map[string][]wire.Disk{}}
	for _, got := range disksByPlace(hw.Disks) {
		mine := own != nil && own.Path == got.Path && own.Name == got.Name
		fit := highestPriority(h.Disks, func(d inventory.Disk) bool {
			switch isBlock := own != nil && d.Name == on; {
			case mine && on != "":
				return isBlock && diskFits(d, got)
			case !mine && isBlock && d.Count <= 1:
				return false
			}
			return diskFits(d, got)
		})
		if len(fit) > 1 {
			s.twice = append(s.twice, fmt.Sprintf("%s fits disk %q and disk %q", describeDisk(got), fit[0].Name, fit[1].Name))
		}
		for _, d := range fit {
			s.of[d.Name] = append(s.of[d.Name], got)
		}
	}
	return s
}

// highestPriority returns those of the blocks that are meant which have the highest rank.
func highestPriority(blocks []inventory.Disk, meant func(inventory.Disk) bool) (out []inventory.Disk) {
	for _, d := range blocks {
		if !meant(d) {
			continue
		}
		if len(out) > 0 && d.Rank() > out[0].Rank() {
			out = nil
		}
		if len(out) == 0 || d.Rank() == out[0].Rank() {
			out = append(out, d)
		}
	}
	return out
}

// compareDisks holds the disks of a node against the disk blocks of its hardware:
// count means exactly, and no disk may fit two blocks.
func compareDisks(n *inventory.Node, hw wire.Hardware, known lastInstall) (fs []Fault) {
	on, own := known.place(n, hw)
	got := shareDisks(n.Hardware, hw, on, own)
	for _, d := range n.Hardware.Disks {
		part, want, there := fmt.Sprintf("disk %s", d.Name), max(1, d.Count), got.of[d.Name]
		switch {
		case len(there) < want:
			fs = append(fs, Fault{part, fmt.Sprintf("%d of %d disks %q are there (%s)%s", len(there), want, d.Name, describeRule(d), describeOthers(hw.Disks, there)), "Reseat or replace the disk; or correct the disk block if it is wrong."})
		case len(there) > want:
			fs = append(fs, Fault{part, fmt.Sprintf("%d disks fit disk %q (%s), which says count = %d: %s%s", len(there), d.Name, describeRule(d), want, describeDisks(there), describePaths(there)), suggestDiskSelector(n, d, there)})
		}
	}
	if len(got.twice) > 0 {
		fs = append(fs, Fault{"disk", strings.Join(got.twice, "; "), fmt.Sprintf("Nothing was erased. Give the disk blocks of hardware.%s sizes, models or slots (pci, bay, by_path) that exclude each other.", n.Hardware.Name)})
	}
	return fs
}

// describeOthers names the disks that are there and are not among these.
func describeOthers(all, these []wire.Disk) string {
	var rest []wire.Disk
	for _, d := range all {
		if !slices.Contains(these, d) {
			rest = append(rest, d)
		}
	}
	if len(rest) == 0 {
		return ""
	}
	return "; there are also " + describeDisks(disksByPlace(rest))
}

// suggestDiskSelector says what to write so that one of several disks is meant.
func suggestDiskSelector(n *inventory.Node, d inventory.Disk, among []wire.Disk) string {
	if describePaths(among) != "" {
		return suggestPathSelector(n, d, among)
	}
	lines := func(value func(wire.Disk) string) (out []string) {
		for _, x := range among {
			if v := value(x); v != "" && !slices.Contains(out, fmt.Sprintf("%q", v)) {
				out = append(out, fmt.Sprintf("%q", v))
			}
		}
		if len(out) < len(among) {
			return nil // it does not report them apart
		}
		return out
	}
	var ways []string
	add := func(name string, value func(wire.Disk) string) {
		if all := lines(value); all != nil {
			ways = append(ways, name+" = "+strings.Join(all, " or "))
		}
	}
	add("bay", func(x wire.Disk) string { return x.Bay })
	add("pci", func(x wire.Disk) string { return x.PCI })
	add("by_path", func(x wire.Disk) string { return x.ByPath })
	text := "Nothing was erased. Say which disk is meant"
	if len(ways) > 0 {
		text += fmt.Sprintf(": in hardware.%s disk %q, %s (of all its nodes)", n.Hardware.Name, d.Name, strings.Join(ways, ", or "))
	}
	name := func(x wire.Disk) string {
		if x.Serial != "" {
			return x.Serial
		}
		return x.WWN
	}
	if all := lines(name); all != nil && n.Disks != nil && n.Disks.On == d.Name {
		text += fmt.Sprintf("; or in node %s, or its override: install_disk = %s", n.Name, strings.Join(all, " or "))
	}
	if d.Count < len(among) && (n.Disks == nil || n.Disks.On != d.Name) {
		text += fmt.Sprintf("; or count = %d, if all of them belong to it", len(among))
	}
	return text + "."
}

// describeRule is what a disk block asks for.
func describeRule(d inventory.Disk) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, strings.TrimSpace(name+" "+value))
		}
	}
	add("", d.Type)
	add("model", d.Model)
	add("", d.Size.String())
	add("serial", d.Serial)
	add("WWN", d.WWN)
	add("PCI", d.PCI)
	add("bay", d.Bay)
	add("by-path", d.ByPath)
	if len(parts) == 0 {
		return "any disk"
	}
	return strings.Join(parts, ", ")
}

// Identified reports whether a disk is known again, wherever it is: it has a serial
// number or a World Wide Name.
func Identified(d wire.Disk) bool { return nameOf(d) != "" }

// IdentifyDisk is a disk's name, serial number, model, size and slot, as a person
// finds it by.
func IdentifyDisk(d wire.Disk) string {
	parts := []string{d.Name + " serial " + orUnknown(d.Serial)}
	if d.Serial == "" && d.WWN != "" {
		parts[0] = d.Name + " WWN " + d.WWN
	}
	if d.Model != "" {
		parts = append(parts, d.Model)
	}
	parts = append(parts, sizeOf(d.Size))
	slot := "PCI " + orUnknown(d.PCI)
	if d.Bay != "" {
		slot = "bay " + d.Bay + ", " + slot
	}
	if d.ByPath != "" {
		slot += ", by-path " + d.ByPath
	}
	return strings.Join(append(parts, slot), ", ")
}

// describeDisk is IdentifyDisk, and what lies on the disk.
func describeDisk(d wire.Disk) string {
	what := d.Content
	switch {
	case d.Marker != "" && d.Content == "":
		what = "an unfinished install"
	case d.Content == "":
		what = "nothing: it is blank"
	}
	if d.Marker != "" {
		what += fmt.Sprintf(", install marker %q", d.Marker)
	}
	return fmt.Sprintf("%s, holds %s", IdentifyDisk(d), what)
}

func describeDisks(list []wire.Disk) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = "(" + describeDisk(d) + ")"
	}
	return strings.Join(words, ", ")
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// sizeOf is a size as vendors count it, rounded to three digits: 3.84TB.
func sizeOf(bytes int64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}} {
		if float64(bytes) >= u.of {
			return fmt.Sprintf("%.3g%s", float64(bytes)/u.of, u.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}
