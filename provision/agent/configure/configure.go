// Package configure writes host settings into the root file system of a disk
// that ironrail has just written: name, network, time, SSH, kernel arguments, the
// agent itself. The SSH host key is made here and its private half never leaves.
package configure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/gpt"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/errkind"
)

// Configurator configures one disk at a time.
type Configurator struct {
	Find     func(wire.Disk) (wire.Disk, error) // the disk as it is now, or Mismatch
	Self     string                             // file of this very program, to be installed
	MountAt  string                             // folder, made when absent
	Progress func(wire.Progress)
}

// Run does everything again when it is called again; an SSH host key that it has
// made for this install is kept.
func (c *Configurator) Run(ctx context.Context, p wire.ConfigureParams) (result wire.ConfigureResult, err error) {
	settings, err := prepare(p)
	if err != nil {
		return result, err
	}
	if _, err := c.Find(p.Disk); err != nil {
		return result, err
	}
	dev, err := disk.Open(p.Disk.Path, disk.Shared)
	if err != nil {
		return result, err
	}
	defer dev.Close()
	marker, ok := disk.ReadMarker(dev)
	if !ok || marker.State == disk.Writing {
		return result, errkind.New(errkind.Refused, "disk %s does not carry a whole install of ironrail", p.Disk.Path).
			Do("Run the write of this node first.")
	}
	fresh := marker.State == disk.Complete
	if err := setState(dev, marker, disk.Configuring); err != nil {
		return result, err
	}
	c.phase("mount")
	if err := c.mounted(ctx, dev, func(root *os.Root) error {
		c.phase("settings")
		result.HostKey, err = settings.write(root, c.Self, fresh)
		return err
	}); err != nil {
		return result, fmt.Errorf("disk %s: %w", p.Disk.Path, err)
	}
	return result, setState(dev, marker, disk.Configured)
}

// setState moves the install marker on.
func setState(dev *disk.Device, marker disk.Marker, state disk.State) error {
	marker.State = state
	return dev.PutMarker(marker)
}

// phase reports what is being done.
func (c *Configurator) phase(name string) {
	if c.Progress != nil {
		c.Progress(wire.Progress{Phase: name})
	}
}

// mounted mounts the last partition of the disk, which is the root file system,
// grows the file system to the partition, calls do, and takes it off again, with
// everything on the disk.
func (c *Configurator) mounted(ctx context.Context, dev *disk.Device, do func(*os.Root) error) (err error) {
	table, err := gpt.Read(dev, dev.Size())
	if err != nil {
		return errkind.New(errkind.Mismatch, "%w", err)
	}
	last, ok := table.Last()
	if !ok {
		return errkind.New(errkind.Mismatch, "no partition on the disk")
	}
	part := partitionPath(dev.Name(), last.Number)
	if err := waitFor(ctx, part); err != nil {
		return err
	}
	if err := os.MkdirAll(c.MountAt, 0o755); err != nil {
		return err
	}
	// A mount that a killed agent has left behind.
	if err := unix.Unmount(c.MountAt, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount what was at %s: %w", c.MountAt, err)
	}
	if err := unix.Mount(part, c.MountAt, "ext4", unix.MS_NOATIME, ""); err != nil {
		return errkind.New(errkind.Mismatch, "mount %s as ext4: %w", part, err).Do("Write the image again; its root file system is damaged.")
	}
	defer func() { err = errors.Join(err, c.takeOff()) }()
	if err := growFileSystem(c.MountAt, last.Size()); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.MountAt)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// takeOff syncs and unmounts.
func (c *Configurator) takeOff() error {
	var err error
	for range 20 {
		unix.Sync()
		if err = unix.Unmount(c.MountAt, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", c.MountAt, err)
	}
	return nil
}

// partitionPath is the kernel's name: sda3, but nvme0n1p3.
func partitionPath(disk string, number int) string {
	if end := disk[len(disk)-1]; end >= '0' && end <= '9' {
		disk += "p"
	}
	return disk + strconv.Itoa(number)
}

// waitFor waits for a device node, which comes soon after the table was read.
func waitFor(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errkind.New(errkind.Timeout, "no device %s after 30 s", path).Do("Write the image again; its partition table was not taken by the kernel.")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
