// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// notDisks are the block devices that are no disks, by the start of their name.
var notDisks = []string{"loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd", "mtdblock", "pmem"}

// Disks lists the fixed disks, with a look at what stands on them.
func (i Inspector) Disks() []wire.Disk {
	disks := []wire.Disk{}
	for _, name := range i.FS.Names("sys/block") {
		if d, ok := i.disk(name); ok {
			disks = append(disks, d)
		}
	}
	// A look at a blank disk that turns takes seconds, and a node may have dozens.
	var looks errgroup.Group
	looks.SetLimit(parallelLooks)
	for n := range disks {
		looks.Go(func() error {
			i.readContent(&disks[n])
			return nil
		})
	}
	_ = looks.Wait() // a look has no error: what it could not see is in Content
	return disks
}

// Drives lists the fixed disks without a look at what is on them: none is opened.
func (i Inspector) Drives() (list []wire.Disk) {
	for _, name := range i.FS.Names("sys/block") {
		if d, ok := i.disk(name); ok {
			list = append(list, d)
		}
	}
	return list
}

// parallelLooks is how many disks are looked at at a time.
const parallelLooks = 8

// Find returns the disk that was inspected as want, as it is now. Anything that
// differs is a Mismatch: a disk that was renumbered or swapped is never written.
func (i Inspector) Find(want wire.Disk) (wire.Disk, error) {
	name := strings.TrimPrefix(want.Path, "/dev/")
	got, ok := wire.Disk{}, false
	if name != "" && !strings.Contains(name, "/") {
		got, ok = i.disk(name)
	}
	differs := func(format string, args ...any) (wire.Disk, error) {
		return wire.Disk{}, errkind.New(errkind.Mismatch, format, args...).Do("Inspect the node again; its disks are not what they were.")
	}
	if !ok {
		return differs("there is no disk %q", want.Path)
	}
	for _, x := range []struct {
		differs   bool
		format    string
		got, want any
	}{
		{got.Size != want.Size, "disk %s has %d bytes, expected %d", got.Size, want.Size},
		{got.Serial != want.Serial, "disk %s has serial %q, expected %q", got.Serial, want.Serial},
		{want.WWN != "" && got.WWN != want.WWN, "disk %s has WWN %q, expected %q", got.WWN, want.WWN},
		{want.PCI != "" && got.PCI != want.PCI, "disk %s is at PCI %s, expected %s", got.PCI, want.PCI},
		{want.ByPath != "" && got.ByPath != want.ByPath, "disk %s is at %s, expected %s", got.ByPath, want.ByPath},
		{want.Bay != "" && got.Bay != want.Bay, "disk %s is in bay %q, expected %q", got.Bay, want.Bay},
		{want.Sector != 0 && got.Sector != want.Sector, "disk %s has sectors of %d bytes, expected %d", got.Sector, want.Sector},
	} {
		if x.differs {
			return differs(x.format, want.Path, x.got, x.want)
		}
	}
	i.readContent(&got)
	return got, nil
}

// disk describes a block device, when it is a disk that ironrail could use.
func (i Inspector) disk(name string) (wire.Disk, bool) {
	attr := func(elem string) string { return i.FS.Text("sys/block", name, elem) }
	d, ok := DiskOf(name, i.FS.Real("sys/block", name), attr)
	if !ok {
		return d, false
	}
	d.Serial, d.ByPath, d.Bay = i.serial(name), byPath(i.FS, name), bay(i.FS, name)
	d.Sector = int(number(attr("queue/logical_block_size")))
	return d, true
}

// DiskOf describes a block device by its name, its real path below /sys and the text
// of the kernel's attributes; a page of vital product data is given without its header.
// false: it is no disk that ironrail could use.
func DiskOf(name, real string, attr func(string) string) (wire.Disk, bool) {
	for _, prefix := range notDisks {
		if strings.HasPrefix(name, prefix) {
			return wire.Disk{}, false
		}
	}
	size := number(attr("size")) * 512 // always in 512-byte units, whatever the sectors are
	if size == 0 || attr("removable") == "1" || attr("hidden") == "1" {
		return wire.Disk{}, false
	}
	return wire.Disk{
		Name: name, Path: "/dev/" + name, Size: size,
		PCI:    sysfs.PCI(real),
		Type:   diskType(name, attr("queue/rotational")),
		Model:  attr("device/model"),
		Serial: first(attr("serial"), attr("device/serial"), attr("device/vpd_pg80")),
		WWN:    first(attr("wwid"), attr("device/wwid")),
	}, true
}

// diskType sorts a disk; virtio says it is rotational, so its name comes first.
func diskType(name, rotational string) string {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	case strings.HasPrefix(name, "vd"):
		return "virtio"
	case rotational == "0":
		return "ssd"
	}
	return "hdd"
}

// serial comes from virtio-blk's own attribute, from NVMe's, or from SCSI's vital
// product data page 80h, whose text follows a header of four bytes (SPC-4, 7.8.15).
func (i Inspector) serial(name string) string {
	if s := first(i.FS.Text("sys/block", name, "serial"), i.FS.Text("sys/block", name, "device/serial")); s != "" {
		return s
	}
	page := i.FS.Bytes("sys/block", name, "device/vpd_pg80")
	if len(page) <= 4 {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(page[4:]), "\x00"))
}

// readContent says what is on the disk. A disk that cannot be read is not blank.
func (i Inspector) readContent(d *wire.Disk) {
	dev, err := i.open(d.Path)
	if err != nil {
		d.Content = "unreadable"
		return
	}
	defer dev.Close()
	d.Content = disk.Probe(dev, dev.Size())
	readMarker(dev, d)
}

// open opens a disk to look at it.
func (i Inspector) open(path string) (disk.Device, error) {
	if i.Open == nil {
		return disk.Open(path, disk.Look)
	}
	return i.Open(path, disk.Look)
}

func readMarker(dev disk.Device, d *wire.Disk) {
	if m, ok := disk.ReadMarker(dev); ok {
		d.Marker, d.State = m.Text, string(m.State)
	}
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// number reads a decimal, or 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
