// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// TestPeerMount: what mksquashfs made is mounted by this kernel with an overlay over it, which takes
// what is written, once, however often it is asked for.
func TestPeerMount(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mksquashfs")
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	for _, name := range []string{"squashfs", "overlay"} {
		if text, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(text), "\t"+name+"\n") {
			t.Skipf("this kernel has no %s", name)
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("no loop devices: %v", err)
	}
	dir := t.TempDir()
	system := filepath.Join(dir, "system")
	if err := errors.Join(os.MkdirAll(filepath.Join(system, "etc"), 0o755), os.WriteFile(filepath.Join(system, "etc/fstab"), []byte("LABEL=x / ext4\n"), 0o644), os.WriteFile(filepath.Join(system, "etc/issue"), []byte("Debian\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mksquashfs", system, filepath.Join(dir, "image"), "-quiet", "-no-progress", "-comp", "zstd").CombinedOutput(); err != nil {
		t.Fatalf("mksquashfs: %v: %s", err, out)
	}
	image, err := os.ReadFile(filepath.Join(dir, "image"))
	if err != nil {
		t.Fatal(err)
	}
	n := OnNode{Folder: filepath.Join(dir, "memory"), At: filepath.Join(dir, "root")}
	t.Cleanup(func() {
		for _, at := range []string{n.At, filepath.Join(n.Folder, "writes"), filepath.Join(n.Folder, "lower"), n.image()} {
			if err := unix.Unmount(at, 0); err != nil {
				t.Errorf("unmount %s: %v", at, err)
			}
		}
	})
	dev, err := n.Image(int64(len(image)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dev.WriteAt(image, 0); err != nil || dev.Close() != nil {
		t.Fatal(err)
	}
	if dev, err = n.Image(int64(len(image))); err != nil { // what is there stays
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(dev, 0, dev.Size())); err != nil || string(got) != string(image) || dev.Close() != nil {
		t.Fatalf("the image is another one: %v", err)
	}
	want := wire.InMemory{Marker: "n1/n1-1/write", Digest: "sha256:1"}
	if err := n.Mount(t.Context(), func(root rootfs.Root) error { return Prepare(root, want) }); err != nil {
		t.Fatal(err)
	}
	err = n.Mount(t.Context(), func(root rootfs.Root) error {
		for name, text := range map[string]string{"etc/issue": "Debian\n", "etc/fstab": fstab} {
			if got, err := fs.ReadFile(root.FS(), name); err != nil || string(got) != text {
				t.Errorf("/%s is %q, %v", name, got, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if is, ok, err := Installed(sysfs.Dir(n.At)); err != nil || !ok || is != want {
		t.Errorf("it says to be %+v, %v, %v", is, ok, err)
	}
	if got, err := os.ReadFile(filepath.Join(system, "etc/fstab")); err != nil || string(got) != "LABEL=x / ext4\n" {
		t.Errorf("the image's own file is %q, %v", got, err)
	}
}

// TestRoom: an image that does not fit beside its system is refused before anything is mounted.
func TestRoom(t *testing.T) {
	t.Parallel()
	n := OnNode{Folder: filepath.Join(t.TempDir(), "memory")}
	if _, err := n.Image(1 << 60); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(n.Folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// TestInstalled: a system on a disk is none in memory, and a damaged file is said.
func TestInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if is, ok, err := Installed(sysfs.Dir(dir)); ok || err != nil {
		t.Errorf("%+v, %v, %v", is, ok, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(installFile)), 0o755), os.WriteFile(filepath.Join(dir, installFile), []byte("{"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Installed(sysfs.Dir(dir)); ok || err == nil {
		t.Errorf("a damaged file: %v, %v", ok, err)
	}
}
