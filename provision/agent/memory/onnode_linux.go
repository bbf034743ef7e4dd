// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// OnNode is the memory of this very node.
type OnNode struct {
	Folder string                        // of the image and of the overlay; made when absent
	At     string                        // where the root file system is mounted; made when absent
	Load   func(modules ...string) error // loads kernel modules; nil: the kernel has what it needs
}

var _ Node = OnNode{}

func (n OnNode) image() string { return filepath.Join(n.Folder, "image") }
func (n OnNode) file() string  { return filepath.Join(n.image(), "root.squashfs") }

// Image implements Node.
func (n OnNode) Image(size int64) (disk.Device, error) {
	if _, err := os.Stat(n.file()); err != nil {
		if err := checkRoom(size); err != nil {
			return nil, err
		}
		if err := mount("tmpfs", n.image(), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("mode=0700,size=%d", size+1<<20)); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(n.file(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return nil, err
	}
	return disk.Open(n.file(), disk.Shared)
}

// checkRoom compares an image with the memory that is available.
func checkRoom(size int64) error {
	if have, need := sysfs.Dir("/").AvailableMemory(), size+Reserve; have < need {
		return errkind.New(errkind.Mismatch, "the node has %d MiB of memory available, the image needs %d MiB, and its system %d MiB beside it", have>>20, size>>20, int64(Reserve)>>20).
			Do("Give the node more memory, or an image with fewer packages; or one for a disk.")
	}
	return nil
}

// Mount implements Node.
func (n OnNode) Mount(ctx context.Context, do func(rootfs.Root) error) error {
	if err := n.mountAll(); err != nil {
		return err
	}
	root, err := rootfs.Open(n.At)
	if err != nil {
		return err
	}
	defer root.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return do(root)
}

// mountAll mounts what is not mounted yet: the image, and the overlay over it.
func (n OnNode) mountAll() error {
	if is, err := isMount(n.At); err != nil || is {
		return err
	}
	if n.Load != nil {
		if err := n.Load("loop", "squashfs", "overlay"); err != nil {
			return errkind.New(errkind.Unsupported, "kernel modules of a system in memory: %w", err).Do("Take a kernel that has them, as those of distributions do.")
		}
	}
	lower, writes := filepath.Join(n.Folder, "lower"), filepath.Join(n.Folder, "writes")
	if is, err := isMount(lower); err != nil {
		return err
	} else if !is {
		device, err := attach(n.file())
		if err != nil {
			return err
		}
		defer device.Close() // before it is mounted nothing else holds it
		if err := mount(device.Name(), lower, "squashfs", unix.MS_RDONLY, ""); err != nil {
			return errkind.New(errkind.Corrupt, "%w", err).Do("Build the image again: `ironrail image build`.")
		}
	}
	if is, err := isMount(writes); err != nil {
		return err
	} else if !is {
		if err := mount("tmpfs", writes, "tmpfs", 0, "mode=0755"); err != nil { // half of the memory at most: tmpfs(5)
			return err
		}
	}
	upper, work := filepath.Join(writes, "upper"), filepath.Join(writes, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	return mount("overlay", n.At, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+",workdir="+work)
}

// mount mounts at a folder, which is made.
func mount(source, target, kind string, flags uintptr, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s at %s as %s: %w", source, target, kind, err)
	}
	return nil
}

// isMount reports whether something is mounted at a folder, by its device and that of the folder above.
func isMount(dir string) (bool, error) {
	var is, above unix.Stat_t
	if err := unix.Stat(dir, &is); errors.Is(err, unix.ENOENT) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := unix.Stat(filepath.Dir(dir), &above); err != nil {
		return false, err
	}
	return is.Dev != above.Dev, nil
}

// attach makes a file a block device that cannot be written: loop(4). It is gone when nothing
// holds it any more, neither the file that is returned nor a mount.
func attach(file string) (device *os.File, err error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("loop device: %w", err)
	}
	backing, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	device, err = os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) {
		return nil, errors.Join(fmt.Errorf("%s: %w", device.Name(), err), device.Close())
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_FD, int(backing.Fd())); err != nil {
		return fail(err)
	}
	info := unix.LoopInfo64{Flags: unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR}
	if err := unix.IoctlLoopSetStatus64(int(device.Fd()), &info); err != nil {
		return fail(errors.Join(err, unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)))
	}
	return device, nil
}
