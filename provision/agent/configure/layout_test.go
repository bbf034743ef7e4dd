// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// mirror is a root and swap on two disks, and a data disk.
func mirror() wire.Layout {
	esp := func(guid string) []wire.LayoutPartition {
		return []wire.LayoutPartition{{Number: 2, Type: gpt.EFISystem, GUID: guid}}
	}
	const array = "0123456789abcdef0123456789abcdef"
	return wire.Layout{
		Disks: []wire.LayoutDisk{{System: true, Partitions: esp("e1")}, {System: true, Partitions: esp("e2")}, {}},
		Volumes: []wire.Volume{
			{Use: wire.VolumeSwap, Name: "swap", RAID: 1, Array: array, UUID: "u-swap", Filesystem: "swap"},
			{Use: wire.VolumeRoot, Name: "root", RAID: 1, Array: array, UUID: "u-root", Filesystem: "xfs", Mount: "/"},
			{Use: wire.VolumeData, Name: "scratch", RAID: -1, UUID: "u-scratch", Filesystem: "ext4", Mount: "/srv/scratch"},
			{Use: wire.VolumeData, Name: "home", RAID: -1, UUID: "u-home", Filesystem: "ext4", Mount: "/srv/home", Encryption: wire.EncryptionTPM2}, // not entered here
		},
	}
}

func TestWriteLayout(t *testing.T) {
	t.Parallel()
	root, dir, _, _ := tree(t)
	if err := os.MkdirAll(filepath.Join(dir, "etc/apt"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"boot", "etc/initramfs-tools"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "boot/initrd.img-6.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "boot/grub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, grubFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("menuentry x {\n  linux /vmlinuz root=LABEL=ironrail-root ro $args\n}\n")
	for range 2 { // again after it was cut off
		if err := writeLayout(root, mirror()); err != nil {
			t.Fatal(err)
		}
	}
	const ids = "01234567:89abcdef:01234567:89abcdef"
	for name, want := range map[string]string{
		fstabFile: `# Written by ironrail for the disk layout of this node.
UUID=u-swap none swap sw,nofail 0 0
UUID=u-root / xfs defaults 0 0
UUID=u-scratch /srv/scratch ext4 defaults,nofail,x-systemd.device-timeout=5min 0 2
PARTUUID=e1 /boot/efi vfat umask=0077,shortname=winnt,nofail,x-systemd.device-timeout=3min 0 0
PARTUUID=e2 /boot/efi2 vfat umask=0077,shortname=winnt,nofail,x-systemd.device-timeout=3min 0 0
`,
		mdadmFile: "# Written by ironrail for the disk layout of this node.\nHOMEHOST <ignore>\nMAILADDR root\nARRAY /dev/md/swap metadata=1.2 UUID=" + ids + "\nARRAY /dev/md/root metadata=1.2 UUID=" + ids + "\n",
		grubFile:  "menuentry x {\n  linux /vmlinuz root=UUID=u-root ro $args\n}\n",
	} {
		if got, err := fs.ReadFile(root.FS(), name); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for name, there := range map[string]bool{syncFile: true, syncWanted: true, aptHook: true, initrdHook: true, rpmHook: false, "srv/scratch": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantSync(t, root, dir)
	grouped := mirror()
	grouped.Volumes[1] = wire.Volume{Use: wire.VolumeGroup, Name: "vg-0", RAID: -1, Filesystem: "lvm"}
	grouped.Volumes = append(grouped.Volumes, wire.Volume{Use: wire.VolumeRoot, Name: "root", RAID: -1, UUID: "u-root", Filesystem: "ext4", Mount: "/", Group: "vg-0"})
	if err := writeLayout(root, grouped); err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(root.FS(), grubFile); err != nil || string(got) != "menuentry x {\n  linux /vmlinuz root=/dev/mapper/vg--0-root ro $args\n}\n" {
		t.Errorf("a root in a volume group: %v\n%s", err, got)
	}
	if got, err := fs.ReadFile(root.FS(), fstabFile); err != nil || strings.Contains(string(got), "lvm") || !strings.Contains(string(got), "UUID=u-root / ext4 defaults 0 1\n") {
		t.Errorf("a root in a volume group: %v\n%s", err, got)
	}
	write("menuentry x {\n}\n")
	if err := writeLayout(root, mirror()); err == nil || !strings.Contains(err.Error(), "names no root") {
		t.Errorf("a loader without a root: %v", err)
	}
}

// wantSync fails the test unless hooks are there for several EFI system partitions and
// for a root that GRUB reads without its log, and for no other layout.
func wantSync(t *testing.T, root rootfs.Root, dir string) {
	t.Helper()
	for _, c := range []struct {
		filesystem string
		systems    int
		want       bool
	}{{"ext4", 2, true}, {"xfs", 1, true}, {"ext4", 1, false}} {
		l := mirror()
		l.Disks = l.Disks[:c.systems]
		for i := range l.Volumes {
			if l.Volumes[i].Use == wire.VolumeRoot {
				l.Volumes[i].Filesystem = c.filesystem
			}
		}
		for _, name := range []string{syncFile, syncWanted, aptHook} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeSync(root, l); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{syncFile, syncWanted, aptHook} {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != c.want {
				t.Errorf("%s on %d system disks: %s: %v", c.filesystem, c.systems, name, err)
			}
		}
	}
}

// TestSyncProgram runs the program on folders in place of EFI system partitions.
func TestSyncProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("bin/mountpoint", "#!/bin/sh\n[ -d \"$2\" ]\n")
	put("b/EFI/BOOT/BOOTX64.EFI", "new")
	put("b/EFI/more/a b", "text")
	put("c/EFI/BOOT/BOOTX64.EFI", "old")
	put("c/EFI/gone", "x")
	text := strings.Replace(fmt.Sprintf(syncProgram, at("a")+" "+at("b")+" "+at("c")), "/run/", dir+"/", 1) // a is not there: its disk is pulled
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Env = []string{"PATH=" + at("bin") + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", at("b"), at("c")).CombinedOutput(); err != nil {
		t.Errorf("they differ: %s", out)
	}
	if b, err := os.ReadFile(at("c/EFI/BOOT/BOOTX64.EFI")); string(b) != "new" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
