// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// Marked lists the fixed disks that carry an install marker. Nothing else of a disk
// is read: for a node at work.
func (i Inspector) Marked() (marked []wire.Disk) {
	for _, name := range i.FS.Names("sys/block") {
		d, ok := i.disk(name)
		if !ok {
			continue
		}
		dev, err := i.open(d.Path)
		if err != nil {
			continue
		}
		readMarker(dev, &d)
		dev.Close()
		if d.Marker != "" {
			marked = append(marked, d)
		}
	}
	return marked
}

// RootDisk returns the disk that the root file system of the running system lies on,
// also through LVM or dm-crypt. false: it is not known, or there are several.
func (i Inspector) RootDisk() (wire.Disk, bool) {
	if all := i.RootDisks(); len(all) == 1 {
		return all[0], true
	}
	return wire.Disk{}, false
}

// RootDisks lists the disks that the root file system of the running system lies on:
// several below md RAID, LVM or btrfs; none where one of them is no fixed disk, or
// nothing is known.
func (i Inspector) RootDisks() []wire.Disk {
	var names []string
	for line := range strings.Lines(i.FS.Text("proc/self/mountinfo")) {
		fields := strings.Fields(line) // proc(5): the device number, what of it, and where it is mounted
		if len(fields) < 5 || fields[4] != "/" {
			continue
		}
		real := i.FS.Real("sys/dev/block", fields[2])
		names = i.below(real)                                                                                                                // the mount that came last is the one that is seen
		if dash := slices.Index(fields, "-"); real == "" && dash > 0 && dash+2 < len(fields) && strings.HasPrefix(fields[dash+2], "/dev/") { // btrfs has a number of its own
			names = i.belowBtrfs(path.Base(fields[dash+2]))
		}
	}
	slices.Sort(names)
	disks := []wire.Disk{}
	for _, name := range slices.Compact(names) {
		d, ok := i.disk(name)
		if !ok {
			return nil
		}
		disks = append(disks, d)
	}
	return disks
}

// belowBtrfs lists the disks of the file system that a block device, by its name, is
// one of the devices of.
func (i Inspector) belowBtrfs(name string) []string {
	for _, id := range i.FS.Names("sys/fs/btrfs") {
		all := i.FS.Names("sys/fs/btrfs", id, "devices")
		if !slices.Contains(all, name) {
			continue
		}
		var names []string
		for _, d := range all {
			names = append(names, i.below(i.FS.Real("sys/fs/btrfs", id, "devices", d))...)
		}
		return names
	}
	return i.below(i.FS.Real("sys/class/block", name))
}

// below lists the disks that a block device, by its real path, lies on.
func (i Inspector) below(real string) (names []string) {
	if real == "" {
		return nil
	}
	if i.FS.Exists(real, "partition") {
		real = path.Dir(real)
	}
	slaves := i.FS.Names(real, "slaves")
	if len(slaves) == 0 {
		return []string{path.Base(real)}
	}
	for _, s := range slaves {
		names = append(names, i.below(i.FS.Real(real, "slaves", s))...)
	}
	return names
}
