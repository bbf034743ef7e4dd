// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/install"
)

// mirrored gives n1 (BIOS) and n2 (UEFI) a second disk for a mirror, and a data disk.
func mirrored(o labtest.Options) labtest.Options {
	for _, n := range []string{"n1", "n2"} {
		digit := strings.TrimPrefix(n, "n")
		o.Disks = append(o.Disks, labtest.Disk{Machine: n, Name: "mirror", PCI: lowerSlot, Serial: "MIRROR0" + digit, Size: "6GiB"},
			labtest.Disk{Machine: n, Name: "data", PCI: higherSlot, Serial: "DATA000" + digit, Size: "2GiB"})
	}
	o.HCL = append(o.HCL, labtest.Edit{Old: "  handover   = handover.lab\n"}, // a rebuild drains a node, and the controller runs outside of the lab's network
		labtest.Edit{Old: "    count = 1\n    size  = \">= 4GB\"\n  }\n",
			New: "    count = 2\n    size  = \">= 4GB\"\n  }\n  disk \"data\" {\n    type = \"virtio\"\n    pci  = \"" + higherSlot + "\"\n  }\n", All: true},
		labtest.Edit{Old: "disk_layout \"os\" {\n  on = \"os\"\n  root {\n    size       = \"3GiB\"\n    filesystem = \"ext4\"\n  }\n}",
			New: "disk_layout \"os\" {\n  on       = \"os\"\n  raid     = 1\n  swap     = \"256MiB\"\n  preserve = [\"label:scratch\"]\n  root {\n    size       = \"3GiB\"\n    filesystem = \"xfs\"\n  }\n" +
				"  data \"scratch\" {\n    on         = \"data\"\n    mount      = \"/scratch\"\n    filesystem = \"xfs\"\n  }\n}"})
	return o
}

