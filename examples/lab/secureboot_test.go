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

// secure gives the site hardware with Secure Boot, and with further attributes.
func secure(further string) labtest.Edit {
	return labtest.AddHardware("lab-secure", `  secure_boot  = true
  boot_timeout = "5min"
  console {
    port = "ttyS0"
    baud = 115200
  }
`+further)
}

// TestSecureBoot: a machine whose firmware starts what Microsoft signed alone is brought to
// accepted, with RDMA in its kernel; the installed system says itself that Secure Boot is on and
// that its kernel is locked down.
func TestSecureBoot(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "secure", Machines: []string{"n11"}, HCL: []labtest.Edit{secure("")}})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n11")
	wantSecure(t, l, "n11")
	l.OnNode("n11", "lsmod | grep '^rdma_rxe '")
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}

// wantSecure fails the test unless a node that was brought up once was seen with Secure Boot on and
// its kernel locked down, and says so itself.
func wantSecure(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	const says = "Secure Boot is on; the kernel is locked down (integrity); db has "
	if said := strings.Count(events(t, l), says); said != 2 { // in the ramdisk, and on the installed system
		t.Errorf("events say %d times %q", said, says)
	}
	got := l.OnNode(node, secureBoot+`; cat /sys/kernel/security/lockdown; uname -r`)
	if t.Logf("%s", got); !strings.HasPrefix(got, "1\nnone [integrity] confidentiality\n") {
		t.Errorf("the node says\n%s", got)
	}
}

// secureBoot prints 1 on a node whose firmware enforces Secure Boot.
const secureBoot = `od -An -tu1 -j4 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c | tr -d ' '`

// TestSecureBootLayouts: with Secure Boot, a root of XFS in a volume group on a mirror, with data in
// two volume groups that are encrypted by the TPM, from power-off to accepted. The firmware starts
// shim from either disk, with its variables kept and lost, and the data are unlocked each time; with
// Secure Boot off they stay locked, which drift finds, and with it on again they are unlocked.
func TestSecureBootLayouts(t *testing.T) {
	const node = "n11"
	o := inGroups(labtest.Options{Name: "secure-layouts", Machines: []string{node}, HCL: []labtest.Edit{secure("  tpm          = \"2.0\"\n  boot_order   = \"disk\"\n")}}, node)
	o.HCL = append(o.HCL, labtest.Edit{Old: "    mount        = \"/scratch\"\n", New: "    mount        = \"/scratch\"\n    encryption   = \"tpm2\"\n"},
		labtest.Edit{Old: "    mount        = \"/home\"\n", New: "    mount        = \"/home\"\n    encryption   = \"tpm2\"\n"})
	l := labtest.Up(t, o)
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	wantSecure(t, l, node)
	wantSecureLayout(t, l, node)
	wantRecovery(t, l, node)
	wantShimOnEach(t, l, node, 2)
	l.OnNode(node, "echo kept >/scratch/kept && echo kept >/home/kept && sync")
	pcr7 := l.OnNode(node, pcr)
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do

	for _, c := range []struct {
		disk string
		lost bool
	}{{labtest.SystemDisk, false}, {"mirror", true}} {
		l.WaitArrays(node)
		l.Halt(node)
		if c.lost {
			l.ResetNVRAM(node, labtest.SecureVars)
		}
		back := l.Pull(o.Disks, c.disk, "mirror", node)
		l.PowerOn(node)
		l.WaitNode(node, "mountpoint -q /scratch && mountpoint -q /home")
		if got := l.OnNode(node, secureBoot+"; cat /proc/mdstat; cat /scratch/kept /home/kept"); !strings.HasPrefix(got, "1\n") || !strings.Contains(got, "[2/1]") || strings.Count(got, "kept") != 2 {
			t.Errorf("without %s, variables lost %v:\n%s", c.disk, c.lost, got)
		}
		l.Halt(node)
		back()
		l.PowerOn(node)
		t.Logf("%s", l.OnNode(node, addAgain))
	}
	l.WaitArrays(node)
	wantSecureLayout(t, l, node)
	if again := l.OnNode(node, pcr); again != pcr7 {
		t.Errorf("PCR 7 is %s, and was %s when enrolled: the same loaders, keys and firmware", again, pcr7)
	}

	l.Halt(node)
	l.ResetNVRAM(node, labtest.FirmwareVars)
	l.PowerOn(node)
	l.OnNode(node, "! mountpoint -q /scratch && ! mountpoint -q /home && ! ls /dev/mapper/luks-*")
	if off := l.OnNode(node, secureBoot+"; "+pcr); !strings.HasPrefix(off, "0\n") || strings.Contains(off, pcr7) {
		t.Errorf("with Secure Boot off the node says %s; PCR 7 was %s", off, pcr7)
	}
	got := l.Ironrail("drift", "--kind", "settings")
	if got.Code == labtest.ExitDone || !strings.Contains(got.Stdout, "home and scratch are locked: PCR 7 is ") {
		t.Errorf("drift does not see volumes that are locked: %s", got)
	}
	l.Halt(node)
	l.ResetNVRAM(node, labtest.SecureVars)
	l.PowerOn(node)
	l.WaitNode(node, "mountpoint -q /scratch && mountpoint -q /home")
	l.OnNode(node, `test "$(cat /home/kept)" = kept && test "$(cat /scratch/kept)" = kept`)
}

