// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// kept is a partition whose file system has a label that is preserved.
type kept struct {
	disk   int
	part   gpt.Partition
	volume bool // it is a member of a volume of the layout
	content
}

// content is what is known of a partition by its superblocks; of one with a volume group,
// each of its logical volumes is one.
type content struct {
	label   string
	uuid    string     // of the file system
	luks    bool       // it is a LUKS2 volume: label and uuid are its own
	array   string     // of the array that the partition is a member of; "": of none
	group   *lvm.Group // that lies on it; nil: none
	logical lvm.Volume // of the group; zero: it is the group itself
}

// keep finds what is preserved, before anything is erased, and refuses a layout in which
// it could not stay. What the layout has a volume for stays that volume; whatever else
// has such a label stays a partition beside those of the layout.
func (j *job) keep() error {
	all := j.contents()
	for _, label := range j.layout.Preserve {
		found := labelled(all, label)
		v := slices.IndexFunc(j.layout.Volumes, func(v wire.Volume) bool { return v.Keep && v.Label == label })
		var err error
		switch {
		case len(found) == 0:
			err = j.lost(label, v, all)
		case v >= 0 && j.layout.Volumes[v].Group != "":
			err = j.keepLogical(v, found)
		case v >= 0:
			err = j.keepVolume(v, found)
		default:
			err = j.keepBeside(label, found)
		}
		if err != nil {
			return err
		}
		j.kept = append(j.kept, found...)
	}
	return j.keepGroups()
}

// contents reads the superblocks of every partition of every disk.
func (j *job) contents() (all []kept) {
	for i, dev := range j.devs {
		table, err := gpt.Read(dev, dev.Size())
		if err != nil {
			continue // no table, no partition
		}
		for _, p := range table.Partitions() {
			all = append(all, kept{disk: i, part: p, content: contentOf(dev, p.Offset(), p.Size())})
		}
	}
	return append(all, j.logical(all)...)
}

// labelled are the partitions of file systems with a label. Of a RAID 10 the label is on
// the members with its first chunk; the others belong to the same array.
func labelled(all []kept, label string) (found []kept) {
	arrays := map[string]content{} // of the file system, by the UUID of its array
	for _, k := range all {
		if k.label == label && k.array != "" && k.group == nil {
			arrays[k.array] = k.content
		}
	}
	for _, k := range all {
		if is, member := arrays[k.array]; member && k.group == nil {
			k.content = is
		}
		if k.label == label {
			found = append(found, k)
		}
	}
	return found
}

// lost refuses to make a preserved file system anew where an earlier install has made it,
// and it cannot be read any more.
func (j *job) lost(label string, v int, all []kept) error {
	for _, k := range all {
		if v < 0 || j.old[k.disk].Text == j.marker.Text || j.layout.Volumes[v].Encryption != "" && j.blank(k) {
			continue // a run of this very write was cut off before it was made, or the installed system never encrypted it
		}
		switch vol := j.layout.Volumes[v]; {
		case k.group != nil && k.logical.Name == vol.Name:
			return j.gone(label, k, fmt.Sprintf("logical volume %s of volume group %s", vol.Name, k.group.Name))
		case k.part.Name == dataName(label), vol.Group != "" && k.part.Name == groupName(vol.Group) && !hasGroup(all, k):
			return j.gone(label, k, "it")
		}
	}
	return j.unknown(label, all)
}

// blank reports whether both ends of a partition, which is a member of no array and no volume
// group, are zero, as it was left for an encrypted volume.
func (j *job) blank(k kept) bool {
	if k.array != "" || k.group != nil {
		return false
	}
	for _, s := range endsOf(k.part.Size()) {
		b := make([]byte, s.to-s.from)
		if _, err := j.devs[k.disk].ReadAt(b, k.part.Offset()+s.from); err != nil || !disk.AllZero(b) {
			return false
		}
	}
	return true
}

// endsOf is what is zero of a device that is left blank for an encrypted volume, by its size in
// bytes: where others have their marks, and where the encrypted file system will begin. One whose
// header alone was lost is not blank.
func endsOf(size int64) []span {
	return []span{{0, min(luksData+partitionEnd, size)}, {size - min(partitionEnd, size), size}}
}

// gone is the error of a file system that was made and cannot be read.
func (j *job) gone(label string, k kept, where string) error {
	return errkind.New(errkind.Refused, "partition %d of disk %s was made for %q, which is to be preserved, and no file system with that label is on %s", k.part.Number, j.layout.Disks[k.disk].Disk.Path, label, where).
		Do("Nothing was erased. Repair the file system; or take its label out of preserve in the disk layout, if it may be lost.")
}

// hasGroup reports whether a volume group was read on the partition of k.
func hasGroup(all []kept, k kept) bool {
	return slices.ContainsFunc(all, func(o kept) bool { return o.group != nil && o.disk == k.disk && o.part.Number == k.part.Number })
}

// groupName is the name of the partitions of a volume group.
func groupName(group string) string { return "group-" + group }

// dataName is the name of the partitions of a data block.
func dataName(label string) string { return "data-" + label }

// refuse is the error of a file system that cannot stay where it is.
func (j *job) refuse(label string, k kept, why string) error {
	return errkind.New(errkind.Refused, "%q is to be preserved: it is on partition %d of disk %s (serial %s), at %d MiB with %d MiB, and %s", label, k.part.Number, j.layout.Disks[k.disk].Disk.Path,
		j.layout.Disks[k.disk].Disk.Serial, k.part.Offset()>>20, k.part.Size()>>20, why).
		Do("Nothing was erased. Give the disk layout the sizes that it had; or save the data and take the label out of preserve.")
}

