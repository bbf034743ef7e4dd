// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

// ext4Resize is EXT4_IOC_RESIZE_FS of fs/ext4/ext4.h, _IOW('f', 16, __u64): the
// new size in blocks. It is the very call with which resize2fs grows a mounted
// file system, so the image needs no tool for it.
const ext4Resize = 0x40086610

// growFileSystem grows a mounted ext4 to the size of its partition in bytes. A
// file system that fills it already stays.
func growFileSystem(dir string, size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("size of the root file system: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	blocks := uint64(size / st.Bsize)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), ext4Resize, uintptr(unsafe.Pointer(&blocks)))
	if errno != 0 && !errors.Is(errno, unix.EINVAL) { // EINVAL: it has this size already, or a few blocks more
		return errkind.New(errkind.Mismatch, "grow the root file system to %d bytes: %w", size, errno).
			Do("Write the image again; its root file system cannot grow.")
	}
	return verifyGrown(dir, size)
}

// verifyGrown checks that nearly all of the partition is used: ext4 leaves out a
// last group that would be too small, and its own tables do not count.
func verifyGrown(dir string, size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("size of the root file system: %w", err)
	}
	if have := int64(st.Blocks) * st.Bsize; have < size-size/10-128<<20 {
		return errkind.New(errkind.Mismatch, "the root file system has %d bytes in a partition of %d", have, size).
			Do("Write the image again; its root file system cannot grow.")
	}
	return nil
}
