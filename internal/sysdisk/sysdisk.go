// SPDX-License-Identifier: Apache-2.0

// Package sysdisk reads what the partitions of a system disk hold, and which of them
// fstab(5) means: by UUID, label, partition GUID or partition name, never by number.
// The bytes are not trusted.
package sysdisk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/internal/gpt"
)

// Names of file systems, as mount(8) has them.
const (
	Ext4 = "ext4"
	XFS  = "xfs"
	VFAT = "vfat"
)

// Part is a partition with what its superblock says. Kind is Ext4, XFS or VFAT; "" for
// anything else.
type Part struct {
	gpt.Partition
	Kind  string
	UUID  string // as blkid(8) prints it
	Label string
}

// Parts reads the superblocks of all partitions of a disk.
func Parts(disk io.ReaderAt, table *gpt.Table) (all []Part) {
	for _, p := range table.Partitions() {
		part := Part{Partition: p}
		head := make([]byte, 2048)
		if _, err := disk.ReadAt(head, p.Offset()); err == nil {
			part.readSuperblock(head)
		}
		all = append(all, part)
	}
	return all
}

// readSuperblock tells a file system by its superblock (fs/ext4/ext4.h,
// fs/xfs/libxfs/xfs_format.h, Microsoft's FAT specification).
func (p *Part) readSuperblock(head []byte) {
	id := func(b []byte) string { return uuid.UUID(b[:16]).String() }
	text := func(b []byte) string {
		b, _, _ = bytes.Cut(b, []byte{0})
		return strings.TrimRight(string(b), " ")
	}
	fat := func(serial, label []byte) {
		n := binary.LittleEndian.Uint32(serial)
		p.Kind, p.UUID, p.Label = VFAT, fmt.Sprintf("%04X-%04X", n>>16, n&0xffff), text(label)
	}
	switch super := head[1024:]; {
	case string(head[:4]) == "XFSB":
		p.Kind, p.UUID, p.Label = XFS, id(head[32:]), text(head[108:120])
	case super[56] == 0x53 && super[57] == 0xef:
		p.Kind, p.UUID, p.Label = Ext4, id(super[104:]), text(super[120:136])
	case string(head[82:87]) == "FAT32":
		fat(head[67:71], head[71:82])
	case string(head[54:57]) == "FAT":
		fat(head[39:43], head[43:54])
	}
}

// Mount is a line of fstab(5).
type Mount struct {
	Line                       int // from 1
	Device, Dir, Kind, Options string
}

// ReadFstab reads the mounts of a file system table.
func ReadFstab(text string) (all []Mount) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(words[0], "#") {
			continue
		}
		m := Mount{Line: n, Device: words[0], Dir: words[1], Kind: words[2]}
		if strings.HasPrefix(m.Dir, "/") {
			m.Dir = path.Clean(m.Dir)
		}
		if len(words) > 3 {
			m.Options = words[3]
		}
		all = append(all, m)
	}
	return all
}

// SetDevices gives mounts of a file system table other devices, by their folder. The
// rest of the text stays.
func SetDevices(text string, devices map[string]string) string {
	mounts := ReadFstab(text)
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		if len(mounts) > 0 && mounts[0].Line == n {
			if device := devices[mounts[0].Dir]; device != "" {
				line = strings.Replace(line, mounts[0].Device, device, 1)
			}
			mounts = mounts[1:]
		}
		out.WriteString(line)
	}
	return out.String()
}

// IsDevice reports whether a device of fstab(5) is one of a disk, and not of the kernel or
// the network.
func IsDevice(device string) bool {
	if _, ok := tagOf(device); ok {
		return true
	}
	return strings.HasPrefix(device, "/dev/")
}

// tagOf splits a device such as LABEL=BOOT.
func tagOf(device string) (tag [2]string, ok bool) {
	key, value, ok := strings.Cut(device, "=")
	for path, short := range map[string]string{"/dev/disk/by-label/": "LABEL", "/dev/disk/by-uuid/": "UUID", "/dev/disk/by-partuuid/": "PARTUUID", "/dev/disk/by-partlabel/": "PARTLABEL"} {
		if rest, is := strings.CutPrefix(device, path); is {
			key, value, ok = short, rest, true
		}
	}
	switch key {
	case "LABEL", "UUID", "PARTUUID", "PARTLABEL":
		return [2]string{key, strings.Trim(value, `"`)}, ok
	}
	return tag, false
}

// Find returns the one partition that a device of fstab(5) names. One that is named by
// its number on a disk is an error: disks have other names on other machines.
func Find(parts []Part, device string) (found Part, err error) {
	tag, ok := tagOf(device)
	if !ok {
		return found, fmt.Errorf("%s names no file system: LABEL=, UUID=, PARTUUID= or PARTLABEL= do, whatever the disk is called", device)
	}
	n := 0
	for _, p := range parts {
		value := map[string]string{"LABEL": p.Label, "UUID": p.UUID, "PARTUUID": p.GUID, "PARTLABEL": p.Name}[tag[0]]
		if value != "" && (value == tag[1] || strings.HasSuffix(tag[0], "UUID") && strings.EqualFold(value, tag[1])) {
			found, n = p, n+1
		}
	}
	switch n {
	case 0:
		return found, fmt.Errorf("no partition is %s", device)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%d partitions are %s", n, device)
}
