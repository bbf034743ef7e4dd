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

// The calls of xfs_growfs(8), likewise (fs/xfs/libxfs/xfs_fs.h): XFS_IOC_FSGEOMETRY_V1,
// _IOR('X', 100, 112 bytes), and XFS_IOC_FSGROWFSDATA, _IOW('X', 110, 16 bytes).
const (
	xfsGeometry = 0x80705864
	xfsGrow     = 0x4010586e
)

// growFileSystem grows a mounted ext4 or xfs to the size of its partition in bytes. A
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
	var errno unix.Errno
	if st.Type == unix.XFS_SUPER_MAGIC {
		errno = growXFS(f, blocks)
	} else {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, f.Fd(), ext4Resize, uintptr(unsafe.Pointer(&blocks)))
	}
	if errno != 0 && !errors.Is(errno, unix.EINVAL) { // EINVAL: it has this size already, or a few blocks more
		return errkind.New(errkind.Mismatch, "grow the root file system to %d bytes: %w", size, errno).
			Do("Write the image again; its root file system cannot grow.")
	}
	return verifyGrown(dir, size)
}

// growXFS grows a mounted xfs to a number of blocks; its bound on inodes stays.
func growXFS(f *os.File, blocks uint64) unix.Errno {
	var geometry struct {
		_          [7]uint32
		imaxpct    uint32 // percent of the space that inodes may take
		datablocks uint64
		_          [9]uint64
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), xfsGeometry, uintptr(unsafe.Pointer(&geometry))); errno != 0 {
		return errno
	}
	if geometry.datablocks >= blocks {
		return 0
	}
	grow := struct {
		blocks  uint64
		imaxpct uint32
		_       uint32
	}{blocks: blocks, imaxpct: geometry.imaxpct}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), xfsGrow, uintptr(unsafe.Pointer(&grow)))
	return errno
}

// verifyGrown checks that nearly all of the partition is used: file systems leave out a
// last group that would be too small, and their own tables do not count.
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
