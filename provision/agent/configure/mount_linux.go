// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// At mounts with this very kernel, at a folder that is made when absent.
func At(dir string) Mount {
	return func(ctx context.Context, dev disk.Device, part gpt.Partition, do func(rootfs.Root) error) error {
		return mounted(ctx, partitionPath(dev.Name(), part.Number), dir, part.Size(), do)
	}
}

// mounted mounts part at dir, grows its file system to size bytes, calls do, and
// takes it off again.
func mounted(ctx context.Context, part, dir string, size int64, do func(rootfs.Root) error) (err error) {
	if err := waitFor(ctx, part); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A mount that a killed agent has left behind.
	if err := unix.Unmount(dir, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount what was at %s: %w", dir, err)
	}
	if err := unix.Mount(part, dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return errkind.New(errkind.Corrupt, "mount %s as ext4: %w", part, err).Do("Write the image again; its root file system is damaged.")
	}
	defer func() { err = errors.Join(err, takeOff(dir)) }()
	if err := growFileSystem(dir, size); err != nil {
		return err
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
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
