// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/lvm"
	"github.com/ironrail/ironrail/internal/wire"
)

// Where the virtual ramdisk puts the label, the metadata and the data of a physical volume
// (lib/format_text/layout.h of LVM2), bytes.
const (
	pvLabel   = 512
	pvHeader  = 32 // in the label
	pvArea    = 4096
	pvText    = 512 // in the area
	pvData    = 1 << 20
	lvmSector = 512
)

// Groups is volumes.Node: a virtual disk that no layout names has no volume group on its
// partitions.
func (l *layoutNode) Groups(_ context.Context, but []string) (map[string]string, error) {
	all := map[string]string{}
	for _, d := range l.kernel.node.disks {
		table, err := gpt.Read(d, d.slot.size)
		if err != nil || slices.Contains(but, "/dev/"+d.slot.name) {
			continue
		}
		for _, p := range table.Partitions() {
			if g, ok, _ := lvm.Read(io.NewSectionReader(d, p.Offset(), p.Size()), p.Size()); ok && g.Name != "" { //nolint:errcheck // no group, then
				all[g.Name] = "/dev/" + d.slot.name
			}
		}
	}
	return all, nil
}

// Group is volumes.Node: the metadata are real, and so are those of its logical volumes.
func (l *layoutNode) Group(_ context.Context, v wire.Volume, device string, remove []string) error {
	if v.Kept {
		g, err := l.groupOn(v.Name, device)
		if err != nil {
			return err
		}
		g.Volumes = slices.DeleteFunc(g.Volumes, func(x lvm.Volume) bool { return slices.Contains(remove, x.Name) })
		return l.putGroup(g, device)
	}
	all := l.at(device)
	if len(all) == 0 {
		return errkind.New(errkind.NotFound, "pvcreate: no device %s", device)
	}
	return l.putGroup(lvm.Group{Name: v.Name, ExtentSize: wire.ExtentSize, Extents: (all[0].size - pvData) / wire.ExtentSize}, device)
}

// groupOn reads the volume group of a name on a device.
func (l *layoutNode) groupOn(name, device string) (g lvm.Group, err error) {
	all := l.at(device)
	if len(all) == 0 {
		return g, errkind.New(errkind.NotFound, "lvm: no device %s", device)
	}
	g, _, err = lvm.Read(io.NewSectionReader(all[0].disk, all[0].at, all[0].size), all[0].size)
	if err == nil && g.Name != name {
		err = errkind.New(errkind.NotFound, "lvm: volume group %q not found", name)
	}
	return g, err
}

