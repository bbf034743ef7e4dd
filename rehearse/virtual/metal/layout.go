// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/volumes"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// Places in the superblock of md, version 1.2, that the virtual ramdisk writes
// (linux/raid/md_p.h), and where the data of its arrays begin.
const (
	mdMagic      = 0xa92b4efc
	mdOffset     = 4096
	mdArray      = 16
	mdName       = 32
	mdLevel      = 72
	mdDisks      = 92
	mdDataOffset = 128
	mdNumber     = 160
	mdMost       = 220
	mdRoles      = 256
	mdData       = 2 << 20
)

// extent is a partition of a disk, or where the data of a member of an array begin.
type extent struct {
	disk *Disk
	at   int64
	size int64
}

// layoutNode makes disk layouts on a virtual node: tables, superblocks and marks are real
// bytes on its disks, the files of a root are in memory. It implements volumes.Node.
type layoutNode struct {
	kernel *Kernel

	mu      sync.Mutex
	devices map[string][]extent // by path, the members of arrays among them; guarded by mu
}

var _ volumes.Node = (*layoutNode)(nil)

// Release is volumes.Node: what was assembled is taken apart.
func (l *layoutNode) Release(context.Context, []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices = map[string][]extent{}
	return nil
}

// Partition is volumes.Node: the table that was written has to have it.
func (l *layoutNode) Partition(_ context.Context, disk string, p wire.LayoutPartition) (string, error) {
	i := slices.IndexFunc(l.kernel.node.disks, func(d *Disk) bool { return path.Join("/dev", d.slot.name) == disk })
	if i < 0 {
		return "", errkind.New(errkind.NotFound, "no disk %s", disk)
	}
	d := l.kernel.node.disks[i]
	table, err := gpt.Read(d, d.slot.size)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(table.Partitions(), func(is gpt.Partition) bool {
		return is.Number == p.Number && is.Offset() == p.Start && is.Size() == p.Size
	}) {
		return "", errkind.New(errkind.Corrupt, "disk %s has no partition %d at %d", disk, p.Number, p.Start)
	}
	device := disk
	if end := disk[len(disk)-1]; end >= '0' && end <= '9' {
		device += "p"
	}
	device += strconv.Itoa(p.Number)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices[device] = []extent{{d, p.Start, p.Size}}
	return device, nil
}

// Array is volumes.Node.
func (l *layoutNode) Array(_ context.Context, v wire.Volume, devices []string) (string, error) {
	id, err := uuid.Parse(v.Array)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var members []extent
	for i, name := range devices {
		for _, e := range l.devices[name] {
			if !v.Kept {
				if _, err := e.disk.writeAt(memberOf(id, v.Name, i, len(devices)), e.at+mdOffset); err != nil {
					return "", err
				}
			} else if is, _ := e.disk.member(e.at); is != v.Array {
				return "", errkind.New(errkind.Corrupt, "mdadm --assemble: %s is no member of array %s", name, v.Array)
			}
			members = append(members, extent{e.disk, e.at + mdData, e.size - mdData})
		}
	}
	device := "/dev/md/" + v.Name
	l.devices[device] = members
	return device, nil
}

// memberOf is the superblock of one of the members of an array. Each has all of its data,
// whatever its level: so it says to be of a RAID 1.
func memberOf(id uuid.UUID, name string, role, disks int) []byte {
	b := make([]byte, mdRoles+2*disks)
	binary.LittleEndian.PutUint32(b[mdLevel:], 1)
	binary.LittleEndian.PutUint32(b[mdDisks:], uint32(disks))
	binary.LittleEndian.PutUint32(b[mdNumber:], uint32(role))
	binary.LittleEndian.PutUint32(b[mdMost:], uint32(disks))
	for i := range disks {
		binary.LittleEndian.PutUint16(b[mdRoles+2*i:], uint16(i))
	}
	binary.LittleEndian.PutUint32(b, mdMagic)
	binary.LittleEndian.PutUint32(b[4:], 1)
	copy(b[mdArray:], id[:])
	copy(b[mdName:], "any:"+name)
	binary.LittleEndian.PutUint64(b[mdDataOffset:], mdData/512)
	return b
}

// member reads which array a partition is a member of; "": of none.
func (d *Disk) member(at int64) (array string, data int64) {
	b := make([]byte, 256)
	if _, err := d.ReadAt(b, at+mdOffset); err != nil || binary.LittleEndian.Uint32(b) != mdMagic {
		return "", 0
	}
	return uuid.UUID(b[mdArray : mdArray+16]).String(), int64(binary.LittleEndian.Uint64(b[mdDataOffset:])) * 512
}

