// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directAlign is what offsets, lengths and buffers of direct I/O are multiples of: the
// largest logical sector that a disk is installed with.
const directAlign = 4096

// Aligned returns a buffer of n bytes at an address that direct I/O takes.
func Aligned(n int) []byte {
	b := make([]byte, n+directAlign)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(&b[0])) % directAlign); r != 0 {
		skip = directAlign - r
	}
	return b[skip : skip+n : skip+n]
}

// directIO reads and writes without the page cache (open(2), O_DIRECT): an image is not
// copied once more, and what is read back comes from the disk. The kernel keeps both
// views of one disk equal: a direct write drops the cached pages of its range, and a
// direct read waits until they are written. A nil one does nothing.
type directIO struct {
	f   *os.File
	off atomic.Bool // the disk or its file system refused it
}

// openDirect returns nil where direct I/O is not to be had, such as on tmpfs.
func openDirect(path string) *directIO {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return &directIO{f: f}
}

func (d *directIO) usable(p []byte, off int64) bool {
	return d != nil && !d.off.Load() && len(p) > 0 && len(p)%directAlign == 0 && off%directAlign == 0 && uintptr(unsafe.Pointer(&p[0]))%directAlign == 0
}

// readAt reads all of p, or reports that it was not done.
func (d *directIO) readAt(p []byte, off int64) (n int, done bool, err error) {
	if !d.usable(p, off) {
		return 0, false, nil
	}
	n, err = d.f.ReadAt(p, off)
	return n, !d.refused(err), err
}

// writeAt writes all of p, or reports that it was not done.
func (d *directIO) writeAt(p []byte, off int64) (n int, done bool, err error) {
	if !d.usable(p, off) {
		return 0, false, nil
	}
	n, err = d.f.WriteAt(p, off)
	return n, !d.refused(err), err
}

// refused reports whether an error is of direct I/O and not of the disk: it is not tried
// again. What was to be transferred goes through the page cache.
func (d *directIO) refused(err error) bool {
	if errors.Is(err, unix.EINVAL) {
		d.off.Store(true)
		return true
	}
	return false
}

func (d *directIO) close() error {
	if d == nil {
		return nil
	}
	return d.f.Close()
}