// TestSecureBootUbuntu: with Secure Boot, an image of kind ubuntu, whose loaders come of its own archive,
// from power-off to accepted: from the network and from the disk. A kernel that is installed
// then starts as well. What is signed is Debian's, in the packages and places of Ubuntu.
func TestSecureBootUbuntu(t *testing.T) {
	const node = "n11"
	l := labtest.Up(t, labtest.Options{Name: "secure-ubuntu", Machines: []string{node}, HCL: []labtest.Edit{secure("")}})
	l.Edit(likeUbuntu("openssh-server", "chrony")(l))
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	wantSecure(t, l, node)
	wantNetplan(t, l, node)
	wantServedBy(t, l, "ubuntu")
	l.OnNode(node, `. /etc/os-release && test "$ID" = ubuntu`)
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.UpdateKernel("bookworm", node)
	l.OnNode(node, "systemd-run --quiet --on-active=1 systemctl reboot")
	l.WaitNode(node, "uname -r | grep -e -cloud-amd64") // which has no soft RoCE
	if got := l.OnNode(node, secureBoot+"; cat /sys/kernel/security/lockdown; uname -r"); !strings.HasPrefix(got, "1\nnone [integrity] confidentiality\n") || !strings.Contains(got, "-cloud-amd64") {
		t.Errorf("with another kernel the node says\n%s", got)
	}
}

// wantServedBy fails the test unless shim and GRUB came over the network from the folder of a
// distribution.
func wantServedBy(t *testing.T, l *labtest.Lab, distribution string) {
	t.Helper()
	all := events(t, l)
	for _, name := range []string{"shimx64.efi", "grubx64.efi"} {
		if !strings.Contains(all, distribution+"/"+name) {
			t.Errorf("%s was not fetched from the folder of %s", name, distribution)
		}
	}
}

