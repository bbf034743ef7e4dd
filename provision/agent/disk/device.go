// SPDX-License-Identifier: Apache-2.0

// Package disk is one whole disk as the agent sees it: opening it so that nothing
// else uses it, zeroing, reading back what really stands there, the install
// marker, and a look at what is on it.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Device is an open disk: a real one (see Open), or the one in memory of a virtual
// node. It is safe for concurrent ReadAt and WriteAt of ranges that do not overlap.
type Device interface {
	io.ReaderAt
	io.WriterAt // never past the end
	io.Closer
	Name() string    // the path that it was opened by
	Size() int64     // bytes
	SectorSize() int // logical, bytes

	Sync() error                  // waits until everything written is on the disk
	Zero(off, length int64) error // makes a range read as zeroes
	Discard(off, length int64)    // advice: the range is not needed
	Forget() error                // makes the next reads come from the disk, not from a cache
	Reread() error                // makes the kernel read the partition table again
}

// Discarder is a Device that says whether it took a discard.
type Discarder interface {
	TryDiscard(off, length int64) error
}

// Sparse is a Device that knows of ranges that they read as zeroes, without a read:
// a look at thousands of virtual disks reads what is there.
type Sparse interface {
	Zeroed(off, length int64) bool
}

// Opener opens disks; Open is the one of a real node.
type Opener func(path string, use Use) (Device, error)

// node is a device node: a block device, or an ordinary file that stands for one in tests.
type node struct {
	f      *os.File
	direct *directIO // nil: everything goes through the page cache
	block  bool
	size   int64
}

// Use says what a disk is opened for.
type Use int

// The uses. Exclusive refuses a disk that is mounted, or part of an array or volume group.
const (
	Look Use = iota
	Exclusive
	Shared // writing beside a mounted partition: the marker
)

// Open opens a block device of this very node, or a file. The caller closes it.
func Open(path string, use Use) (Device, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errkind.New(errkind.NotFound, "disk: %w", err)
	}
	block := info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0
	if !block && !info.Mode().IsRegular() {
		return nil, errkind.New(errkind.Mismatch, "%s is not a disk", path)
	}
	flags := os.O_RDWR
	if use == Look {
		flags = os.O_RDONLY
	}
	if use == Exclusive && block {
		flags |= unix.O_EXCL // open(2): EBUSY when the block device is in use
	}
	f, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, errkind.New(errkind.Refused, "disk %s is in use by the ramdisk: %w", path, err).
			Do("Look for an array or a volume group on this disk, and take it apart.")
	}
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("disk %s: size: %w", path, err)
	}
	d := &node{f: f, block: block, size: size}
	if use == Exclusive {
		d.direct = openDirect(path)
	}
	return d, nil
}

// Size returns the bytes of the disk.
func (d *node) Size() int64 { return d.size }

// Name returns the path that the disk was opened by.
func (d *node) Name() string { return d.f.Name() }

// ReadAt is io.ReaderAt. On a disk that is opened for exclusive use it does not go
// through the page cache where the range and the buffer are aligned; see Aligned.
func (d *node) ReadAt(p []byte, off int64) (int, error) {
	if n, done, err := d.direct.readAt(p, off); done {
		return n, err
	}
	return d.f.ReadAt(p, off)
}

// WriteAt is io.WriterAt; it does not write past the end of an ordinary file either. For
// the page cache see ReadAt.
func (d *node) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.size {
		return 0, fmt.Errorf("write of %d bytes at %d: disk has %d", len(p), off, d.size)
	}
	if n, done, err := d.direct.writeAt(p, off); done {
		return n, err
	}
	return d.f.WriteAt(p, off)
}

// Close closes the disk.
func (d *node) Close() error { return errors.Join(d.direct.close(), d.f.Close()) }

// Sync waits until everything written is on the disk.
func (d *node) Sync() error {
	if err := d.f.Sync(); err != nil {
		return fmt.Errorf("disk %s: sync: %w", d.f.Name(), err)
	}
	return nil
}

// SectorSize returns the logical sector size in bytes.
func (d *node) SectorSize() int {
	if !d.block {
		return 512
	}
	n, err := unix.IoctlGetInt(int(d.f.Fd()), unix.BLKSSZGET)
	if err != nil {
		return 512
	}
	return n
}

// Forget makes the next reads come from the disk and not from the page cache.
func (d *node) Forget() error {
	if err := d.Sync(); err != nil {
		return err
	}
	if d.block {
		if err := unix.IoctlSetInt(int(d.f.Fd()), unix.BLKFLSBUF, 0); err != nil {
			return fmt.Errorf("disk %s: drop the cache: %w", d.f.Name(), err)
		}
	}
	// Advice only: for files, and for what a block device still holds.
	unix.Fadvise(int(d.f.Fd()), 0, 0, unix.FADV_DONTNEED)
	return nil
}

// Reread makes the kernel read the partition table again.
func (d *node) Reread() error {
	if !d.block {
		return nil
	}
	var err error
	for range 20 { // the kernel's own probing of partitions may hold one for a moment
		if err = unix.IoctlSetInt(int(d.f.Fd()), unix.BLKRRPART, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("disk %s: read the partition table again: %w", d.f.Name(), err)
	}
	return nil
}
