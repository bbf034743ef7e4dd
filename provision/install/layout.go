// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/disklayout"
)

// DisksFact are the disks that were chosen for a layout that is made on the node; the
// first is that of DiskFact. It is not learned where the image's own disk is written.
const DisksFact = fact.Name[[]LayoutDisk]("install.disks")

// LayoutDisk is one disk of a layout. Ours is as in Written: what lies on it may be erased
// by a reinstall.
type LayoutDisk struct {
	Block string    `json:"block"` // of the hardware, that the disk is of
	Disk  wire.Disk `json:"disk"`
	Ours  bool      `json:"ours,omitempty"`
}

// chooseDisks finds every disk that a node's layout is on, its own block first, then those
// of data blocks in their order. A disk that no block of the layout names is not among
// them, and where one is not certain, none is.
func chooseDisks(n *inventory.Node, hw wire.Hardware, known lastInstall) ([]LayoutDisk, error) {
	l := n.Disks
	var all []LayoutDisk
	var own *wire.Disk
	if l.RAID < 0 {
		c, err := chooseDisk(n, hw, known)
		if err != nil {
			return nil, err
		}
		own = &c.disk
		all = append(all, LayoutDisk{l.On, c.disk, c.ours})
	}
	if l.Whole() {
		return all, nil
	}
	there := shareDisks(n.Hardware, hw, l.On, own)
	for _, name := range blocksOf(l) {
		if name == l.On && own != nil {
			continue
		}
		these, err := disksOf(n, name, hw, there.of[name], known)
		if err != nil {
			return nil, err
		}
		all = append(all, these...)
	}
	return all, errorOf(n, all, known)
}

// blocksOf are the disk blocks that a layout is on, each once, its own first.
func blocksOf(l *inventory.DiskLayout) []string {
	names := []string{l.On}
	for _, f := range l.Data {
		if f.On != "" && !slices.Contains(names, f.On) {
			names = append(names, f.On)
		}
	}
	return names
}

// disksOf takes all disks that fit a block, where they are as many as it counts.
func disksOf(n *inventory.Node, name string, hw wire.Hardware, fit []wire.Disk, known lastInstall) (all []LayoutDisk, err error) {
	d, ok := n.Hardware.Disk(name)
	if !ok {
		return nil, errkind.New(errkind.Internal, "disk layout %s names no disk %q of the hardware", n.Disks.Name, name)
	}
	want := max(1, d.Count)
	switch {
	case len(fit) < want:
		return nil, errkind.New(errkind.Mismatch, "%d of %d disks fit hardware.%s disk %q (%s), which disk_layout %s is on%s", len(fit), want, n.Hardware.Name, name, describeRule(*d), n.Disks.Name, describeOthers(hw.Disks, fit)).
			Do("Nothing was erased. Reseat or replace the disk; or correct the disk block.")
	case len(fit) > want:
		return nil, errkind.New(errkind.Refused, "%d disks fit hardware.%s disk %q, which says count = %d: %s%s", len(fit), n.Hardware.Name, name, want, describeDisks(fit), describePaths(fit)).Do(suggestDiskSelector(n, *d, fit))
	}
	for _, x := range fit {
		all = append(all, LayoutDisk{name, x, known.ownsAs(n, name, x)})
	}
	return all, nil
}

// errorOf says why the disks of a layout may not be erased, all at once: one is seen
// twice, one holds something that nothing says may be lost, or one that the operator
// named is not among them.
func errorOf(n *inventory.Node, all []LayoutDisk, known lastInstall) error {
	var foreign []wire.Disk
	var names []string
	for i, d := range all {
		for _, other := range all[:i] {
			if d.Disk.Path == other.Disk.Path || sameDisk(d.Disk, other.Disk) {
				both := []wire.Disk{other.Disk, d.Disk}
				return errkind.New(errkind.Refused, "disk_layout %s would have one disk of %s twice: %s%s", n.Disks.Name, n.Name, describeDisks(both), describePaths(both)).
					Do("Nothing was erased. Give the disk blocks sizes, models or slots (pci, bay, by_path) that exclude each other, and leave one path to each disk.")
			}
		}
		if !d.Ours && (d.Disk.Content != "" || d.Disk.Marker != "") {
			foreign, names = append(foreign, d.Disk), append(names, nameOf(d.Disk))
		} else if known.isNamed(d.Disk) {
			names = append(names, nameOf(d.Disk))
		}
	}
	if len(foreign) > 0 {
		do := "Nothing was erased. Look whether the data is needed."
		if !slices.Contains(names, "") {
			do += fmt.Sprintf(" `ironrail rebuild %s --disk %s` erases what is not blank.", n.Name, strings.Join(names, ","))
		}
		return errkind.New(errkind.Refused, "%s of disk_layout %s %s what nothing says may be lost: of %s would be erased %s", countDisks(len(foreign)), n.Disks.Name, map[bool]string{true: "holds", false: "hold"}[len(foreign) == 1], n.Name, describeDisks(foreign)).Do(do)
	}
	for _, name := range known.names() {
		if !slices.ContainsFunc(all, func(d LayoutDisk) bool { return hasName(d.Disk, name) }) {
			return errkind.New(errkind.NotFound, "disk %q, which was named to be installed on, is none of those of disk_layout %s: %s", name, n.Disks.Name, describeDisks(disksIn(all))).
				Do("Nothing was erased. Correct install_disk, or --disk; or put that disk in.")
		}
	}
	return nil
}