// Logical is volumes.Node.
func (l *layoutNode) Logical(_ context.Context, v wire.Volume, on string) (string, error) {
	g, err := l.groupOn(v.Group, on)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(g.Volumes, func(x lvm.Volume) bool { return x.Name == v.Name })
	if v.Kept != (i >= 0) {
		return "", errkind.New(errkind.Mismatch, "lvm: logical volume %s of group %s: kept is %v", v.Name, v.Group, v.Kept)
	}
	if !v.Kept {
		is, err := allocate(g, v)
		if err != nil {
			return "", err
		}
		i, g.Volumes = len(g.Volumes), append(g.Volumes, is)
		if err := l.putGroup(g, on); err != nil {
			return "", err
		}
	}
	var extents []extent
	for _, e := range l.at(on) {
		extents = append(extents, extent{e.disk, e.at + g.Volumes[i].At, g.Volumes[i].Extents * g.ExtentSize})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices[v.MapperDevice()] = extents
	return v.MapperDevice(), nil
}

// allocate finds room for a logical volume, in one piece.
func allocate(g lvm.Group, v wire.Volume) (is lvm.Volume, err error) {
	taken := make([]bool, g.Extents)
	for _, x := range g.Volumes {
		first := (x.At - pvData) / g.ExtentSize
		for i := first; i < first+x.Extents; i++ {
			taken[i] = true
		}
	}
	want, run, longest, at := v.Size/g.ExtentSize, int64(0), int64(0), int64(0)
	for i, t := range taken {
		if run++; t {
			run = 0
		}
		if run > longest && (want == 0 || longest < want) {
			longest, at = run, int64(i)+1-run
		}
	}
	if longest == 0 || longest < want {
		return is, errkind.New(errkind.Mismatch, "lvm: volume group %q has insufficient free space for %s", g.Name, v.Name)
	}
	if want == 0 {
		want = longest
	}
	return lvm.Volume{Name: v.Name, Extents: want, At: pvData + at*g.ExtentSize}, nil
}

// putGroup writes a physical volume with the metadata of its group.
func (l *layoutNode) putGroup(g lvm.Group, device string) error {
	const id = "ironrail0000rehearsal00000000000"
	var b strings.Builder
	fmt.Fprintf(&b, "%s {\nid = \"%s\"\nseqno = 1\nformat = \"lvm2\"\nextent_size = %d\nphysical_volumes {\npv0 {\nid = \"%s\"\npe_start = %d\npe_count = %d\n}\n}\nlogical_volumes {\n", g.Name, id, g.ExtentSize/lvmSector, id, pvData/lvmSector, g.Extents)
	for _, v := range g.Volumes {
		fmt.Fprintf(&b, "%s {\nsegment_count = 1\nsegment1 {\nstart_extent = 0\nextent_count = %d\ntype = \"striped\"\nstripe_count = 1\nstripes = [\n\"pv0\", %d\n]\n}\n}\n", v.Name, v.Extents, (v.At-pvData)/g.ExtentSize)
	}
	text := b.String() + "}\n}\n"
	out := make([]byte, pvArea+pvText+len(text))
	label := out[pvLabel : pvLabel+lvmSector]
	copy(label, "LABELONE")
	binary.LittleEndian.PutUint64(label[8:], pvLabel/lvmSector)
	binary.LittleEndian.PutUint32(label[20:], pvHeader)
	copy(label[24:], "LVM2 001"+id)
	for i, n := range []uint64{uint64(g.Extents*g.ExtentSize + pvData), pvData, 0, 0, 0, pvArea, pvData - pvArea, 0, 0} { // size; areas of data; areas of metadata
		binary.LittleEndian.PutUint64(label[pvHeader+32+8*i:], n)
	}
	binary.LittleEndian.PutUint32(label[16:], lvmSum(label[20:]))
	area := out[pvArea : pvArea+pvText]
	copy(area[4:], " LVM2 x[5A%r0N*>\x01\x00\x00\x00")
	for i, n := range []uint64{pvArea, pvData - pvArea, pvText, uint64(len(text)), uint64(lvmSum([]byte(text)))} {
		binary.LittleEndian.PutUint64(area[24+8*i:], n)
	}
	binary.LittleEndian.PutUint32(area, lvmSum(area[4:]))
	copy(out[pvArea+pvText:], text)
	for _, e := range l.at(device) {
		if _, err := e.disk.writeAt(out, e.at); err != nil {
			return err
		}
	}
	return nil
}

// lvmSum is the checksum of LVM2.
func lvmSum(b []byte) uint32 {
	const start = 0xf597a6cf
	return ^crc32.Update(^uint32(start), crc32.IEEETable, b)
}

// logicalRoot finds the logical volume of a root in the volume group that begins at a
// place of a disk.
func (d *Disk) logicalRoot(at int64) (name string, begins int64, ok bool) {
	size := d.slot.size - at
	g, ok, err := lvm.Read(io.NewSectionReader(d, at, size), size)
	if !ok || err != nil {
		return "", 0, false
	}
	for _, v := range g.Volumes {
		if v.Name == "root" && v.At >= 0 {
			return g.Name + "-" + v.Name, at + v.At, true
		}
	}
	return "", 0, false
}

// logicalDevice is the block device of the logical volume with the root file system, and
// logicalNumber its number.
const (
	logicalDevice = "sys/devices/virtual/block/dm-0"
	logicalNumber = "253:0"
)

// addLogical shows the logical volume with the root file system, and what it is on.
func (s *shape) addLogical(t *tree) {
	there := func(k *Kernel) bool { return k.root != nil && k.root.logical != "" }
	at := branch{t, logicalDevice, there}
	t.put(at.dir+"/slaves", folderIf(there))
	branch{t, "sys/dev/block", there}.link(logicalNumber, logicalDevice)
	on := func(array bool) func(k *Kernel) bool {
		return func(k *Kernel) bool { return there(k) && (k.arrayOfRoot() != "") == array }
	}
	branch{t, logicalDevice + "/slaves", on(true)}.link("md127", arrayDevice)
	for i, d := range s.disks {
		disk := func(k *Kernel) bool { return on(false)(k) && k.rootDisk() == i }
		branch{t, logicalDevice + "/slaves", disk}.link(partitionName(d.name), "sys/block/"+d.name+"/"+partitionName(d.name))
	}
}
