// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/wire"
)

// logical are the logical volumes of the volume groups on partitions and arrays, each for
// every partition that it lies on, and the groups themselves.
func (j *job) logical(parts []kept) (all []kept) {
	arrays := map[string][]member{}
	for _, k := range parts {
		dev := j.devs[k.disk]
		if m, ok := memberOf(dev, k.part.Offset(), k.part.Size()); ok {
			arrays[m.array] = append(arrays[m.array], m)
		}
	}
	for _, k := range parts {
		var r io.ReaderAt = io.NewSectionReader(j.devs[k.disk], k.part.Offset(), k.part.Size())
		size := k.part.Size()
		if k.array != "" {
			a, ok := assemble(arrays[k.array])
			if !ok {
				continue
			}
			r, size = a, size*int64(len(a.members))
		}
		g, ok, err := lvm.Read(r, size)
		if !ok {
			continue
		}
		if err != nil {
			g.Volumes = []lvm.Volume{{At: -1}} // nobody knows which
		}
		all = append(all, kept{disk: k.disk, part: k.part, content: content{array: k.array, group: &g}})
		for _, v := range g.Volumes {
			c := content{}
			if v.At >= 0 {
				c = fileSystem(r, v.At)
			}
			c.array, c.group, c.logical = k.array, &g, v
			all = append(all, kept{disk: k.disk, part: k.part, content: c})
		}
	}
	return all
}

// unknown refuses to erase a volume group of which it cannot be read whether it has a file
// system that is to be preserved.
func (j *job) unknown(label string, all []kept) error {
	for _, k := range all {
		if k.group == nil || k.logical.At >= 0 || j.old[k.disk].Text == j.marker.Text {
			continue
		}
		return j.refuse(label, k, fmt.Sprintf("cannot be found there or elsewhere: volume group %q has logical volumes whose content is not read here (thin, RAID, on other disks, or damaged)", k.group.Name))
	}
	return nil
}

// keepLogical enters a file system that stays into its logical volume: its volume group
// has to lie where the layout puts it, with the logical volume in it.
func (j *job) keepLogical(v int, found []kept) error {
	vol := &j.layout.Volumes[v]
	group := &j.layout.Volumes[groupOf(j.layout.Volumes, vol.Group)]
	for _, k := range found {
		switch {
		case k.group == nil:
			return j.refuse(vol.Label, k, fmt.Sprintf("it is no logical volume, as the layout makes it in volume group %s", vol.Group))
		case k.group.Name != vol.Group || k.logical.Name != vol.Name:
			return j.refuse(vol.Label, k, fmt.Sprintf("it is logical volume %s of volume group %s; the layout makes it %s of %s", k.logical.Name, k.group.Name, vol.Name, vol.Group))
		case !k.group.Whole:
			return j.refuse(vol.Label, k, fmt.Sprintf("volume group %s lies on other disks or partitions too", vol.Group))
		case vol.Size > 0 && vol.Size != k.logical.Extents*k.group.ExtentSize:
			return j.refuse(vol.Label, k, fmt.Sprintf("its logical volume has %d MiB; the layout gives it %d MiB", k.logical.Extents*k.group.ExtentSize>>20, vol.Size>>20))
		}
	}
	if err := j.inPlace(vol.Label, *group, found); err != nil {
		return err
	}
	if err := j.sameEncryption(*vol, found); err != nil {
		return err
	}
	vol.Kept, vol.UUID, group.Kept = true, found[0].uuid, true
	if group.RAID >= 0 {
		group.Array = found[0].array
	}
	return nil
}

// keepGroups checks that what the layout makes anew has room beside what is kept, in the
// volume groups that stay for it, and lists the logical volumes that go.
func (j *job) keepGroups() error {
	j.remove = map[string][]string{}
	for _, k := range j.kept {
		if k.group == nil || j.remove[k.group.Name] != nil {
			continue
		}
		free, remove := k.group.Extents, []string{}
		for _, v := range k.group.Volumes {
			if slices.ContainsFunc(j.kept, func(o kept) bool { return o.group != nil && o.group.Name == k.group.Name && o.logical.Name == v.Name }) {
				free -= v.Extents
			} else {
				remove = append(remove, v.Name)
			}
		}
		need := int64(0)
		for _, v := range j.layout.Volumes {
			if v.Group == k.group.Name && !v.Kept {
				need += max(1, (v.Size+k.group.ExtentSize-1)/k.group.ExtentSize)
			}
		}
		if need > free {
			return j.refuse(k.label, k, fmt.Sprintf("beside what is preserved, volume group %s has %d MiB; the other volumes of the layout need %d MiB", k.group.Name, free*k.group.ExtentSize>>20, need*k.group.ExtentSize>>20))
		}
		j.remove[k.group.Name] = remove
	}
	return nil
}

// namesFree refuses a layout with a volume group whose name another one has, on a disk
// that the layout does not touch: the system would activate neither, or the wrong one.
func (j *job) namesFree(ctx context.Context) error {
	if !slices.ContainsFunc(j.layout.Volumes, func(v wire.Volume) bool { return v.Use == wire.VolumeGroup }) {
		return nil
	}
	var paths []string
	for _, d := range j.layout.Disks {
		paths = append(paths, d.Disk.Path)
	}
	others, err := j.Node.Groups(ctx, paths)
	if err != nil {
		return err
	}
	for _, v := range j.layout.Volumes {
		if device, taken := others[v.Name]; taken && v.Use == wire.VolumeGroup {
			return errkind.New(errkind.Refused, "volume group %s of the layout has the name of one on %s, a disk that the layout does not touch: the system would not know which is meant", v.Name, device).
				Do("Nothing was erased. Give the volume group of the layout another name; or rename the other one (vgrename), or take its disk out.")
		}
	}
	return nil
}

// readGroups compares the volume groups that were made with what stands on the disks.
func (j *job) readGroups() error {
	for i := range j.devs {
		if err := j.devs[i].Forget(); err != nil {
			return err
		}
	}
	var all []kept
	for _, v := range j.layout.Volumes {
		group := v.Group
		if v.Use == wire.VolumeGroup {
			group = v.Name
		}
		if group == "" {
			continue
		}
		if all == nil {
			all = j.contents()
		}
		if !slices.ContainsFunc(all, func(k kept) bool {
			return k.group != nil && k.group.Name == group && k.group.Whole && (v.Use == wire.VolumeGroup || k.logical.Name == v.Name && (v.Size == 0 || v.Size == k.logical.Extents*k.group.ExtentSize))
		}) {
			return &wire.PartError{Part: wire.PartDisk, Err: errkind.New(errkind.Corrupt, "%s of volume group %s, which was just made, is not what the disks have", v.Name, group).Do("A disk does not keep data; look at the health of the disks.")}
		}
	}
	return nil
}
