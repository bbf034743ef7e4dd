// SPDX-License-Identifier: Apache-2.0

// Package volumes makes the partitions, arrays and file systems of a layout on the disks
// of a node, and puts the files of an image onto them: on the right disks or on none,
// with what is preserved left where it is. The install marker stands on every disk
// before anything else of it is changed, so that a run that was cut off anywhere is begun
// again by the next one.
package volumes

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// Node is what a layout is made with on a node, beside the bytes of its disks: OnNode on
// a real one.
type Node interface {
	// Release takes apart what holds any of these disks, by their paths: mounts, logical
	// volumes and arrays that an earlier run, or the kernel, has made from them.
	Release(ctx context.Context, disks []string) error
	// Groups returns the volume groups of LVM on all disks but these, by name, each with a
	// device that it is on.
	Groups(ctx context.Context, but []string) (map[string]string, error)
	// Partition returns the device of a partition, after the table was written.
	Partition(ctx context.Context, disk string, p wire.LayoutPartition) (device string, err error)
	// Array makes the array of a volume from devices and returns its own. Of one that is
	// kept it only puts together what is there.
	Array(ctx context.Context, v wire.Volume, devices []string) (device string, err error)
	// Group makes the volume group of a volume on a device. Of one that is kept it takes
	// away logical volumes, by name.
	Group(ctx context.Context, v wire.Volume, device string, remove []string) error
	// Logical makes the logical volume of a volume in its group, which is on a device, and
	// returns its own. One that is kept it only makes usable.
	Logical(ctx context.Context, v wire.Volume, on string) (device string, err error)
	// Format makes the file system of a volume, or its swap space. A volume that will be
	// encrypted is left blank: the installed system does that, whose boot its TPM measures.
	Format(ctx context.Context, v wire.Volume, device string) error
	// Unpack puts the files of an image onto file systems that were just made, the root
	// first, and reads them back from the disks. read is called with the number of bytes.
	Unpack(ctx context.Context, on []Mount, tree io.Reader, read func(int64)) error
	// Mounted mounts a root file system, calls do, and takes it off again.
	Mounted(ctx context.Context, root Mount, do func(rootfs.Root) error) error
}

// Mount is a file system and its place in the tree.
type Mount struct {
	Device     string
	Filesystem string
	At         string // absolute
}

// Image is where the bytes come from.
type Image interface {
	// Boot is what the firmware starts. It is fetched and verified before anything is
	// erased.
	Boot(ctx context.Context) (Boot, error)
	// Tree are the files of the root file system, as roottree has them; every byte was
	// verified.
	Tree(ctx context.Context) io.ReadCloser
}

// Boot is what the firmware starts, as the image's own disk has it.
type Boot struct {
	Code []byte // of the master boot record
	BIOS []byte // of the BIOS boot partition; nil: the image has none
	ESP  []byte // of the EFI system partition
}

// Maker makes one layout at a time. All but Open and Progress is required.
type Maker struct {
	Find     func(wire.Disk) (wire.Disk, error) // the disk as it is now, or Mismatch
	Open     disk.Opener                        // nil: disk.Open
	Node     Node
	BIOS     bool                          // the firmware is a BIOS: it starts no disk with sectors of 4096 bytes
	Progress func(phase string, add int64) // nil: nobody listens
}

// job is one layout in the making.
type job struct {
	Maker
	layout wire.Layout
	marker disk.Marker
	image  Image
	boot   Boot
	devs   []disk.Device
	old    []disk.Marker // what each disk carried
	kept   []kept
	remove map[string][]string // logical volumes of volume groups that are kept, by group
}

// Run makes the layout and returns it as it is now: a file system that was kept has its
// own identifiers. digest is that of the image's manifest, marker the text of the install
// marker, and already reports that all was there. It may be called again after it was cut
// off anywhere.
func (m Maker) Run(ctx context.Context, l wire.Layout, marker, digest string, image Image) (is wire.Layout, already bool, err error) {
	if m.Open == nil {
		m.Open = disk.Open
	}
	j := &job{Maker: m, layout: clone(l), marker: disk.Marker{Text: marker, Digest: digest}, image: image}
	if err := checkLayout(l); err != nil {
		return is, false, err
	}
	defer func() {
		for _, d := range j.devs {
			d.Close()
		}
	}()
	if err := j.open(ctx); err != nil {
		return is, false, err
	}
	if j.complete() {
		j.adopt()
		return j.layout, true, nil
	}
	if j.boot, err = image.Boot(ctx); err != nil {
		return is, false, err
	}
	if err := j.bootFits(); err != nil {
		return is, false, err
	}
	if err := j.keep(); err != nil {
		return is, false, err
	}
	if err := j.namesFree(ctx); err != nil {
		return is, false, err
	}
	if err := j.make(ctx); err != nil {
		return is, false, errkind.Begun(err)
	}
	return j.layout, false, nil
}