// Format is volumes.Node: as much of a superblock as tells the file system, its label and
// its identifier.
func (l *layoutNode) Format(_ context.Context, v wire.Volume, device string) error {
	id, err := uuid.Parse(v.UUID)
	if err != nil {
		return err
	}
	b := make([]byte, 4096)
	switch kind := v.Filesystem; {
	case v.Encryption != "": // left blank
	case kind == "ext4":
		b[1024+0x38], b[1024+0x39], b[1024+0x5c], b[1024+0x60] = 0x53, 0xef, 0x04, 0x40
		copy(b[1024+0x68:], id[:])
		copy(b[1024+0x78:1024+0x88], v.Label)
	case kind == "xfs":
		copy(b, "XFSB")
		copy(b[32:], id[:])
		copy(b[108:120], v.Label)
	case kind == "swap":
		copy(b[4086:], "SWAPSPACE2")
		copy(b[1024+12:], id[:])
	default:
		return errkind.New(errkind.Internal, "no file system %q is made", v.Filesystem)
	}
	for _, e := range l.at(device) {
		if _, err := e.disk.writeAt(b, e.at); err != nil {
			return err
		}
	}
	return nil
}

// at returns where the data of a device lie: of a mirror on each member.
func (l *layoutNode) at(device string) []extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.devices[device])
}

// Unpack is volumes.Node: the files of a simulated image begin with what its system says
// to be; the rest of them only takes time.
func (l *layoutNode) Unpack(ctx context.Context, on []volumes.Mount, tree io.Reader, read func(int64)) error {
	about := make([]byte, twin.Size)
	if _, err := io.ReadFull(tree, about); err != nil {
		return err
	}
	more, err := io.Copy(io.Discard, tree)
	if err != nil {
		return err
	}
	if len(on) == 0 || len(l.at(on[0].Device)) == 0 {
		return errkind.New(errkind.Internal, "nothing is there to put files onto")
	}
	for _, e := range l.at(on[0].Device) {
		h := e.disk.open(ctx, path.Join("/dev", e.disk.slot.name), disk.Exclusive)
		if _, err := h.WriteAt(about, e.at+twin.Place); err != nil {
			return err
		}
		if err := h.owe(more, rates[e.disk.slot.kind].write, 0); err != nil {
			return err
		}
	}
	read(more + int64(len(about)))
	return nil
}

// Mounted is volumes.Node.
func (l *layoutNode) Mounted(_ context.Context, root volumes.Mount, do func(rootfs.Root) error) error {
	all := l.at(root.Device)
	if len(all) == 0 {
		return errkind.New(errkind.NotFound, "mount %s: no such device", root.Device)
	}
	r, err := all[0].disk.mounted()
	if err != nil {
		return err
	}
	return do(r)
}

// arrayOfRoot is the array that a kernel's root file system lies on; "": on none.
func (k *Kernel) arrayOfRoot() string {
	if k.root == nil {
		return ""
	}
	return k.root.array
}

// isMember reports whether the root file system of the kernel lies on an array of which a
// disk has a part.
func (k *Kernel) isMember(i int) bool {
	array := k.arrayOfRoot()
	d := k.node.disks[i]
	if array == "" || k.node.missing(d.slot.function) {
		return false
	}
	p, err := d.rootPartition()
	return err == nil && p.array == array
}

// arrayDevice is the block device of the array with the root file system, and
// arrayNumber its number.
const (
	arrayDevice = "sys/devices/virtual/block/md127"
	arrayNumber = "9:127"
)

// addArray shows the array with the root file system and its members.
func (s *shape) addArray(t *tree) {
	there := func(k *Kernel) bool { return k.arrayOfRoot() != "" }
	at := branch{t, arrayDevice, there}
	t.put(at.dir+"/slaves", folderIf(there))
	at.text("md/level", "raid1")
	branch{t, "sys/dev/block", there}.link(arrayNumber, arrayDevice)
	for i, d := range s.disks {
		member := func(k *Kernel) bool { return k.isMember(i) }
		branch{t, arrayDevice + "/slaves", member}.link(partitionName(d.name), "sys/block/"+d.name+"/"+partitionName(d.name))
	}
}

// mdstat is /proc/mdstat: the array with the root, whole unless a member is not there.
func (k *Kernel) mdstat() string {
	text := "Personalities : [raid1] [raid10] \n"
	if k.arrayOfRoot() != "" {
		var members, up []string
		for i, d := range k.node.disks {
			if k.isMember(i) {
				members, up = append(members, fmt.Sprintf("%s[%d]", partitionName(d.Name()), len(members))), append(up, "U")
			}
		}
		text += fmt.Sprintf("md127 : active raid1 %s\n      3145728 blocks super 1.2 [%d/%d] [%s]\n\n", strings.Join(members, " "), len(members), len(members), strings.Join(up, ""))
	}
	return text + "unused devices: <none>"
}