func disksIn(all []LayoutDisk) (list []wire.Disk) {
	for _, d := range all {
		list = append(list, d.Disk)
	}
	return list
}

// layoutOf computes what is made on chosen disks. key is that of the write, from which
// identifiers are derived, and allow whether what lies on disks of the node may be lost.
func layoutOf(n *inventory.Node, all []LayoutDisk, key string, allow bool) (*wire.Layout, error) {
	in := disklayout.Input{Layout: n.Disks, Data: map[string][]disklayout.Disk{}, BIOS: n.Image.Arch != inventory.ARM64, Seed: key}
	for _, d := range all {
		x := disklayout.Disk{Disk: d.Disk, AllowData: allow && d.Ours}
		if d.Block == n.Disks.On {
			in.System = append(in.System, x)
		} else {
			in.Data[d.Block] = append(in.Data[d.Block], x)
		}
	}
	l, err := disklayout.Compute(in)
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// onTheseDisks is a layout that was made, with its disks as the last inspection found
// them: the kernel names them anew at each boot.
func onTheseDisks(made *wire.Layout, now []LayoutDisk) *wire.Layout {
	if made == nil {
		return nil
	}
	l := *made
	l.Disks = slices.Clone(made.Disks)
	for i := range l.Disks {
		for _, d := range now {
			if sameShown(l.Disks[i].Disk, d.Disk) {
				l.Disks[i].Disk = d.Disk
			}
		}
	}
	return &l
}

// sameDisks reports whether a write was begun on these very disks.
func sameDisks(was, is []LayoutDisk) bool {
	return slices.EqualFunc(was, is, func(a, b LayoutDisk) bool { return a.Block == b.Block && sameShown(a.Disk, b.Disk) })
}

// layoutWords is what a layout has, for the title of a step.
func layoutWords(l *inventory.DiskLayout) string {
	on := fmt.Sprintf("disk %q", l.On)
	if l.RAID >= 0 {
		on = fmt.Sprintf("RAID %d of disks %q", l.RAID, l.On)
	}
	words := []string{"root " + fileSystemOf(l.Root) + inGroup(l.Root)}
	if l.Swap > 0 {
		words = append(words, "swap "+l.Swap.String())
	}
	for _, f := range l.Data {
		text := f.Name + " " + fileSystemOf(f) + inGroup(f)
		if f.Encryption != "" {
			text += " left blank, to be encrypted"
		}
		if f.On != "" && f.On != l.On {
			text += fmt.Sprintf(" on disk %q", f.On)
		}
		words = append(words, text)
	}
	return on + ": " + strings.Join(words, ", ")
}

// inGroup says which volume group a file system is in.
func inGroup(f inventory.FileSystem) string {
	if f.Group == "" {
		return ""
	}
	return " in volume group " + f.Group
}

func fileSystemOf(f inventory.FileSystem) string {
	if f.Filesystem == "" {
		return "ext4"
	}
	return f.Filesystem
}

// layoutInput is what of a layout a reinstall is decided by. What is preserved is not
// among it: that counts at the next reinstall, and is no reason for one. The form for the
// image's own disk stays as it always was.
func layoutInput(l *inventory.DiskLayout) string {
	text := fmt.Sprintf("on %s, root %d", l.On, l.Root.Size)
	if f := fileSystemOf(l.Root); f != "ext4" {
		text += " " + f
	}
	text += inGroup(l.Root)
	for _, g := range l.Groups {
		text += fmt.Sprintf(", volume group %s %d", g.Name, g.Size)
		if g.On != "" && g.On != l.On {
			text += " on " + g.On
		}
	}
	if l.RAID >= 0 {
		text += fmt.Sprintf(", raid %d", l.RAID)
	}
	if l.Swap > 0 {
		text += fmt.Sprintf(", swap %d", l.Swap)
	}
	for _, f := range l.Data {
		text += fmt.Sprintf(", %s %s %d at %s", f.Name, fileSystemOf(f), f.Size, f.Mount) + inGroup(f)
		if f.Encryption != "" {
			text += " encrypted " + f.Encryption
		}
		if f.On != "" && f.On != l.On {
			text += " on " + f.On
		}
	}
	return text
}

// keptWords says what of the disks of a layout stays.
func keptWords(l *inventory.DiskLayout) string {
	if len(l.Preserve) == 0 {
		return ""
	}
	var labels []string
	for _, p := range l.Preserve {
		labels = append(labels, strings.TrimPrefix(p, "label:"))
	}
	return " but file systems with the label " + strings.Join(labels, " or ")
}
