// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ioctl numbers of linux/fs.h that x/sys does not have as plain numbers on every platform.
const (
	blkDiscard = 0x1277 // _IO(0x12, 119)
	blkZeroOut = 0x127f // _IO(0x12, 127)
)

// Discard tells the disk that a range on it is not needed. It is advice: what
// reads back afterwards is not defined, so Zero is needed where zeroes matter.
func (d *node) Discard(off, length int64) {
	if d.block {
		d.rangeIoctl(blkDiscard, off, length) // most disks that refuse simply cannot
	}
}

// TryDiscard is Discarder. An ordinary file cannot discard.
func (d *node) TryDiscard(off, length int64) error {
	if !d.block {
		return unix.EOPNOTSUPP
	}
	return d.rangeIoctl(blkDiscard, off, length)
}

// Zero makes a range read as zeroes, by the disk's own command where it has one.
func (d *node) Zero(off, length int64) error {
	if off < 0 || length < 0 || off+length > d.size {
		return fmt.Errorf("zeroing %d bytes at %d: disk has %d", length, off, d.size)
	}
	if d.block && off%512 == 0 && length%512 == 0 && d.rangeIoctl(blkZeroOut, off, length) == nil {
		return nil
	}
	zeroes := make([]byte, min(length, 1<<20))
	for length > 0 {
		n := min(length, int64(len(zeroes)))
		if _, err := d.f.WriteAt(zeroes[:n], off); err != nil {
			return err
		}
		off, length = off+n, length-n
	}
	return nil
}

// rangeIoctl calls an ioctl that takes a start and a length in bytes.
func (d *node) rangeIoctl(request uintptr, off, length int64) error {
	span := [2]uint64{uint64(off), uint64(length)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.f.Fd(), request, uintptr(unsafe.Pointer(&span)))
	if errno != 0 {
		return errno
	}
	return nil
}