// open finds every disk before the first is touched, takes apart what holds them, and
// looks at what stands on each now.
func (j *job) open(ctx context.Context) error {
	var paths []string
	for _, d := range j.layout.Disks {
		found, err := j.Find(d.Disk)
		if err == nil {
			err = j.mayErase(d, found.Marker, found.Content)
		}
		if err != nil {
			return err
		}
		paths = append(paths, d.Disk.Path)
	}
	if err := j.Node.Release(ctx, paths); err != nil {
		return err
	}
	for _, d := range j.layout.Disks {
		dev, err := j.Open(d.Disk.Path, disk.Exclusive)
		if err != nil {
			return err
		}
		j.devs = append(j.devs, dev)
		if err := j.starts(d, dev.SectorSize()); err != nil {
			return err
		}
		old, _ := disk.ReadMarker(dev)
		j.old = append(j.old, old)
		if err := j.mayErase(d, old.Text, disk.Probe(dev, dev.Size())); err != nil {
			return err
		}
	}
	return nil
}

// starts checks that partitions can be made on a disk, and that the firmware starts it.
func (j *job) starts(d wire.LayoutDisk, sector int) error {
	switch {
	case sector != gpt.Sector && sector != gpt.Sector4K:
		return errkind.New(errkind.Unsupported, "disk %s has logical sectors of %d bytes; layouts fit onto %d and %d", d.Disk.Path, sector, gpt.Sector, gpt.Sector4K).
			Do("Set the disk to 512-byte logical sectors (nvme format, sg_format), or use another one.")
	case sector == gpt.Sector4K && j.BIOS && d.System:
		return errkind.New(errkind.Unsupported, "disk %s has logical sectors of %d bytes; this node boots by BIOS, which starts no such disk", d.Disk.Path, sector).
			Do("Set the node to UEFI boot, or the disk to 512-byte logical sectors (nvme format, sg_format), or use another disk.")
	}
	return nil
}

// mayErase is the last gate before a disk loses its content.
func (j *job) mayErase(d wire.LayoutDisk, marker, content string) error {
	if content == "" || d.AllowData || marker == j.marker.Text {
		return nil
	}
	if marker != "" {
		content += fmt.Sprintf(", written by ironrail as %q", marker)
	}
	return errkind.New(errkind.Refused, "disk %s (serial %s) is not blank: %s", d.Disk.Path, d.Disk.Serial, content).
		Do("Look whether the data is needed; to erase it, replace the node with `ironrail rebuild`.")
}

// complete reports whether this very write ended on every disk: its files were read back
// before the markers said so.
func (j *job) complete() bool {
	for _, m := range j.old {
		if m.Text != j.marker.Text || m.Digest != j.marker.Digest || m.State == disk.Writing || m.State == "" {
			return false
		}
	}
	return true
}

// make does the work, from the first byte that is changed.
func (j *job) make(ctx context.Context) error {
	if err := j.mark(disk.Writing); err != nil {
		return err
	}
	for i := range j.devs {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := j.prepare(i); err != nil {
			return fmt.Errorf("disk %s: %w", j.layout.Disks[i].Disk.Path, &wire.PartError{Part: wire.PartDisk, Err: err})
		}
	}
	if err := j.share(); err != nil {
		return err
	}
	on, err := j.volumes(ctx)
	if err != nil {
		return err
	}
	j.report("write", 0)
	tree := j.image.Tree(ctx)
	defer tree.Close()
	if err := j.Node.Unpack(ctx, on, tree, func(n int64) { j.report("verify", n) }); err != nil {
		return err
	}
	return j.mark(disk.Complete)
}

