// SPDX-License-Identifier: Apache-2.0

package sysdisk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerParts: what mkfs made is read as blkid reads it.
func TestPeerParts(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sgdisk", "mke2fs", "mkfs.vfat", "mkfs.xfs", "blkid")
	path := filepath.Join(t.TempDir(), "disk")
	run := func(argv ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	const mib = 1 << 20
	const size = 464 * mib
	run("truncate", "-s", "464M", path)
	run("sgdisk", "-n", "14:2048:+4M", "-t", "14:ef02", "-n", "15:10240:+40M", "-t", "15:ef00", "-n", "16:92160:+64M", "-t", "16:ea00", "-c", "16:loader", "-n", "1:223232:+310M", path)
	fs := filepath.Join(t.TempDir(), "xfs")
	run("truncate", "-s", "310M", fs)
	run("mkfs.xfs", "-q", "-L", "rootfs", fs)
	run("dd", "if="+fs, "of="+path, "bs=1M", "seek=109", "conv=notrunc", "status=none")
	run("mkfs.vfat", "-F", "32", "-n", "UEFI", "--offset=10240", path, "40960")
	run("mke2fs", "-q", "-t", "ext4", "-L", "BOOT", "-E", "offset=47185920", path, "64m")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := gpt.Read(f, size)
	if err != nil {
		t.Fatal(err)
	}
	parts := Parts(f, table)
	for device, want := range map[string]struct {
		number int
		kind   string
	}{"LABEL=rootfs": {1, XFS}, "LABEL=UEFI": {15, VFAT}, "LABEL=BOOT": {16, Ext4}, "PARTLABEL=loader": {16, Ext4}, "/dev/disk/by-label/BOOT": {16, Ext4}} {
		p, err := Find(parts, device)
		if err != nil || p.Number != want.number || p.Kind != want.kind {
			t.Errorf("%s: %+v, %v", device, p, err)
			continue
		}
		offset := map[int]string{1: "114294784", 15: "5242880", 16: "47185920"}[p.Number]
		if got := strings.TrimSpace(run("blkid", "-p", "-O", offset, "-o", "value", "-s", "UUID", path)); got != p.UUID {
			t.Errorf("%s: UUID %q, blkid says %q", device, p.UUID, got)
		}
		for _, tag := range []string{"UUID=" + p.UUID, "PARTUUID=" + strings.ToUpper(p.GUID)} {
			if again, err := Find(parts, tag); err != nil || again.Number != p.Number {
				t.Errorf("%s: partition %d, %v", tag, again.Number, err)
			}
		}
	}
	for device, want := range map[string]string{"LABEL=none": "no partition is LABEL=none", "/dev/vda1": "/dev/vda1 names no file system", "LABEL=": "no partition"} {
		if _, err := Find(parts, device); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", device, err)
		}
	}
	if _, err := Find(append(parts, parts...), "LABEL=BOOT"); err == nil || !strings.Contains(err.Error(), "2 partitions are") {
		t.Errorf("two of a label: %v", err)
	}
}

func TestSetDevices(t *testing.T) {
	t.Parallel()
	const text = "# LABEL=a / \nLABEL=cloudimg-rootfs\t/\t ext4\tdiscard,commit=30 0 1\nLABEL=BOOT /boot/ ext4 defaults 0 2\n\nproc /proc proc"
	const want = "# LABEL=a / \nUUID=u\t/\t ext4\tdiscard,commit=30 0 1\nUUID=b /boot/ ext4 defaults 0 2\n\nproc /proc proc"
	if got := SetDevices(text, map[string]string{"/": "UUID=u", "/boot": "UUID=b"}); got != want {
		t.Errorf("got %q", got)
	}
	if all := ReadFstab(text); len(all) != 3 || all[0].Options != "discard,commit=30" || all[1].Line != 3 || IsDevice(all[2].Device) || !IsDevice(all[1].Device) {
		t.Errorf("%+v", all)
	}
}
