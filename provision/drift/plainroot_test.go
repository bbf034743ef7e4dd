// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The block devices of the trees below, by their names: real paths as servers have.
const (
	nvme0 = "sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/nvme/nvme0/nvme0n1"
	nvme1 = "sys/devices/pci0000:3a/0000:3a:03.0/0000:3c:00.0/nvme/nvme1/nvme1n1"
	sda   = "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"
	stick = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb"
	virt  = "sys/devices/virtual/block/"
)

// diskFiles are the attributes of the disks.
var diskFiles = map[string]string{
	nvme0 + "/size": "7501476528\n", nvme0 + "/device/model": "SAMSUNG MZQL23T8HCLS-00A07              \n", nvme0 + "/device/serial": "S64HNE0T512345      \n", nvme0 + "/wwid": "eui.36344830545123450025384e00000001\n", nvme0 + "/queue/rotational": "0\n",
	nvme0 + "/nvme0n1p2/partition": "2\n", nvme0 + "/removable": "0\n", "sys/block/nvme0n1": "-> " + nvme0, "sys/class/block/nvme0n1p2": "-> " + nvme0 + "/nvme0n1p2",
	nvme1 + "/size": "7501476528\n", nvme1 + "/device/model": "SAMSUNG MZQL23T8HCLS-00A07              \n", nvme1 + "/device/serial": "S64HNE0T567890      \n", nvme1 + "/nvme1n1p2/partition": "2\n", "sys/block/nvme1n1": "-> " + nvme1,
	sda + "/size": "1875385008\n", sda + "/device/model": "SAMSUNG MZ7L3960\n", sda + "/device/vpd_pg80": "\x00\x80\x00\x14S6K0NG0W123456      ", sda + "/device/wwid": "naa.5002538f02345678\n", sda + "/sda2/partition": "2\n", "sys/block/sda": "-> " + sda, "sys/class/block/sda2": "-> " + sda + "/sda2",
	stick + "/size": "60063744\n", stick + "/removable": "1\n", stick + "/sdb1/partition": "1\n", "sys/block/sdb": "-> " + stick,
}

// TestPlainRoot runs the script by this machine's own shell on the trees of nodes
// whose root file system lies differently.
func TestPlainRoot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mounts string
		files        map[string]string
		want         []string // name, serial number, WWN and PCI address of each disk
	}{
		{"partition of NVMe", "29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,discard\n36 29 259:1 / /boot/efi rw - vfat /dev/nvme0n1p1 rw\n",
			map[string]string{"sys/dev/block/259:2": "-> " + nvme0 + "/nvme0n1p2"},
			[]string{"nvme0n1 S64HNE0T512345 eui.36344830545123450025384e00000001 0000:3b:00.0 3840755982336 nvme"}},
		{"SATA, over the initramfs", "1 1 0:2 / / rw - rootfs rootfs rw\n29 1 8:2 / / rw,relatime shared:1 master:3 - xfs /dev/sda2 rw\n",
			map[string]string{"sys/dev/block/8:2": "-> " + sda + "/sda2"}, []string{"sda S6K0NG0W123456 naa.5002538f02345678 0000:00:17.0 960197124096 hdd"}},
		{"LVM on dm-crypt", "29 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw\n", map[string]string{"sys/dev/block/253:1": "-> " + virt + "dm-1", virt + "dm-1/slaves/dm-0": "-> " + virt + "dm-0",
			virt + "dm-0/slaves/nvme0n1p2": "-> " + nvme0 + "/nvme0n1p2"}, []string{"nvme0n1 S64HNE0T512345"}},
		{"mirror", "29 1 9:0 / / rw - ext4 /dev/md0 rw\n", map[string]string{"sys/dev/block/9:0": "-> " + virt + "md0", virt + "md0/slaves/nvme0n1p2": "-> " + nvme0 + "/nvme0n1p2", virt + "md0/slaves/nvme1n1p2": "-> " + nvme1 + "/nvme1n1p2"},
			[]string{"nvme0n1 S64HNE0T512345", "nvme1n1 S64HNE0T567890  0000:3c:00.0"}},
		{"btrfs", "29 1 0:25 /@ / rw,relatime shared:1 - btrfs /dev/sda2 rw,subvol=/@\n", map[string]string{"sys/fs/btrfs/features/x": "1", "sys/fs/btrfs/7a1e/devices/sda2": "-> " + sda + "/sda2"}, []string{"sda S6K0NG0W123456"}},
		{"btrfs of two disks", "29 1 0:25 / / rw - btrfs /dev/sda2 rw\n", map[string]string{"sys/fs/btrfs/7a1e/devices/sda2": "-> " + sda + "/sda2", "sys/fs/btrfs/7a1e/devices/nvme1n1p2": "-> " + nvme1 + "/nvme1n1p2"},
			[]string{"nvme1n1 S64HNE0T567890", "sda S6K0NG0W123456"}},
		{"a kernel that shows no devices of btrfs", "29 1 0:25 / / rw - btrfs /dev/sda2 rw\n", nil, []string{"sda S6K0NG0W123456"}},
		{"a USB stick", "29 1 8:17 / / rw - ext4 /dev/sdb1 rw\n", map[string]string{"sys/dev/block/8:17": "-> " + stick + "/sdb1"}, nil},
		{"live system", "29 1 0:26 / / rw - overlay overlay rw,lowerdir=/a\n", nil, nil},
		{"NFS", "29 1 0:26 / / rw - nfs4 10.0.0.1:/srv/root rw\n", nil, nil},
		{"ZFS", "29 1 0:26 / / rw - zfs rpool/ROOT/sda2 rw\n", nil, nil},
		{"nothing", "", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := rootTree(t, tt.mounts, tt.files)
			say, _, _ := strings.Cut(strings.TrimPrefix(plainScript, "R=\n"), "\n")
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "R="+root+"\n"+say+"\n"+rootScript)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got := parsePlain(string(out)).Root
			ok := len(got) == len(tt.want)
			for i := 0; ok && i < len(got); i++ {
				d := got[i]
				line := strings.Join([]string{d.Name, d.Serial, d.WWN, d.PCI}, " ")
				if strings.Count(tt.want[i], " ") > 3 {
					line += " " + strings.TrimSpace(strings.Join([]string{strconv.FormatInt(d.Size, 10), d.Type}, " "))
				}
				ok = strings.HasPrefix(line, tt.want[i])
			}
			if !ok {
				t.Errorf("got %+v, want %q; the script said\n%s", got, tt.want, out)
			}
		})
	}
}

// rootTree writes the root of a node: its disks, its mounts and what else is given;
// "-> " begins a link.
func rootTree(t *testing.T, mounts string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"proc/self/mountinfo": mounts}
	for _, of := range []map[string]string{diskFiles, files} {
		for name, text := range of {
			all[name] = text
		}
	}
	for name, text := range all {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if to, link := strings.CutPrefix(text, "-> "); err == nil && link {
			err = os.Symlink(filepath.Join(dir, to), path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
