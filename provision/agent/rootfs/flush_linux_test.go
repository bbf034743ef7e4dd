// SPDX-License-Identifier: Apache-2.0

package rootfs_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// TestPeerFlush loses power after a file was written and flushed: the disk has the file
// for a reader that replays no log, as GRUB is one. Without the freeze it has not.
func TestPeerFlush(t *testing.T) {
	peertest.Need(t, "mke2fs", "mkfs.xfs", "losetup")
	if os.Geteuid() != 0 {
		t.Skip("needs root: file systems are mounted")
	}
	for kind, options := range map[string]string{"ext4": "noload", "xfs": "norecovery,nouuid"} {
		t.Run(kind, func(t *testing.T) {
			disk, dir := filepath.Join(t.TempDir(), "fs"), t.TempDir()
			run := func(argv ...string) {
				t.Helper()
				if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", argv, err, out)
				}
			}
			mounted := func(disk, dir, options string) {
				t.Helper()
				out, err := exec.CommandContext(t.Context(), "losetup", "--show", "-f", disk).CombinedOutput()
				if err != nil {
					t.Skipf("needs loop devices: %s", out)
				}
				loop := strings.TrimSpace(string(out))
				t.Cleanup(func() { _ = exec.Command("losetup", "-d", loop).Run() }) //nolint:noctx // the test's context is over
				flags := uintptr(0)
				if options != "" {
					flags = unix.MS_RDONLY
				}
				if err := unix.Mount(loop, dir, kind, flags, options); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
			}
			run("truncate", "-s", "310M", disk)
			run("mkfs."+kind, "-q", disk)
			mounted(disk, dir, "")
			unix.Sync()
			if err := os.WriteFile(filepath.Join(dir, "initrd.img"), []byte("initrd"), 0o644); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := rootfs.Flush(dir); err != nil {
					t.Fatal(err)
				}
			}
			cut, after := disk+".cut", t.TempDir()
			run("cp", "--sparse=always", disk, cut)
			mounted(cut, after, options)
			if b, err := os.ReadFile(filepath.Join(after, "initrd.img")); err != nil || string(b) != "initrd" {
				t.Errorf("after the power was lost: %q, %v", b, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o644); err != nil {
				t.Errorf("it stays frozen: %v", err)
			}
		})
	}
	if err := rootfs.Flush("/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
