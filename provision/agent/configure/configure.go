// SPDX-License-Identifier: Apache-2.0

// Package configure writes host settings into the root file system of a disk
// that ironrail has just written: name, network, time, SSH, kernel arguments, the
// agent itself. The SSH host key is made here and its private half never leaves.
package configure

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/efiboot"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/agent/volumes"
)

// Mount makes the root file system of a disk that is in partition part usable,
// grown to the partition, with /boot where it is a file system of its own on the disk;
// it calls do, and takes all off again, with everything on the disk. See At for a real
// one.
type Mount func(ctx context.Context, dev disk.Device, part gpt.Partition, do func(rootfs.Root) error) error

// Configurator configures one disk at a time. All but Open and Progress is required.
type Configurator struct {
	Find     func(wire.Disk) (wire.Disk, error) // the disk as it is now, or Mismatch
	Self     func() (io.ReadCloser, error)      // this very program, to be installed
	Mount    Mount
	FS       sysfs.FS     // the root of the running system, whose interfaces are looked at
	Open     disk.Opener  // nil: disk.Open
	Node     volumes.Node // finds a root on a layout; nil: none is configured
	Memory   memory.Node  // has a root in memory; nil: none is configured
	EFI      efiboot.Vars // of the firmware; nil: it is no UEFI, and a boot order is not written
	Progress func(wire.Progress)

	MakeInitrd MakeInitrd // nil: an image that leaves its initrd to the node is refused
	// Kexec has the running kernel load that of a system; nil: it cannot.
	Kexec func(system fs.FS) wire.Kexec
}

// Run does everything again when it is called again; an SSH host key that it has
// made for this install is kept.
func (c *Configurator) Run(ctx context.Context, p wire.ConfigureParams) (result wire.ConfigureResult, err error) {
	settings, err := prepare(p)
	if err != nil {
		return result, err
	}
	if settings.layout, err = interfaces.Find(c.FS, p.Network); err != nil {
		return result, err
	}
	t, err := c.open(p)
	defer t.close()
	if err != nil {
		return result, err
	}
	fresh := t.fresh()
	defer func() { err = errkind.Begun(err) }()
	if err := t.setState(disk.Configuring); err != nil {
		return result, err
	}
	c.phase("mount")
	if err := c.mounted(ctx, t, func(root rootfs.Root) error {
		c.phase("settings")
		if result.HostKey, err = settings.write(root, c.Self, fresh); err != nil {
			return err
		}
		if isForeign(root) {
			if err := settings.foreign(root, t); err != nil {
				return err
			}
		}
		if p.Initrd {
			if err := c.makeInitrds(ctx, root); err != nil {
				return err
			}
		}
		if p.Kexec {
			c.phase("kexec")
			result.Kexec = c.kexec(root)
		}
		return nil
	}); err != nil {
		return result, fmt.Errorf("%s: %w", t.place(), err)
	}
	if p.BootOrder != "" && c.EFI != nil {
		c.phase("boot order")
		order := c.bootOrders(t, p)
		result.BootOrder = &order
	}
	return result, t.setState(disk.Configured)
}

// kexec has the kernel load that of a system. What it does not load is said and is no error: the
// firmware starts it then.
func (c *Configurator) kexec(root rootfs.Root) *wire.Kexec {
	if c.Kexec == nil {
		return &wire.Kexec{Problem: "this ramdisk cannot start another kernel"}
	}
	k := c.Kexec(root.FS())
	return &k
}

// bootOrder puts the firmware's boot order right. What it does not take is told and
// is no error: firmware keeps orders of its own, and the first boot decides.
func bootOrder(vars efiboot.Vars, dev disk.Device, p wire.ConfigureParams) wire.BootOrder {
	table, err := gpt.Read(dev, dev.Size())
	if err != nil {
		return wire.BootOrder{First: p.BootOrder, Current: -1, Problem: err.Error()}
	}
	e, problem := systemPartition(table.Partitions())
	if problem != "" {
		return wire.BootOrder{First: p.BootOrder, Current: -1, Problem: problem}
	}
	return efiboot.Apply(vars, efiboot.Goal{First: p.BootOrder, BootNIC: p.BootNIC, Disk: efiboot.Loader{
		Name: loaderName(p, dev), Partition: e.Number, First: e.First, Sectors: e.Last - e.First + 1, GUID: table.GUID(e.Number), File: efiboot.Removable()}})
}

// loaderName is the description of the entry of a disk: those of several disks differ.
func loaderName(p wire.ConfigureParams, dev disk.Device) string {
	if p.Layout != nil {
		for i, d := range p.Layout.Disks {
			if i > 0 && d.Disk.Path == dev.Name() {
				return fmt.Sprintf("ironrail %d", i+1)
			}
		}
	}
	return "ironrail"
}

// systemPartition is the EFI system partition that the firmware boots from; of two
// it is unknown which one holds the loader.
func systemPartition(all []gpt.Partition) (p gpt.Partition, problem string) {
	var numbers []string
	for _, e := range all {
		if e.Type == gpt.EFISystem {
			p, numbers = e, append(numbers, strconv.Itoa(e.Number))
		}
	}
	switch len(numbers) {
	case 0:
		return p, "the disk has no EFI system partition"
	case 1:
		return p, ""
	}
	return p, fmt.Sprintf("the disk has %d EFI system partitions (%s), and nothing tells which one the firmware is to boot from", len(numbers), strings.Join(numbers, ", "))
}

// phase reports what is being done.
func (c *Configurator) phase(name string) {
	if c.Progress != nil {
		c.Progress(wire.Progress{Phase: name})
	}
}

// mountedLast mounts the last partition of the disk, which is the root file system.
func (c *Configurator) mountedLast(ctx context.Context, dev disk.Device, do func(rootfs.Root) error) error {
	table, err := gpt.Read(dev, dev.Size())
	if err != nil {
		return errkind.New(errkind.Corrupt, "%w", err)
	}
	last, ok := table.Last()
	if !ok {
		return errkind.New(errkind.NotFound, "no partition on the disk")
	}
	return c.Mount(ctx, dev, last, do)
}