// TestSecureBootRHEL: with Secure Boot, an image of kind rhel, with the shim and the GRUB that its
// packages have in the folder of their vendor, from power-off to accepted: from the network,
// and from the disk by an entry of the Boot Loader Specification. What is signed is Debian's, in
// RPM packages and in the places of Rocky.
func TestSecureBootRHEL(t *testing.T) {
	const node = "n11"
	l := labtest.Up(t, labtest.Options{Name: "secure-rhel", Machines: []string{node}, HCL: append([]labtest.Edit{secure("  boot_order   = \"disk\"\n")}, withoutRails()...)})
	l.Edit(likeRHEL(l))
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	wantSecure(t, l, node)
	wantServedBy(t, l, "rhel")
	for _, look := range []string{
		`. /etc/os-release && test "$ID" = rocky && rpm -q kernel-core shim-x64 grub2-efi-x64`,
		`test "$(ls /boot/loader/entries | wc -l)" = 1 && grep -q "^options .*no_timer_check" /boot/loader/entries/*.conf && grep -q no_timer_check /proc/cmdline`,
		`mount -o ro "$(blkid -t TYPE=vfat -o device | head -1)" /mnt && test -s /mnt/EFI/rocky/shimx64.efi && test -s /mnt/EFI/BOOT/BOOTX64.EFI && test -s /mnt/EFI/BOOT/mmx64.efi && umount /mnt`,
	} {
		t.Logf("%s", l.OnNode(node, look))
	}
	o := labtest.Fact(l, install.SystemFact, node).BootOrder
	if o == nil || len(o.Entries) == 0 || o.Entries[0].Partition == "" {
		t.Errorf("the boot order is %+v", o)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.Reboot(node)
	l.OnNode(node, "test \"$("+secureBoot+")\" = 1")
}

// TestSecureBootDiskless: a machine with Secure Boot keeps its system in memory, under the kernel of the
// ramdisk, which is locked down, from power-off to accepted; no byte of its disk is written.
func TestSecureBootDiskless(t *testing.T) {
	const node = "n11"
	l := labtest.Up(t, labtest.Options{Name: "secure-diskless", Machines: []string{node}, Memory: 3072, HCL: append([]labtest.Edit{secure("")}, disklessHCL()...)})
	l.Fill(node, labtest.SystemDisk, `mkfs.ext4 -q -F -L somebodys "$D"`)
	same := l.Unchanged(node + "/" + labtest.SystemDisk)
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	wantSecure(t, l, node)
	l.OnNode(node, `test "$(findmnt -no FSTYPE /)" = overlay && lsmod | grep '^rdma_rxe ' && ! systemctl --failed --no-legend | grep .`)
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.PowerOff(node)
	same()
}

// pcr prints PCR 7 of the bank SHA-256.
const pcr = "cat /sys/class/tpm/tpm0/pcr-sha256/7"

// wantSecureLayout fails the test unless the node's own programs see the layout of
// TestSecureBootLayouts.
func wantSecureLayout(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	wantEncrypted(t, l, node)
	for _, look := range []string{
		`test "$(findmnt -no SOURCE /)" = /dev/mapper/vg0-root && test "$(findmnt -no FSTYPE /)" = xfs`,
		`pvs --noheadings -o pv_name -S vg_name=vg0 | grep -q '/dev/md' && pvs --noheadings -o pv_name -S vg_name=vg1 | grep -q '/dev/vd'`,
		`test "$(mdadm --detail "$(pvs --noheadings -o pv_name -S vg_name=vg0 | xargs)" | grep -c 'active sync')" = 2`,
		`mountpoint -q /boot/efi && mountpoint -q /boot/efi2`,
	} {
		l.OnNode(node, look)
	}
}

// wantShimOnEach fails the test unless the firmware has an entry for shim on the EFI system
// partition of each disk, and each has Debian's signed loaders. OVMF puts the order of QEMU before that
// of its entries.
func wantShimOnEach(t *testing.T, l *labtest.Lab, node string, disks int) {
	t.Helper()
	t.Logf("%s: boot order %+v", node, labtest.Fact(l, install.SystemFact, node).BootOrder)
	l.OnNode(node, fmt.Sprintf(`for p in /boot/efi /boot/efi2; do blkid -s PARTUUID -o value "$(findmnt -no SOURCE $p)"; done | sort -u | wc -l | grep -x %d
test "$(for v in /sys/firmware/efi/efivars/Boot0*; do tr -d '\000\n' <$v | grep -aF 'ironrail' | grep -acF '\EFI\BOOT\BOOTX64.EFI'; done | grep -c 1)" = %[1]d`, disks))
	l.OnNode(node, `for e in /boot/efi /boot/efi2; do test -s $e/EFI/BOOT/grubx64.efi && test -s $e/EFI/BOOT/mmx64.efi && grep -q EFI/ironrail $e/EFI/debian/grub.cfg || exit 1; done`)
}