// TestLayout: Debian 12 on a mirror with XFS and swap, and a data disk, from power-off to
// accepted; then with each disk of the mirror gone in turn; then installed again with the
// data kept.
func TestLayout(t *testing.T) {
	l := labtest.Up(t, mirrored(labtest.Options{Name: "layout"}))
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n1", "n2")
	for _, node := range []string{"n1", "n2"} {
		onMirror(t, l, node)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	for _, part := range []struct {
		name string
		do   func(*testing.T, *labtest.Lab)
	}{{"reinstall", reinstalled}, {"pulled", pulled}} {
		t.Run(part.name, func(t *testing.T) { part.do(t, l.For(t)) })
	}
}

// onMirror fails the test unless a node's own programs see the layout.
func onMirror(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	t.Logf("%s: %s", node, l.OnNode(node, "systemctl is-system-running --wait; systemctl --failed --no-legend; cat /proc/mdstat /etc/fstab /etc/mdadm/mdadm.conf; lsblk -o NAME,TYPE,FSTYPE,LABEL,MOUNTPOINTS; journalctl -b -o cat -u scratch.mount -u boot-efi2.mount"))
	for _, look := range []string{
		`test "$(findmnt -no FSTYPE /)" = xfs`,
		`findmnt -no SOURCE / | grep -q ^/dev/md`,
		`mdadm --detail "$(findmnt -no SOURCE /)" | grep 'Raid Level : raid1'`,
		`test "$(mdadm --detail "$(findmnt -no SOURCE /)" | grep -c 'active sync')" = 2`,
		`swapon --show=NAME --noheadings | grep -q ^/dev/md`,
		`test "$(findmnt -no FSTYPE /scratch)" = xfs`,
		`test "$(lsblk -no LABEL "$(findmnt -no SOURCE /scratch)")" = scratch`,
		`mountpoint -q /boot/efi && mountpoint -q /boot/efi2`,
		`cd /boot/efi && find . -type f -exec sha256sum {} + | sort >/tmp/one; cd /boot/efi2 && find . -type f -exec sha256sum {} + | sort | cmp - /tmp/one && test -s /tmp/one`,
		`! dmesg | grep -i 'initramfs unpacking failed'`,
		`test -e /dev/md/root && test -e /dev/md/swap`, // their names are those of mdadm.conf, and not of another host's
		`cat /boot/initrd.img-* | tail -c 4096 | grep -a ^ARRAY`,
		`systemctl is-active ironrail-esp.service || systemctl show -p Result ironrail-esp.service | grep -q success`,
	} {
		l.OnNode(node, look)
	}
	w := labtest.Fact(l, install.WriteFact, node)
	if len(w.Disks) != 3 || !w.Complete || w.Result.Layout == nil {
		t.Errorf("%s: %d disks are recorded, want 3: %+v", node, len(w.Disks), w.Disks)
	}
}

// reinstalled installs both nodes again: what has the preserved label stays, the root does
// not.
func reinstalled(t *testing.T, l *labtest.Lab) {
	for _, node := range []string{"n1", "n2"} {
		l.OnNode(node, "echo kept >/scratch/kept && echo lost >/root/lost && sync")
	}
	l.Want(labtest.ExitDone, l.Ironrail("rebuild", "--auto-approve", "n1", "n2"))
	l.Accepted("n1", "n2")
	for _, node := range []string{"n1", "n2"} {
		onMirror(t, l, node)
		l.OnNode(node, `test "$(cat /scratch/kept)" = kept && test ! -e /root/lost`)
	}
}

// addAgain puts every member that its array does without back into it.
const addAgain = `for p in $(lsblk -nrpo NAME,PARTTYPE | awk '$2 == "a19d880f-05fc-4d3b-a006-743f0f84911e" {print $1}'); do
	grep -q "$(basename "$p")\[" /proc/mdstat && continue
	uuid=$(mdadm --examine --export "$p" | sed -n 's/^MD_UUID=//p')
	for a in /dev/md[0-9]*; do
		mdadm --detail --export "$a" | grep -q "^MD_UUID=$uuid$" || continue
		mdadm --manage "$a" --re-add "$p" || mdadm --manage "$a" --add "$p"
	done
done
cat /proc/mdstat`

// pulled takes each disk of the mirror out in turn, powered off, with the variables of n2's firmware kept and lost: the nodes boot from the
// other. Then it is put back, and added again.
func pulled(t *testing.T, l *labtest.Lab) {
	nodes := []string{"n1", "n2"}
	for _, c := range []struct {
		disk string
		lost bool
	}{{labtest.SystemDisk, false}, {"mirror", true}, {labtest.SystemDisk, true}, {"mirror", false}} {
		t.Run(fmt.Sprintf("%s, variables lost %v", c.disk, c.lost), func(t *testing.T) {
			l := l.For(t)
			l.WaitArrays(nodes...)
			l.PowerOff("n1")
			l.PowerOff("n2")
			back := l.Pull(mirrored(labtest.Options{}).Disks, c.disk, "mirror", nodes...)
			if c.lost {
				l.ResetNVRAM("n2")
			}
			l.PowerOn(nodes...)
			for _, node := range nodes {
				got := l.OnNode(node, "cat /proc/mdstat; findmnt -no SOURCE,FSTYPE /; findmnt /scratch")
				if t.Logf("%s:\n%s", node, got); !strings.Contains(got, "[2/1]") {
					t.Errorf("%s: no array lacks a disk", node)
				}
				l.OnNode(node, "touch /root/without-"+c.disk+" && sync")
				l.PowerOff(node)
			}
			back()
			l.PowerOn(nodes...)
			for _, node := range nodes {
				t.Logf("%s:\n%s", node, l.OnNode(node, addAgain))
			}
			l.WaitArrays(nodes...)
			for _, node := range nodes {
				l.OnNode(node, "test -e /root/without-"+c.disk)
				onMirror(t, l, node)
			}
		})
	}
}
