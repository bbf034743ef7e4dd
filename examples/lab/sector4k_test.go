// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/install"
)

// TestSector4K: a system disk with 4096-byte sectors is installed and started. The
// firmware is EDK2 without any change: it reads the partition table that was moved,
// the FAT of 512-byte sectors in the EFI system partition, and GRUB from it; GRUB
// reads the root file system, and Linux runs from that disk.
func TestSector4K(t *testing.T) {
	const node = "n5"
	l := labtest.Up(t, labtest.Options{Name: "4kn", Machines: []string{node}, HCL: bareSite(),
		Disks: []labtest.Disk{{Machine: node, Name: labtest.SystemDisk, Block: "4096"}}})
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	installedOn(t, l, node, systemSlot)
	firmwareStarted(t, l, node)
	if d := labtest.Fact[wire.Disk](l, install.DiskFact, node); d.Sector != 4096 {
		t.Errorf("the disk is recorded with sectors of %d bytes", d.Sector)
	}
	// What the kernel that runs from it says: the disk's sectors, and the root
	// partition, which the table counts in these and sysfs in 512 bytes.
	got := l.OnNode(node, `d=/sys/block/$(lsblk -ndo PKNAME "$(findmnt -no SOURCE /)"); cat "$d/queue/logical_block_size"; cat "$d"/*3/start; lsblk -nbdo PTTYPE "/dev/${d##*/}"`)
	t.Logf("on the node: %q", got)
	if f := strings.Fields(got); len(f) != 3 || f[0] != "4096" || f[1] == "0" || f[2] != "gpt" {
		t.Errorf("the node runs from a disk of %q, want sectors of 4096 bytes and a GPT", got)
	}
}
