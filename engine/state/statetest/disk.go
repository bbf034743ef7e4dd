// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ballast is the file that Room takes away.
const ballast = "ballast"

// SmallDisk makes a disk on which about so many KiB are free, and skips the test
// where that is not possible: it mounts a file system in memory, which needs root.
func SmallDisk(t *testing.T, free int) string {
	t.Helper()
	dir := t.TempDir()
	const size = 2 << 20
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, ballast), []byte(strings.Repeat("x", size-free<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Room frees space on a small disk.
func Room(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, ballast)); err != nil {
		t.Fatal(err)
	}
}
