// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// At mounts with this very kernel, at a folder that is made when absent.
func At(dir string) Mount {
	return func(ctx context.Context, dev disk.Device, part gpt.Partition, do func(rootfs.Root) error) error {
		table, err := gpt.Read(dev, dev.Size())
		if err != nil {
			return errkind.New(errkind.Corrupt, "%w", err)
		}
		m := mounter{disk: dev.Name(), parts: sysdisk.Parts(dev, table), dir: dir}
		for _, p := range m.parts {
			if p.Number == part.Number {
				return m.mounted(ctx, p, do)
			}
		}
		return errkind.New(errkind.NotFound, "no partition %d on the disk", part.Number)
	}
}

// mounter mounts a system at a folder.
type mounter struct {
	disk  string
	parts []sysdisk.Part
	dir   string
}

// mounted mounts the root, grows its file system to the size of its partition, calls do
// with /boot in its place, and takes all off again.
func (m mounter) mounted(ctx context.Context, part sysdisk.Part, do func(rootfs.Root) error) (err error) {
	dir := m.dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A mount that a killed agent has left behind.
	for _, old := range []string{filepath.Join(dir, "proc"), filepath.Join(dir, "dev"), filepath.Join(dir, "boot"), dir} {
		if err := unix.Unmount(old, unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount what was at %s: %w", old, err)
		}
	}
	if err := m.mount(ctx, part, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, takeOff(dir)) }()
	if err := growFileSystem(dir, part.Size()); err != nil {
		return err
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return m.withBoot(ctx, root, do)
}

// withBoot calls do with /boot mounted, where it is a file system of its own.
func (m mounter) withBoot(ctx context.Context, root rootfs.Root, do func(rootfs.Root) error) (err error) {
	fstab, err := fs.ReadFile(root.FS(), fstabFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	boot, own, err := bootPart(m.parts, string(fstab))
	if err != nil {
		return err
	}
	if !own {
		return do(root)
	}
	at := filepath.Join(m.dir, "boot")
	if info, err := os.Lstat(at); err != nil || !info.IsDir() { // a link would lead out of the root
		return errkind.New(errkind.Corrupt, "/boot of the image is no folder: %w", err)
	}
	if err := m.mount(ctx, boot, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, takeOff(at)) }()
	return do(root)
}

// mount mounts a partition at a folder.
func (m mounter) mount(ctx context.Context, part sysdisk.Part, dir string) error {
	kind := part.Kind
	if kind != sysdisk.XFS {
		kind = sysdisk.Ext4
	}
	path := partitionPath(m.disk, part.Number)
	if err := waitFor(ctx, path); err != nil {
		return err
	}
	if err := unix.Mount(path, dir, kind, unix.MS_NOATIME, ""); err != nil {
		return errkind.New(errkind.Corrupt, "mount %s as %s: %w", path, kind, err).Do("Write the image again; its file system is damaged.")
	}
	return nil
}

// takeOff syncs and unmounts.
func takeOff(dir string) error {
	var err error
	for range 20 {
		unix.Sync()
		if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
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