// share opens the disks anew without holding them: while a whole disk is held, nobody
// else can hold a partition of it, neither mdadm nor a mount.
func (j *job) share() error {
	for i, d := range j.layout.Disks {
		if err := j.devs[i].Close(); err != nil {
			return fmt.Errorf("disk %s: %w", d.Disk.Path, &wire.PartError{Part: wire.PartDisk, Err: err})
		}
		dev, err := j.Open(d.Disk.Path, disk.Shared)
		if err != nil {
			j.devs = slices.Delete(j.devs, i, i+1) // it is closed
			return err
		}
		j.devs[i] = dev
	}
	return nil
}

// mark writes the marker onto every disk.
func (j *job) mark(state disk.State) error {
	j.marker.State = state
	for i, dev := range j.devs {
		if err := disk.PutMarker(dev, j.marker); err != nil {
			return fmt.Errorf("disk %s: %w", j.layout.Disks[i].Disk.Path, &wire.PartError{Part: wire.PartDisk, Err: err})
		}
	}
	return nil
}

// volumes makes arrays and file systems, and returns those that files are put onto.
func (j *job) volumes(ctx context.Context) (on []Mount, err error) {
	groups := map[string]string{} // devices by volume group
	for _, v := range j.layout.Volumes {
		j.report("make "+v.Name, 0)
		device, err := device(ctx, j.Node, j.layout, v, groups)
		switch {
		case err != nil:
		case v.Use == wire.VolumeGroup:
			groups[v.Name] = device
			err = j.Node.Group(ctx, v, device, j.remove[v.Name])
		case !v.Kept:
			err = j.Node.Format(ctx, v, device)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		m := Mount{device, v.Filesystem, v.Mount}
		switch {
		case v.Use == wire.VolumeRoot:
			on = append([]Mount{m}, on...)
		case v.Use == wire.VolumeData && !v.Kept && v.Encryption == "":
			on = append(on, m)
		}
	}
	if len(groups) > 0 {
		if err := j.readGroups(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(on, func(a, b Mount) int { return strings.Compare(a.At, b.At) }) // what lies in another comes after it
	return on, nil
}

// device makes or finds what a volume is on. groups are the devices of the volume groups
// that were made, by name.
func device(ctx context.Context, n Node, l wire.Layout, v wire.Volume, groups map[string]string) (string, error) {
	if v.Group != "" {
		return n.Logical(ctx, v, groups[v.Group])
	}
	var devices []string
	for _, m := range v.Members {
		d := l.Disks[m.Disk]
		for _, p := range d.Partitions {
			if p.Number != m.Partition {
				continue
			}
			path, err := n.Partition(ctx, d.Disk.Path, p)
			if err != nil {
				return "", err
			}
			devices = append(devices, path)
		}
	}
	if v.RAID < 0 {
		return devices[0], nil
	}
	return n.Array(ctx, v, devices)
}

// Root mounts the root file system of a layout that was made, and calls do.
func Root(ctx context.Context, n Node, l wire.Layout, do func(rootfs.Root) error) error {
	if err := checkLayout(l); err != nil {
		return err
	}
	var paths []string
	for _, d := range l.Disks {
		paths = append(paths, d.Disk.Path)
	}
	if err := n.Release(ctx, paths); err != nil {
		return err
	}
	path, v, err := rootDevice(ctx, n, l)
	if err != nil {
		return err
	}
	return n.Mounted(ctx, Mount{path, v.Filesystem, v.Mount}, do)
}

// rootDevice puts together what the root file system is on; nothing is made.
func rootDevice(ctx context.Context, n Node, l wire.Layout) (path string, root wire.Volume, err error) {
	i := slices.IndexFunc(l.Volumes, func(v wire.Volume) bool { return v.Use == wire.VolumeRoot })
	root = l.Volumes[i] // the layout was checked: it has one
	groups := map[string]string{}
	for _, v := range l.Volumes[:i+1] {
		v.Kept = true
		if v.Use == wire.VolumeRoot || v.Use == wire.VolumeGroup && v.Name == root.Group {
			if path, err = device(ctx, n, l, v, groups); err != nil {
				return "", root, err
			}
			groups[v.Name] = path
		}
	}
	return path, root, nil
}

func (j *job) report(phase string, add int64) {
	if j.Progress != nil {
		j.Progress(phase, add)
	}
}
