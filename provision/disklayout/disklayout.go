// SPDX-License-Identifier: Apache-2.0

// Package disklayout computes how the disks of a node are used by a disk layout:
// partitions, arrays, file systems and mounts, from the layout and the disks that the
// node has. It is pure.
//
// A disk that the firmware may start, each of a RAID:
//
//	 1 MiB  p1, BIOS boot partition; x86-64 only
//	 2 MiB  p2, EFI system partition, of its own and in no array
//	66 MiB  p3 and on: swap, root, data, in this order
//
// A volume group stands where the first of its logical volumes would, which have no
// partitions of their own.
//
// The first two lie as in the image's own disk, from which their bytes are taken. A disk
// of data has its file systems from 2 MiB on. The install marker lies before 1 MiB.
package disklayout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// The places, in bytes, beside those of package bootdisk.
const (
	mib       = 1 << 20
	dataStart = 2 * mib
	tail      = 1 * mib // backup table, and the end that old arrays have their marks in
)

// RootLabel is the label of the root file system. XFS has room for twelve characters.
const RootLabel = "ironrail-os"

// Disk is one disk of a node that a layout is on.
type Disk struct {
	wire.Disk
	AllowData bool
}

// Input is what a layout is computed from.
type Input struct {
	Layout *inventory.DiskLayout
	System []Disk            // of the layout's own block: one, or all members of the RAID
	Data   map[string][]Disk // of the other blocks that data blocks name
	BIOS   bool              // the architecture has machines with a BIOS
	Seed   string            // what identifiers are derived from: the effect key of the write, so that a write that is resumed has the same
}

// Compute returns the layout, or why the disks are too small for it.
func Compute(in Input) (wire.Layout, error) {
	b := builder{in: in, names: map[string]int{}}
	for _, label := range in.Layout.Preserve {
		b.out.Preserve = append(b.out.Preserve, strings.TrimPrefix(label, "label:"))
	}
	b.disks(in.System, true)
	own := in.Layout.On
	b.names[own] = 0
	for _, f := range in.Layout.Data {
		if _, known := b.names[f.On]; f.On != "" && !known {
			b.names[f.On] = len(b.out.Disks)
			b.disks(in.Data[f.On], false)
		}
	}
	if in.Layout.Swap > 0 {
		b.volume(wire.VolumeSwap, inventory.FileSystem{Name: "swap", Size: in.Layout.Swap, Filesystem: "swap"})
	}
	b.volume(wire.VolumeRoot, in.Layout.Root)
	for _, f := range in.Layout.Data {
		b.volume(wire.VolumeData, f)
	}
	b.groupsFit()
	return b.out, b.err
}

// builder is a layout in the making.
type builder struct {
	in    Input
	out   wire.Layout
	next  []int64        // where each disk is free from
	names map[string]int // first disk by disk block
	err   error
}

// id derives an identifier.
func (b *builder) id(format string, args ...any) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(b.in.Seed+"/"+fmt.Sprintf(format, args...))).String()
}

// disks adds disks of one block.
func (b *builder) disks(all []Disk, system bool) {
	for _, d := range all {
		i := len(b.out.Disks)
		l := wire.LayoutDisk{Disk: d.Disk, AllowData: d.AllowData, System: system, GUID: b.id("disk %d", i)}
		from := int64(dataStart)
		if system {
			if b.in.BIOS {
				l.Partitions = append(l.Partitions, wire.LayoutPartition{Number: 1, Type: gpt.BIOSBoot, GUID: b.id("bios %d", i), Name: "bios", Start: bootdisk.BIOSStart, Size: bootdisk.ESPStart - bootdisk.BIOSStart})
			}
			l.Partitions = append(l.Partitions, wire.LayoutPartition{Number: 2, Type: gpt.EFISystem, GUID: b.id("esp %d", i), Name: "esp", Start: bootdisk.ESPStart, Size: bootdisk.ESPSize})
			from = bootdisk.ESPStart + bootdisk.ESPSize
		}
		b.out.Disks, b.next = append(b.out.Disks, l), append(b.next, from)
	}
}

// volume adds a file system to the disks that it is on, or to its volume group.
func (b *builder) volume(use wire.VolumeUse, f inventory.FileSystem) {
	if g, ok := b.in.Layout.Group(f.Group); ok {
		b.logical(use, f, g)
		return
	}
	first, count, level := 0, len(b.in.System), b.in.Layout.RAID
	name := f.Name // of its partitions; unlike that of a data block, root and swap are ours
	switch use {
	case wire.VolumeData:
		name = "data-" + f.Name
	case wire.VolumeGroup:
		name = "group-" + f.Name
	}
	if f.On != "" && f.On != b.in.Layout.On {
		first, count, level = b.names[f.On], len(b.in.Data[f.On]), -1
	}
	v := wire.Volume{Use: use, Name: f.Name, RAID: level, Filesystem: f.Filesystem, Label: f.Name, Mount: f.Mount, UUID: b.id("file system %s", name), Encryption: f.Encryption}
	b.describe(&v)
	if level >= 0 {
		v.Array = b.id("array %s", name)
	}
	size := b.share(f.Size, level, count, first)
	for i := first; i < first+count; i++ {
		d := &b.out.Disks[i]
		p := wire.LayoutPartition{Number: b.number(d), Type: typeOf(v), GUID: b.id("%s %d", name, i), Name: name, Start: b.next[i], Size: size}
		if room := roomOf(d.Disk) - p.Start; size > room || size <= 0 {
			b.fail(v, d.Disk, size, room)
			return
		}
		b.next[i] += size
		d.Partitions = append(d.Partitions, p)
		v.Members = append(v.Members, wire.Member{Disk: i, Partition: p.Number})
	}
	b.out.Volumes = append(b.out.Volumes, v)
}

