// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

func TestRootDisk(t *testing.T) {
	t.Parallel()
	const disk = "sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda"
	const dm = "sys/devices/virtual/block/dm-0"
	for _, c := range []struct {
		name, mounts string
		files        map[string]string
		want         string
	}{
		{"partition", "24 1 254:3 / / rw - ext4 /dev/vda3 rw", map[string]string{
			disk + "/vda3/partition": "3", "sys/dev/block/254:3": "-> " + disk + "/vda3"}, "vda"},
		{"whole disk", "24 1 254:0 / / rw - xfs /dev/vda rw", map[string]string{"sys/dev/block/254:0": "-> " + disk}, "vda"},
		{"btrfs", "24 1 0:30 /@ / rw - btrfs /dev/vda2 rw", map[string]string{
			disk + "/vda2/partition": "2", "sys/class/block/vda2": "-> " + disk + "/vda2"}, "vda"},
		{"btrfs of two disks", "24 1 0:30 /@ / rw - btrfs /dev/vda2 rw", map[string]string{
			disk + "/vda2/partition": "2", "sys/class/block/vda2": "-> " + disk + "/vda2", "sys/devices/x/block/vdb/size": "4096",
			"sys/block/vdb": "-> sys/devices/x/block/vdb", "sys/fs/btrfs/1b2c/devices/vda2": "-> " + disk + "/vda2", "sys/fs/btrfs/1b2c/devices/vdb": "-> sys/devices/x/block/vdb"}, ""},
		{"btrfs of this disk, another of another", "24 1 0:30 /@ / rw - btrfs /dev/vda2 rw", map[string]string{
			disk + "/vda2/partition": "2", "sys/fs/btrfs/1b2c/devices/vda2": "-> " + disk + "/vda2", "sys/fs/btrfs/0a/devices/vdb": "-> sys/devices/x/block/vdb"}, "vda"},
		{"LVM", "24 1 253:0 / / rw - ext4 /dev/mapper/a-root rw", map[string]string{
			"sys/dev/block/253:0": "-> " + dm, dm + "/slaves/vda3": "-> " + disk + "/vda3", disk + "/vda3/partition": "3"}, "vda"},
		{"mirror", "24 1 9:0 / / rw - ext4 /dev/md0 rw", map[string]string{
			"sys/dev/block/9:0": "-> sys/devices/virtual/block/md0", "sys/devices/virtual/block/md0/slaves/vda3": "-> " + disk + "/vda3", disk + "/vda3/partition": "3",
			"sys/devices/virtual/block/md0/slaves/vdb3": "-> sys/devices/x/block/vdb/vdb3", "sys/devices/x/block/vdb/vdb3/partition": "3"}, ""},
		{"ZFS", "24 1 0:30 / / rw - zfs rpool/ROOT/vda2 rw", map[string]string{disk + "/vda2/partition": "2", "sys/class/block/vda2": "-> " + disk + "/vda2"}, ""},
		{"ramdisk", "1 1 0:2 / / rw - rootfs rootfs rw", nil, ""},
		{"nothing", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"proc/self/mountinfo": c.mounts}
			for name, text := range c.files {
				files[name] = text
			}
			d, ok := Inspector{FS: sysTree(t, disk, files)}.RootDisk()
			if d.Name != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v", d.Name, ok)
			}
		})
	}
}

// TestPeerRootDiskOfThisNode: lsblk names the disk below the root file system.
func TestPeerRootDiskOfThisNode(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "findmnt", "lsblk")
	d, ok := Inspector{FS: sysfs.Dir("/")}.RootDisk()
	source, err := exec.CommandContext(t.Context(), "findmnt", "-nvo", "SOURCE", "/").Output()
	if err != nil || !strings.HasPrefix(string(source), "/dev/") {
		t.Skip("the root file system is on no block device")
	}
	out, err := exec.CommandContext(t.Context(), "lsblk", "-nslo", "NAME,TYPE", strings.TrimSpace(string(source))).Output()
	if err != nil {
		t.Skip("lsblk does not report: ", err)
	}
	var disks []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == "disk" {
			disks = append(disks, filepath.Base(f[0]))
		}
	}
	if len(disks) != 1 {
		t.Skipf("it is on %q", disks)
	}
	if !ok || d.Name != disks[0] {
		t.Errorf("got %q, %v; lsblk says %q", d.Name, ok, disks[0])
	}
}
