// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// initrdLimit is how long one initrd may take: a minute on a server, minutes where the
// node's processors are emulated.
const initrdLimit = 25 * time.Minute

// lastLines is how much of what a program printed an error has.
const lastLines = 12

// initrdScratch is where the files of an initrd are gathered, below the root.
const initrdScratch = "var/tmp/ironrail-initrd"

// InitrdAt makes initrds of a system whose root is mounted at dir, by update-initramfs(8)
// in it. Its processes are in a namespace of their own: none outlives the agent.
func InitrdAt(dir string) MakeInitrd {
	return func(ctx context.Context, _ rootfs.Root, release string, line func(string)) (err error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		if err := errors.Join(root.RemoveAll(initrdScratch), root.MkdirAll(initrdScratch, 0o700)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, root.RemoveAll(initrdScratch)) }()
		if err := within(dir, func() error {
			return runInRoot(ctx, dir, line, "/usr/sbin/update-initramfs", "-c", "-v", "-k", release)
		}); err != nil {
			return err
		}
		return readBack(root, initrd+release)
	}
}

// devices are the nodes that programs expect in /dev.
var devices = []struct {
	name         string
	major, minor uint32
}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}}

// insideMounts are the folders of a root on which something is mounted while its programs
// run, the last one first.
var insideMounts = []string{"proc", "dev"}

// within calls do while the programs of a root have a /proc, and a /dev of a few nodes.
func within(dir string, do func() error) (err error) {
	for _, name := range insideMounts { // what an image has there may be a link, which would lead out
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return errkind.New(errkind.Invalid, "/%s of the image is no folder: %w", name, err).Do("Build the image again with this version.")
		}
	}
	defer func() {
		for _, name := range insideMounts {
			if e := takeOff(filepath.Join(dir, name)); e != nil && !errors.Is(e, unix.EINVAL) {
				err = errors.Join(err, e)
			}
		}
	}()
	dev := filepath.Join(dir, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=16m"); err != nil {
		return fmt.Errorf("mount /dev of the image: %w", err)
	}
	for _, d := range devices {
		if err := unix.Mknod(filepath.Join(dev, d.name), unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("/dev/%s: %w", d.name, err)
		}
	}
	if err := os.Symlink("/proc/self/fd", filepath.Join(dev, "fd")); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(dir, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc of the image: %w", err)
	}
	return do()
}

// runInRoot runs a program of a root in it, as root, and waits until it and all its
// children have ended.
func runInRoot(ctx context.Context, dir string, line func(string), argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, initrdLimit)
	defer cancel()
	runtime.LockOSThread() // Pdeathsig is about the thread that starts the program
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TMPDIR=/" + initrdScratch, "DEBIAN_FRONTEND=noninteractive"}
	// The first of a process namespace takes its children along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	from, to := io.Pipe()
	cmd.Stdout, cmd.Stderr = to, to
	last := make(chan []string)
	go func() { last <- readLines(from, line) }()
	err := cmd.Run()
	to.Close()
	printed := strings.Join(<-last, "\n")
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errkind.New(errkind.Timeout, "%s did not end in %s: %q", filepath.Base(argv[0]), initrdLimit, printed).
			Do("Look at what it printed last; `ironrail apply` begins it again.")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errkind.New(errkind.Invalid, "%s of the image: %w: %q", filepath.Base(argv[0]), err, printed).
		Do("Correct the image (packages initramfs-tools and zstd, hooks in /etc/initramfs-tools), build it, and run `ironrail apply` again.")
}

// readLines passes lines on until nobody writes any more, and returns the last of them.
func readLines(from io.Reader, line func(string)) (last []string) {
	s := bufio.NewScanner(from)
	for s.Scan() {
		last = append(last, s.Text())
		last = last[max(0, len(last)-lastLines):]
		line(s.Text())
	}
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not stop the program
	return last
}

// readBack reads a file from memory and, once it is written and forgotten there, from the
// disk.
func readBack(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return errkind.New(errkind.Invalid, "the programs of the image ended well, and made none: %w", err)
	}
	defer f.Close()
	written, err := digest(f)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return &wire.PartError{Part: wire.PartDisk, Err: fmt.Errorf("/%s: %w", name, err)}
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("/%s: forget what is in memory: %w", name, err)
	}
	read, err := digest(f)
	if err == nil && read != written {
		err = errkind.New(errkind.Corrupt, "/%s comes back other than it was written", name).Do("A disk does not keep data; look at the health of the disks.")
	}
	if err != nil {
		return &wire.PartError{Part: wire.PartDisk, Err: err}
	}
	return nil
}

// digest hashes a file from its beginning.
func digest(f *os.File) (sum [sha256.Size]byte, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [sha256.Size]byte(h.Sum(nil)), err
}