// describe completes what a file system is called and where it is mounted.
func (b *builder) describe(v *wire.Volume) {
	switch v.Use {
	case wire.VolumeRoot:
		v.Label, v.Mount = RootLabel, "/"
	case wire.VolumeData:
		v.Keep = b.in.Layout.Preserves(v.Name)
	case wire.VolumeGroup:
		v.Label, v.Filesystem = "", "lvm"
	}
	if v.Filesystem == "" {
		v.Filesystem = "ext4"
	}
}

// logical adds a logical volume, and its volume group before the first of them.
func (b *builder) logical(use wire.VolumeUse, f inventory.FileSystem, g inventory.VolumeGroup) {
	if !slices.ContainsFunc(b.out.Volumes, func(v wire.Volume) bool { return v.Use == wire.VolumeGroup && v.Name == g.Name }) {
		size := g.Size
		if size > 0 {
			size += wire.ExtentSize // what LVM has for itself
		}
		b.volume(wire.VolumeGroup, inventory.FileSystem{Name: g.Name, Size: size, On: g.On})
	}
	size := (int64(f.Size) + wire.ExtentSize - 1) / wire.ExtentSize * wire.ExtentSize
	v := wire.Volume{Use: use, Name: f.Name, RAID: -1, Filesystem: f.Filesystem, Label: f.Name, Mount: f.Mount, UUID: b.id("logical volume %s of %s", f.Name, g.Name), Group: g.Name, Size: size, Encryption: f.Encryption}
	b.describe(&v)
	b.out.Volumes = append(b.out.Volumes, v)
}

// groupsFit checks that the logical volumes have room in their groups.
func (b *builder) groupsFit() {
	for _, g := range b.out.Volumes {
		if g.Use != wire.VolumeGroup || b.err != nil {
			continue
		}
		m := g.Members[0]
		d := b.out.Disks[m.Disk]
		part := d.Partitions[slices.IndexFunc(d.Partitions, func(p wire.LayoutPartition) bool { return p.Number == m.Partition })]
		room := part.Size
		switch {
		case g.RAID == 10:
			room = (room - arraySpare) * int64(len(g.Members)) / 2
		case g.RAID >= 0:
			room -= arraySpare
		}
		room = (room - wire.ExtentSize) / wire.ExtentSize * wire.ExtentSize
		need := int64(0)
		for _, v := range b.out.Volumes {
			if v.Group == g.Name {
				need += max(v.Size, wire.ExtentSize)
			}
		}
		if need > room {
			b.err = errkind.New(errkind.Mismatch, "disk_layout %s: the volumes of volume_group %s take %d MiB; on disk %s (serial %s) it has %d MiB", b.in.Layout.Name, g.Name, need/mib, d.Disk.Name, d.Disk.Serial, max(room, 0)/mib).
				Do("Use larger disks, or smaller sizes in the disk layout.")
		}
	}
}

// number is that of the next partition of a disk.
func (b *builder) number(d *wire.LayoutDisk) int {
	if n := len(d.Partitions); n > 0 {
		return d.Partitions[n-1].Number + 1
	}
	return 1
}

// roomOf is where the last partition of a disk may end.
func roomOf(d wire.Disk) int64 { return (d.Size - tail) / mib * mib }

// share is what a file system of size bytes takes of each of its disks; all that the
// smallest one has left where no size is given.
func (b *builder) share(size unit.Bytes, level, count, first int) int64 {
	if size == 0 {
		least := int64(-1)
		for i := first; i < first+count; i++ {
			if room := roomOf(b.out.Disks[i].Disk) - b.next[i]; least < 0 || room < least {
				least = room
			}
		}
		return least
	}
	each := int64(size)
	if level == 10 { // two copies of everything, over all disks
		each = (2*each + int64(count) - 1) / int64(count)
	}
	if level >= 0 {
		each += arraySpare
	}
	return (each + mib - 1) / mib * mib
}

// arraySpare is what an array takes of each member for itself: superblock, bitmap, bad
// blocks and room for a reshape. mdadm(8) leaves at most 128 MiB before the data.
const arraySpare = 128 * mib

// typeOf is the type of the partitions of a volume.
func typeOf(v wire.Volume) string {
	switch {
	case v.RAID >= 0:
		return gpt.LinuxRAID
	case v.Use == wire.VolumeSwap:
		return gpt.LinuxSwap
	case v.Use == wire.VolumeGroup:
		return gpt.LinuxLVM
	}
	return gpt.LinuxFilesystem
}

// fail keeps the first reason why there is no layout.
func (b *builder) fail(v wire.Volume, d wire.Disk, size, room int64) {
	if b.err == nil {
		b.err = errkind.New(errkind.Mismatch, "disk_layout %s: %s takes %d MiB of disk %s (serial %s), which has %d MiB left for it", b.in.Layout.Name, v.Name, max(size, 0)/mib, d.Name, d.Serial, max(room, 0)/mib).
			Do("Use larger disks, or smaller sizes in the disk layout.")
	}
}
