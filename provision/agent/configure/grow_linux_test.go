// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerGrowFileSystem grows file systems that mkfs made, mounted, by the kernel.
func TestPeerGrowFileSystem(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			peertest.Need(t, "mke2fs", "mkfs.xfs", "losetup")
			if os.Geteuid() != 0 {
				t.Skip("needs root: file systems are mounted")
			}
			run := func(argv ...string) string {
				t.Helper()
				out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", argv, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			file, dir := filepath.Join(t.TempDir(), "fs"), t.TempDir()
			run("truncate", "-s", "310M", file)
			run("mkfs."+kind, "-q", file)
			out, err := exec.CommandContext(t.Context(), "losetup", "--show", "-f", file).CombinedOutput()
			if err != nil {
				t.Skipf("needs loop devices: %s", out)
			}
			loop := strings.TrimSpace(string(out))
			t.Cleanup(func() { _ = exec.Command("losetup", "-d", loop).Run() }) //nolint:noctx // the test's context is over
			if err := unix.Mount(loop, dir, kind, 0, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
			const size = 1200 << 20
			run("truncate", "-s", "1200M", file)
			run("losetup", "-c", loop)
			for range 2 { // again: it fills its partition
				err := growFileSystem(dir, size)
				if errors.Is(err, unix.EPERM) {
					t.Skip("needs CAP_SYS_RESOURCE: ext4 is grown with it alone")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if have := run("df", "--output=size", "-B1M", dir); !strings.Contains(have, "11") {
				t.Errorf("df: %s", have)
			}
		})
	}
}
