// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// What is zeroed, bytes: at both ends of a disk and of each partition, where tables,
// arrays, volume groups and file systems have their marks.
const (
	diskEnd      = 8 << 20
	partitionEnd = 4 << 20
)

// luksData is where the data of a LUKS2 volume begin, bytes, behind its headers and key slots:
// cryptsetup's default.
const luksData = 16 << 20

// bootFits checks that what the firmware starts has room where the layout puts it.
func (j *job) bootFits() error {
	for _, d := range j.layout.Disks {
		for _, p := range d.Partitions {
			if b := j.bootOf(p); int64(len(b)) > p.Size {
				return errkind.New(errkind.Mismatch, "the image's partition %s has %d bytes, and there is room for %d", p.Name, len(b), p.Size).
					Do("Build the image again with this version.")
			}
		}
		if d.System && len(j.boot.ESP) == 0 {
			return errkind.New(errkind.Invalid, "the image has no EFI system partition").Do("Build the image again with this version.")
		}
	}
	return nil
}

// bootOf is what a partition holds of the image's own disk.
func (j *job) bootOf(p wire.LayoutPartition) []byte {
	switch p.Type {
	case gpt.BIOSBoot:
		return j.boot.BIOS
	case gpt.EFISystem:
		return j.boot.ESP
	}
	return nil
}

// prepare erases one disk, but for what is kept, and gives it its table and loaders.
func (j *job) prepare(i int) error {
	d, dev := j.layout.Disks[i], j.devs[i]
	j.report("erase", 0)
	if err := j.erase(i); err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	sector := int64(dev.SectorSize())
	var parts []gpt.Partition
	for _, p := range d.Partitions {
		parts = append(parts, partition(p, sector))
	}
	for _, k := range j.kept {
		if k.disk == i && !k.volume {
			parts = append(parts, k.part)
		}
	}
	table, err := gpt.New(dev.Size(), sector, d.GUID, renumber(parts))
	if err != nil {
		return errkind.New(errkind.Mismatch, "%w", err).Do("Use larger disks, or smaller sizes in the disk layout.")
	}
	for _, p := range d.Partitions {
		if b := j.bootOf(p); b != nil {
			if _, err := dev.WriteAt(b, p.Start); err != nil {
				return err
			}
		}
	}
	var code []byte
	if d.System {
		code = j.boot.Code
	}
	if _, err := dev.WriteAt(table.ProtectiveMBR(code), 0); err != nil {
		return err
	}
	if err := table.Write(dev); err != nil {
		return err
	}
	if err := dev.Sync(); err != nil {
		return err
	}
	return dev.Reread()
}

// renumber gives a partition that is kept another number where its own is taken: those of
// the layout come first.
func renumber(parts []gpt.Partition) []gpt.Partition {
	used := map[int]bool{}
	for i, p := range parts {
		for used[p.Number] {
			p.Number++
		}
		used[p.Number], parts[i] = true, p
	}
	return parts
}

// span is a range of a disk, in bytes.
type span struct{ from, to int64 }

// erase takes away what others could find on a disk: both ends, and both ends of what
// the partitions will be. Neither the marker nor what is kept is touched; a disk with
// nothing to keep is discarded as a whole.
func (j *job) erase(i int) error {
	dev := j.devs[i]
	size := dev.Size()
	spare := []span{{disk.MarkerOffset, disk.MarkerOffset + disk.MarkerSize}}
	for _, k := range j.kept {
		if k.disk == i {
			spare = append(spare, span{k.part.Offset(), k.part.Offset() + k.part.Size()})
		}
	}
	slices.SortFunc(spare, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
	if len(spare) == 1 {
		dev.Discard(0, disk.MarkerOffset)
		dev.Discard(spare[0].to, size-spare[0].to)
	}
	wanted := []span{{0, diskEnd}, {size - diskEnd, size}}
	for _, p := range j.layout.Disks[i].Partitions {
		wanted = append(wanted, span{p.Start, p.Start + min(partitionEnd, p.Size)}, span{p.Start + max(0, p.Size-partitionEnd), p.Start + p.Size})
	}
	for _, w := range wanted {
		for _, s := range without(span{max(0, w.from), min(size, w.to)}, spare) {
			if err := dev.Zero(s.from, s.to-s.from); err != nil {
				return err
			}
		}
	}
	return nil
}

// without cuts spans, which are sorted, out of a range.
func without(w span, spare []span) (out []span) {
	for _, s := range spare {
		if s.to <= w.from || s.from >= w.to {
			continue
		}
		if s.from > w.from {
			out = append(out, span{w.from, s.from})
		}
		w.from = max(w.from, s.to)
	}
	if w.from < w.to {
		out = append(out, w)
	}
	return out
}
