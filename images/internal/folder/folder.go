// SPDX-License-Identifier: Apache-2.0

// Package folder has what a folder needs that processes share and crashes hit: a
// lock, durable writes, sums of files, and a removal that stops at mounts; and the place
// of a file that a site names.
package folder

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// lockPoll is how often a waiting caller looks whether the lock is free.
const lockPoll = 200 * time.Millisecond

// Path is where a file lies that the site's files name: absolutely, or relative to the
// folder of the site.
func Path(site, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(site, name)
}

// Lock waits until no other process or goroutine holds the lock file and takes it.
// The lock is the kernel's: it goes with the process that holds it.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
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
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, errkind.New(errkind.Of(ctx.Err()), "waiting for the holder of %s: %w", path, context.Cause(ctx))
		}
	}
}

// Remove removes a folder with all in it unless something is mounted in it: a build mounts
// /dev and /sys of the controller below its root, and a removal that followed
// them would take the controller apart.
func Remove(dir string) error {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer mounts.Close()
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return err
	}
	for scan := bufio.NewScanner(mounts); scan.Scan(); {
		if point := mountPoint(scan.Text()); point == abs || strings.HasPrefix(point, abs+"/") {
			return errkind.New(errkind.Refused, "%s cannot be removed: %s is mounted in it", dir, point).
				Do("Unmount it, then try again.")
		}
	}
	return os.RemoveAll(dir)
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

// Replace renames a finished folder to its name, durably. A folder that has the
// name already changes places with it in one step, so that a reader finds one or
// the other, and is removed.
func Replace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		err = os.Rename(from, to)
	} else if err == nil {
		err = os.RemoveAll(from)
	}
	if err != nil {
		return fmt.Errorf("rename %s: %w", to, err)
	}
	return durable.SyncFolder(filepath.Dir(to))
}

// Sum returns the length and the SHA-256 of a file, the latter in hex.
func Sum(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}
