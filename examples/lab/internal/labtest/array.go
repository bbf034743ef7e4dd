// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/manifest"
)

// arrayLimit ends an emulator that hangs.
const arrayLimit = 30 * time.Minute

// arrayModules are the kernel modules that an array on a virtio disk needs, in the
// order in which they are loaded.
var arrayModules = []string{"virtio/virtio_ring", "virtio/virtio", "virtio/virtio_pci_modern_dev", "virtio/virtio_pci_legacy_dev",
	"virtio/virtio_pci", "block/virtio_blk", "md/md-mod", "md/raid1"}

// arrayInit makes half of a mirror on the only disk, with a file system on it.
const arrayInit = `#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc p /proc; $B mount -t sysfs s /sys; $B mount -t devtmpfs d /dev
for m in %s; do $B insmod /$m.ko; done
/bin/mdadm --create /dev/md0 --run --homehost=lab --name=data --level=1 --raid-devices=2 --metadata=1.2 /dev/vda missing &&
	/bin/mke2fs -q -t ext4 -L data /dev/md0 && /bin/mdadm --stop /dev/md0 && echo ARRAY MADE
$B sync; $B poweroff -f
`

// MakeArray makes a disk a member of an md array, by mdadm and the md of the image's
// own kernel in an emulator: many hosts' kernels have no md.
func (l *Lab) MakeArray(machine, name string) {
	l.t.Helper()
	for _, p := range []string{"mdadm", "mke2fs", "busybox", "debugfs", "cpio"} {
		if _, err := exec.LookPath(p); err != nil {
			l.t.Fatalf("needs %s: run ironrail-lab check --all --install", p)
		}
	}
	dir := l.t.TempDir()
	found, _ := filepath.Glob(filepath.Join(l.State(), "images", "sha256-*", "kernel"))
	if len(found) != 1 {
		l.t.Fatalf("the site has %d images, want 1", len(found))
	}
	image := filepath.Dir(found[0])
	if err := unpackImage(image, filepath.Join(dir, "image")); err != nil {
		l.t.Fatal(err)
	}
	var modules []string
	for _, m := range arrayModules {
		modules = append(modules, filepath.Base(m))
	}
	if err := os.WriteFile(filepath.Join(dir, "init"), fmt.Appendf(nil, arrayInit, strings.Join(modules, " ")), 0o755); err != nil { //nolint:gosec // it is to be executed
		l.t.Fatal(err)
	}
	l.shell(dir, `
at=$(sgdisk -i 3 image | sed -n 's/^First sector: \([0-9]*\).*/\1/p')
fs="image?offset=$((at * 512))"
release=$(debugfs -R 'ls -p /usr/lib/modules' "$fs" 2>/dev/null | cut -d/ -f6 | grep '^[0-9]')
mkdir -p root/bin root/proc root/sys root/dev root/run
for m in `+strings.Join(arrayModules, " ")+`; do debugfs -R "dump /usr/lib/modules/$release/kernel/drivers/$m.ko root/$(basename $m).ko" "$fs"; done
for p in busybox mdadm mke2fs; do
	p=$(command -v $p); cp "$p" root/bin/
	for lib in $(ldd "$p" | grep -o '/[^ ]*'); do mkdir -p "root$(dirname "$lib")"; cp -L "$lib" "root$lib"; done
done
cp init root/init
(cd root && find . | cpio -o -H newc --quiet) >initrd`)
	ctx, cancel := context.WithTimeout(l.t.Context(), arrayLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-m", "256", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", filepath.Join(image, "kernel"), "-initrd", filepath.Join(dir, "initrd"), "-append", "console=ttyS0 quiet rdinit=/init",
		"-drive", "file="+l.DiskFile(machine, name)+",if=none,id=d,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=d")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ARRAY MADE") {
		l.t.Fatalf("no array was made (%v):\n%s", err, out)
	}
	l.Fill(machine, name, `mdadm --examine "$D"`) // fails where it is no member
}

// shell runs commands in a folder.
func (l *Lab) shell(dir, commands string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "bash", "-euc", commands)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
}

// unpackImage writes the disk image of the store's folder to a sparse file.
func unpackImage(folder, to string) error {
	b, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err != nil {
		return err
	}
	var m manifest.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	blob, err := os.Open(filepath.Join(folder, "blob"))
	if err != nil {
		return err
	}
	defer blob.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	defer decoder.Close()
	for i, c := range m.Chunks {
		if c.Zero() {
			continue
		}
		packed, err := io.ReadAll(io.NewSectionReader(blob, c.Offset, c.Length))
		if err != nil {
			return errors.Join(err, out.Close())
		}
		plain, err := decoder.DecodeAll(packed, nil)
		if err != nil {
			return errors.Join(err, out.Close())
		}
		if _, err := out.WriteAt(plain, int64(i)*manifest.ChunkSize); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(out.Truncate(m.Size), out.Close())
}