// keepVolume enters a file system that stays into its volume: every member has to lie
// where the layout puts it.
func (j *job) keepVolume(v int, found []kept) error {
	vol := &j.layout.Volumes[v]
	if i := slices.IndexFunc(found, func(k kept) bool { return k.group != nil }); i >= 0 {
		return j.refuse(vol.Label, found[i], fmt.Sprintf("it is logical volume %s of volume group %s, which the layout does not make it", found[i].logical.Name, found[i].group.Name))
	}
	if err := j.inPlace(vol.Label, *vol, found); err != nil {
		return err
	}
	if err := j.sameEncryption(*vol, found); err != nil {
		return err
	}
	vol.Kept, vol.UUID = true, found[0].uuid
	if vol.RAID >= 0 {
		vol.Array = found[0].array
	}
	return nil
}

// sameEncryption checks that what has the label of a volume is encrypted as the layout has it.
func (j *job) sameEncryption(vol wire.Volume, found []kept) error {
	for _, k := range found {
		switch {
		case k.luks && vol.Encryption == "":
			return j.refuse(vol.Label, k, "it is a LUKS2 volume, and the layout does not encrypt it")
		case !k.luks && vol.Encryption != "":
			return j.refuse(vol.Label, k, "it is not encrypted, and the layout encrypts it; what is there is not encrypted in place")
		}
	}
	return nil
}

// inPlace checks that what has a label lies on the partitions of a volume, all of them,
// and where the layout puts these.
func (j *job) inPlace(label string, vol wire.Volume, found []kept) error {
	for n := range found {
		k := &found[n]
		m := slices.IndexFunc(vol.Members, func(m wire.Member) bool { return m.Disk == k.disk })
		if m < 0 {
			return j.refuse(label, *k, "the layout puts it onto other disks")
		}
		for _, p := range j.layout.Disks[k.disk].Partitions {
			if p.Number == vol.Members[m].Partition && (p.Start != k.part.Offset() || p.Size != k.part.Size()) {
				return j.refuse(label, *k, fmt.Sprintf("the layout puts it at %d MiB with %d MiB", p.Start>>20, p.Size>>20))
			}
		}
		switch {
		case (k.array != "") != (vol.RAID >= 0):
			return j.refuse(label, *k, "of another RAID than the layout's")
		case k.array != found[0].array || k.uuid != found[0].uuid:
			return j.refuse(label, *k, "another file system has the same label")
		}
		k.volume = true
	}
	if len(found) != len(vol.Members) {
		return j.refuse(label, found[0], fmt.Sprintf("%d of the %d disks of the layout do not have it", len(vol.Members)-len(found), len(vol.Members)))
	}
	return nil
}

// keepBeside checks that a partition that the layout knows nothing of has its place to
// itself.
func (j *job) keepBeside(label string, found []kept) error {
	for _, k := range found {
		if k.group != nil {
			return j.refuse(label, k, fmt.Sprintf("it is logical volume %s of volume group %s: write a data block of that name in that group", k.logical.Name, k.group.Name))
		}
		for _, p := range j.layout.Disks[k.disk].Partitions {
			if p.Start < k.part.Offset()+k.part.Size() && k.part.Offset() < p.Start+p.Size {
				return j.refuse(label, k, fmt.Sprintf("the layout needs that place for %s, at %d MiB with %d MiB", p.Name, p.Start>>20, p.Size>>20))
			}
		}
		if k.part.Offset() < 1<<20 {
			return j.refuse(label, k, "the install marker belongs there")
		}
	}
	return nil
}

// adopt enters what was kept by a run that ended: its volumes have their identifiers on
// the disks.
func (j *job) adopt() {
	all := j.contents()
	for i := range j.layout.Volumes {
		v := &j.layout.Volumes[i]
		found := labelled(all, v.Label)
		if !v.Keep || len(found) == 0 {
			continue
		}
		v.Kept, v.UUID = v.UUID != found[0].uuid, found[0].uuid
		on := v
		if v.Group != "" {
			on = &j.layout.Volumes[groupOf(j.layout.Volumes, v.Group)]
			on.Kept = on.Kept || v.Kept
		}
		if on.RAID >= 0 {
			on.Array = found[0].array
		}
	}
}

// contentOf reads the label of a file system in a range, also behind the superblock of
// md where the range is a member of an array whose data begin on it: of a RAID 1 on
// every member, of a RAID 10 on those with the first chunk.
func contentOf(r io.ReaderAt, start, size int64) content {
	m, ok := memberOf(r, start, size)
	if !ok {
		return fileSystem(r, start)
	}
	c := content{}
	if m.data != nil {
		c = fileSystem(m.data, 0)
	}
	c.array = m.array
	return c
}

// fileSystem reads the superblock of ext2 to ext4, or of XFS, or the header of a LUKS2 volume
// (LUKS2 On-Disk Format Specification, 2.1).
func fileSystem(r io.ReaderAt, start int64) content {
	b := make([]byte, 2048)
	if _, err := r.ReadAt(b, start); err != nil {
		return content{}
	}
	text := func(b []byte) string {
		b, _, _ = bytes.Cut(b, []byte{0})
		return strings.TrimSpace(string(b))
	}
	switch {
	case string(b[:8]) == "LUKS\xba\xbe\x00\x02":
		return content{label: text(b[24:72]), uuid: text(b[168:208]), luks: true}
	case string(b[:4]) == "XFSB":
		return content{label: text(b[108:120]), uuid: formatUUID(b[32:])}
	case b[1024+56] == 0x53 && b[1024+57] == 0xef:
		return content{label: text(b[1024+120 : 1024+136]), uuid: formatUUID(b[1024+104:])}
	}
	return content{}
}

func formatUUID(b []byte) string { return uuid.UUID(b[:16]).String() }
