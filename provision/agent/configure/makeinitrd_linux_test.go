// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// maker is the name by which this test program is the update-initramfs of a root.
const maker = "update-initramfs"

// beMaker does what update-initramfs -c -v -k RELEASE does, and looks around in the root.
// Releases say how it ends.
func beMaker() {
	release := os.Args[len(os.Args)-1]
	for _, name := range []string{"/proc/self/status", "/dev/null", "/dev/fd/1", os.Getenv("TMPDIR")} {
		if _, err := os.Stat(name); err != nil {
			fmt.Println("not there:", err)
			os.Exit(3)
		}
	}
	fmt.Println("Adding module", strings.Join(os.Args[1:], " "))
	switch release {
	case "fails":
		fmt.Println("E: zstd: not found")
		os.Exit(1)
	case "hangs":
		child := exec.Command("/usr/sbin/"+maker, "sleeps") //nolint:noctx // it is killed with this one
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
		time.Sleep(time.Hour)
	case "sleeps":
		time.Sleep(time.Hour)
	}
	if err := os.WriteFile("/boot/initrd.img-"+release, []byte("070701 of "+release), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(5)
	}
	os.Exit(0)
}

// programRoot is a root file system with this test program as its update-initramfs.
func programRoot(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: file systems are mounted")
	}
	dir := t.TempDir()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := elf.NewFile(bytes.NewReader(b)); err != nil || e.Section(".interp") != nil {
		t.Skipf("needs a static test program, as CGO_ENABLED=0 makes it: %v", err)
	}
	for _, name := range []string{"proc", "dev", "boot", "usr/sbin", "var/tmp"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "usr/sbin", maker), b, 0o755)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return dir
}

// leftIn fails the test when something of making an initrd is left in a root.
func leftIn(t *testing.T, dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir+"/") {
		t.Errorf("left mounted: %v\n%s", err, mounts)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "var/tmp")); err != nil || len(left) > 0 {
		t.Errorf("left in /var/tmp: %v, %v", left, err)
	}
}

func TestInitrdAt(t *testing.T) {
	dir := programRoot(t)
	var lines []string
	run := func(ctx context.Context, release string) error {
		return InitrdAt(dir)(ctx, nil, release, func(l string) { lines = append(lines, l) })
	}
	for range 2 { // again, after it was cut off
		if err := os.MkdirAll(filepath.Join(dir, initrdScratch, "left"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), "6.12.1"); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "boot/initrd.img-6.12.1")); err != nil || string(b) != "070701 of 6.12.1" || len(lines) != 2 || lines[0] != "Adding module -c -v -k 6.12.1" {
		t.Errorf("%q, %v, lines %q", b, err, lines)
	}
	leftIn(t, dir)
	if err := run(t.Context(), "fails"); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "E: zstd: not found") || errkind.Action(err) == "" {
		t.Errorf("one that fails: %v", err)
	}
	leftIn(t, dir)
	if err := errors.Join(os.Remove(filepath.Join(dir, "dev")), os.Symlink(t.TempDir(), filepath.Join(dir, "dev"))); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "6.12.1"); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "/dev of the image is no folder") {
		t.Errorf("with a link for /dev: %v", err)
	}
}

// TestInitrdEnds: when it is told to stop, no process of the root is left, and nothing
// mounted.
func TestInitrdEnds(t *testing.T) {
	dir := programRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := InitrdAt(dir)(ctx, nil, "hangs", func(string) {
		for sleeping(t, dir) < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := sleeping(t, dir); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	leftIn(t, dir)
}

// sleeping is how many processes have a root as theirs.
func sleeping(t *testing.T, dir string) (n int) {
	t.Helper()
	roots, err := filepath.Glob("/proc/[0-9]*/root")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roots {
		if to, err := os.Readlink(r); err == nil && to == dir {
			n++
		}
	}
	return n
}

// arm64Files is a folder whose folder `root` is the root file system of an image of kind
// debian for arm64.
const arm64Files = "IRONRAIL_TEST_ARM64"

// TestPeerInitrdARM64 makes the initrd of a real image for arm64 by its own programs,
// which this kernel has to start under emulation.
func TestPeerInitrdARM64(t *testing.T) {
	peertest.Need(t, "/usr/bin/qemu-aarch64-static")
	from := os.Getenv(arm64Files)
	if from == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and " + arm64Files + ": a folder with the folder root, the root file system of a built image of kind debian for arm64")
	}
	at, changes := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", changes, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(changes, 0) })
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(changes, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := "lowerdir=" + filepath.Join(from, "root") + ",upperdir=" + filepath.Join(changes, "upper") + ",workdir=" + filepath.Join(changes, "work")
	if err := unix.Mount("overlay", at, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	root, err := rootfs.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := (&Configurator{MakeInitrd: InitrdAt(at)}).makeInitrds(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(at, initrd+"*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("made %v, %v", made, err)
	}
	var list strings.Builder // as the image's own program reads it
	if err := within(at, func() error {
		return runInRoot(t.Context(), at, func(l string) { list.WriteString(l + "\n") }, "/usr/bin/lsinitramfs", strings.TrimPrefix(made[0], at))
	}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\ninit\n", "/virtio_blk.ko", "/nvme.ko", "/ext4.ko", "bin/modprobe\n"} {
		if !strings.Contains(list.String(), want) {
			t.Errorf("%d bytes list no %q", list.Len(), want)
		}
	}
}
