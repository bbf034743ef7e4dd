// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/install"
)

// mirrored gives nodes a second disk for a mirror, and a data disk.
func mirrored(o labtest.Options, nodes ...string) labtest.Options {
	for _, n := range nodes {
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

// onMirror brings the nodes of a system to accepted on a mirror with XFS and swap, and a
// data disk; then with each disk of the mirror gone in turn; then installed again with
// the data kept.
func (s system) onMirror(t *testing.T) {
	l := s.install(t, mirrored(labtest.Options{Name: s.name + "-mirror"}, s.nodes...))
	for _, node := range s.nodes {
		wantMirror(t, l, node)
	}
	t.Run("pulled", func(t *testing.T) { s.pulled(t, l.For(t)) })
	t.Run("reinstall", func(t *testing.T) { s.reinstalled(t, l.For(t)) })
}

// wantMirror fails the test unless a node's own programs see the layout.
func wantMirror(t *testing.T, l *labtest.Lab, node string) {
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
		`for i in /boot/initrd.img-*; do tail -c 4096 "$i" | grep -aq ^ARRAY && exit 0; done; exit 1`,
		`systemctl is-active ironrail-esp.service || systemctl show -p Result ironrail-esp.service | grep -q success`,
	} {
		l.OnNode(node, look)
	}
	w := labtest.Fact(l, install.WriteFact, node)
	if len(w.Disks) != 3 || !w.Complete || w.Result.Layout == nil {
		t.Errorf("%s: %d disks are recorded, want 3: %+v", node, len(w.Disks), w.Disks)
	}
}

// reinstalled installs the nodes again: what has the preserved label stays, the root does
// not.
func (s system) reinstalled(t *testing.T, l *labtest.Lab) {
	for _, node := range s.nodes {
		l.OnNode(node, "echo kept >/scratch/kept && echo lost >/root/lost && sync")
	}
	l.Want(labtest.ExitDone, l.Ironrail(append([]string{"rebuild", "--auto-approve"}, s.nodes...)...))
	l.Accepted(s.nodes...)
	for _, node := range s.nodes {
		wantMirror(t, l, node)
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

// pulled takes each disk of the mirror out in turn, powered off, with the variables of
// the firmware kept and lost: the nodes boot from the other, where a kernel is installed
// meanwhile. Then it is put back, and added again: both disks start the new kernel.
func (s system) pulled(t *testing.T, l *labtest.Lab) {
	for i, c := range []struct {
		disk string
		lost bool
	}{{labtest.SystemDisk, true}, {"mirror", true}, {labtest.SystemDisk, false}, {"mirror", false}} {
		t.Run(fmt.Sprintf("%s, variables lost %v", c.disk, c.lost), func(t *testing.T) {
			l := l.For(t)
			l.WaitArrays(s.nodes...)
			for _, node := range s.nodes {
				l.PowerOff(node)
				if c.lost && node != "n1" {
					l.ResetNVRAM(node, labtest.FirmwareVars)
				}
			}
			back := l.Pull(mirrored(labtest.Options{}, s.nodes...).Disks, c.disk, "mirror", s.nodes...)
			l.PowerOn(s.nodes...)
			for _, node := range s.nodes {
				got := l.OnNode(node, "cat /proc/mdstat; findmnt -no SOURCE,FSTYPE /; findmnt /scratch; uname -r")
				if t.Logf("%s:\n%s", node, got); !strings.Contains(got, "[2/1]") {
					t.Errorf("%s: no array lacks a disk", node)
				}
				if i > 0 && !strings.Contains(got, "-cloud-amd64") {
					t.Errorf("%s does not run the kernel that was installed while the other disk was out", node)
				}
			}
			if i == 0 {
				l.UpdateKernel(s.codename, s.nodes...)
			}
			for _, node := range s.nodes {
				l.OnNode(node, fmt.Sprintf("touch /root/without-%d && sync", i))
				l.PowerOff(node)
			}
			back()
			l.PowerOn(s.nodes...)
			for _, node := range s.nodes {
				t.Logf("%s:\n%s", node, l.OnNode(node, addAgain))
			}
			l.WaitArrays(s.nodes...)
			for _, node := range s.nodes {
				l.OnNode(node, fmt.Sprintf("test -e /root/without-%d && uname -r | grep -e -cloud-amd64", i))
				wantMirror(t, l, node)
			}
		})
	}
}

// TestCut: power fails while a mirror is made and while files are put onto it, and the
// controller with it. The next apply makes the same mirror whole.
func TestCut(t *testing.T) {
	nodes := []string{"n1", "n2"}
	for _, c := range []struct{ name, phase string }{{"make", "make "}, {"write", "write"}} {
		t.Run(c.name, func(t *testing.T) {
			l := labtest.Up(t, mirrored(labtest.Options{Name: "cut-" + c.name}, nodes...))
			l.Want(labtest.ExitDone, l.Outside("image", "build"))
			run := l.Start("apply", "--auto-approve")
			run.Until(c.phase, func(e event.Event) bool {
				return e.Type == event.StepProgress && e.Step == "n1/install.write" && strings.HasPrefix(e.Text, c.phase)
			})
			run.Kill()
			for _, node := range nodes {
				l.PowerOff(node)
			}
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
			l.Accepted(nodes...)
			for _, node := range nodes {
				wantMirror(t, l, node)
			}
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
		})
	}
}

// TestRAID10: an array of four disks from power-off to accepted, and a boot without one
// of them, which is then added again.
func TestRAID10(t *testing.T) {
	disks := []labtest.Disk{
		{Machine: "n2", Name: "second", PCI: lowerSlot, Serial: "SECOND02", Size: "6GiB"},
		{Machine: "n2", Name: "third", PCI: higherSlot, Serial: "THIRD002", Size: "6GiB"},
		{Machine: "n2", Name: "fourth", PCI: "0000:00:08.0", Serial: "FOURTH02", Size: "6GiB"},
	}
	l := labtest.Up(t, labtest.Options{Name: "raid10", Machines: []string{"n2"}, Disks: disks, HCL: []labtest.Edit{
		{Old: "    count = 1\n    size  = \">= 4GB\"", New: "    count = 4\n    size  = \">= 4GB\"", All: true},
		{Old: "  on = \"os\"\n  root {", New: "  on   = \"os\"\n  raid = 10\n  swap = \"256MiB\"\n  root {"},
	}})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n2")
	for _, look := range []string{
		`mdadm --detail "$(findmnt -no SOURCE /)" | grep 'Raid Level : raid10'`,
		`test "$(mdadm --detail "$(findmnt -no SOURCE /)" | grep -c 'active sync')" = 4`,
		`swapon --show=NAME --noheadings | grep -q ^/dev/md`,
	} {
		l.OnNode("n2", look)
	}
	l.WaitArrays("n2")
	l.PowerOff("n2")
	back := l.Pull(disks, "fourth", "", "n2")
	l.PowerOn("n2")
	if got := l.OnNode("n2", "cat /proc/mdstat"); !strings.Contains(got, "[4/3]") {
		t.Errorf("no array lacks a disk:\n%s", got)
	}
	l.PowerOff("n2")
	back()
	l.PowerOn("n2")
	l.OnNode("n2", addAgain)
	l.WaitArrays("n2")
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}

// inGroups is mirrored with its root and a further file system in a volume group on the
// mirror, and the data disk in another one; both data file systems are preserved.
func inGroups(o labtest.Options, nodes ...string) labtest.Options {
	o = mirrored(o, nodes...)
	o.HCL = append(o.HCL, labtest.Edit{Old: "  preserve = [\"label:scratch\"]\n  root {\n",
		New: "  preserve = [\"label:scratch\", \"label:home\"]\n  volume_group \"vg0\" {}\n  volume_group \"vg1\" {\n    on = \"data\"\n  }\n" +
			"  data \"home\" {\n    mount        = \"/home\"\n    volume_group = \"vg0\"\n  }\n  root {\n    volume_group = \"vg0\"\n"},
		labtest.Edit{Old: "    on         = \"data\"\n    mount      = \"/scratch\"\n", New: "    volume_group = \"vg1\"\n    size         = \"1GiB\"\n    mount        = \"/scratch\"\n"})
	return o
}

// wantGroups fails the test unless a node's own programs see the volume groups.
func wantGroups(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	t.Logf("%s: %s", node, l.OnNode(node, "systemctl is-system-running --wait; systemctl --failed --no-legend; cat /proc/cmdline /proc/mdstat /etc/fstab; pvs; vgs; lvs -o +devices; lsblk -o NAME,TYPE,FSTYPE,LABEL,MOUNTPOINTS"))
	for _, look := range []string{
		`test "$(findmnt -no SOURCE /)" = /dev/mapper/vg0-root && test "$(findmnt -no FSTYPE /)" = xfs`,
		`test "$(findmnt -no SOURCE /home)" = /dev/mapper/vg0-home && test "$(findmnt -no SOURCE /scratch)" = /dev/mapper/vg1-scratch`,
		`test "$(lvs --noheadings -o lv_name --sort lv_name vg0 | xargs)" = "home root" && test "$(lvs --noheadings -o lv_name vg1 | xargs)" = scratch`,
		`pvs --noheadings -o pv_name -S vg_name=vg0 | grep -q '/dev/md' && pvs --noheadings -o pv_name -S vg_name=vg1 | grep -q '/dev/vd'`,
		`vgck vg0 && vgck vg1 && test "$(lvs --noheadings --units m --nosuffix -o lv_size vg0/root | xargs)" = 3072.00`,
		`test "$(lsblk -no LABEL /dev/vg0/home)" = home && swapon --show=NAME --noheadings | grep -q ^/dev/md`,
		`mountpoint -q /boot/efi && mountpoint -q /boot/efi2`,
	} {
		l.OnNode(node, look)
	}
}

// TestLVM: a root and data in volume groups, on a mirror and on a disk, from power-off to
// accepted on BIOS and UEFI; a kernel that is installed there; a boot without one disk of
// the mirror; an installation again that keeps the preserved volumes; and power that fails
// while it is made.
func TestLVM(t *testing.T) {
	nodes := []string{"n1", "n2"}
	l := labtest.Up(t, inGroups(labtest.Options{Name: "lvm"}, nodes...))
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, node := range nodes {
		wantGroups(t, l, node)
		l.OnNode(node, "echo kept >/home/kept && echo kept >/scratch/kept && echo lost >/root/lost && sync")
	}
	l.UpdateKernel("bookworm", nodes...)
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do

	l.WaitArrays(nodes...)
	for _, node := range nodes {
		l.PowerOff(node)
	}
	back := l.Pull(mirrored(labtest.Options{}, nodes...).Disks, labtest.SystemDisk, "mirror", nodes...)
	l.PowerOn(nodes...)
	for _, node := range nodes {
		if got := l.OnNode(node, "cat /proc/mdstat; findmnt -no SOURCE /; uname -r"); !strings.Contains(got, "[2/1]") || !strings.Contains(got, "/dev/mapper/vg0-root") || !strings.Contains(got, "-cloud-amd64") {
			t.Errorf("%s: no array lacks a disk, the root is elsewhere, or the kernel is not the one that was installed:\n%s", node, got)
		}
		l.PowerOff(node)
	}
	back()
	l.PowerOn(nodes...)
	for _, node := range nodes {
		t.Logf("%s:\n%s", node, l.OnNode(node, addAgain))
	}
	l.WaitArrays(nodes...)

	run := l.Start(append([]string{"rebuild", "--auto-approve"}, nodes...)...)
	run.Until("make root", func(e event.Event) bool {
		return e.Type == event.StepProgress && e.Step == "n1/install.write" && strings.HasPrefix(e.Text, "make root")
	})
	run.Kill()
	for _, node := range nodes {
		l.PowerOff(node)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, node := range nodes {
		wantGroups(t, l, node)
		l.OnNode(node, `test "$(cat /home/kept)" = kept && test "$(cat /scratch/kept)" = kept && test ! -e /root/lost`)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}
