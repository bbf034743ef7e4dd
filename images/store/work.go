package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/provision/errkind"
)

// lockPoll is how often a waiting builder looks whether the lock is free.
const lockPoll = 200 * time.Millisecond

// Lock waits until no other process or goroutine builds in this store. The lock
// is the kernel's: it goes with the process that holds it.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("image store: lock: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, errkind.New(errkind.Of(ctx.Err()), "image store: waiting for another build to end: %w", context.Cause(ctx))
		}
	}
}

// Scratch returns an empty folder on the store's file system for one build. The
// caller holds Lock, calls discard when the build is over, and leaves nothing
// mounted in it.
func (s *Store) Scratch() (dir string, discard func() error, err error) {
	dir, err = os.MkdirTemp(filepath.Join(s.dir, "work"), "build-")
	if err != nil {
		return "", nil, fmt.Errorf("image store: %w", err)
	}
	return dir, func() error { return removeTree(dir) }, nil
}

// Sweep removes what crashed builds left. The caller holds Lock.
func (s *Store) Sweep() error {
	work := filepath.Join(s.dir, "work")
	left, err := os.ReadDir(work)
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	var all error
	for _, e := range left {
		all = errors.Join(all, removeTree(filepath.Join(work, e.Name())))
	}
	return all
}

// removeTree removes a folder unless something is mounted in it: a build mounts
// /dev and /sys of the controller below its root, and a removal that followed
// them would take the controller apart.
func removeTree(dir string) error {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	defer mounts.Close()
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	for scan := bufio.NewScanner(mounts); scan.Scan(); {
		if point := mountPoint(scan.Text()); point == abs || strings.HasPrefix(point, abs+"/") {
			return errkind.New(errkind.Refused, "image store: %s is left by a build and %s is still mounted in it", dir, point).
				Do("Unmount it; the next build removes the folder.")
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return nil
}

// mountPoint returns field 5 of a line of /proc/PID/mountinfo (proc(5)), where
// blanks and backslashes are written as three octal digits.
func mountPoint(line string) string {
	f := strings.Fields(line)
	if len(f) < 5 {
		return ""
	}
	var b strings.Builder
	for s := f[4]; s != ""; {
		if len(s) >= 4 && s[0] == '\\' {
			if n, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// syncDir makes renames in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("image store: sync %s: %w", dir, err)
	}
	return nil
}

// writeFile writes a small file that everybody may read.
func writeFile(path string, b []byte) error { return writeFileMode(path, b, 0o644) }

// writeFileMode writes a small file durably: temporary file, sync, rename, sync of
// the folder.
func writeFileMode(path string, b []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return syncDir(filepath.Dir(path))
}
