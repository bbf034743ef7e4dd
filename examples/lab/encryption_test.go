// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// encrypted gives the site hardware with a TPM and a data disk, which is encrypted and preserved.
func encrypted() labtest.Options {
	return labtest.Options{Name: "encryption", Machines: []string{"n12"},
		Disks: []labtest.Disk{{Machine: "n12", Name: "data", PCI: higherSlot, Serial: "DATA0012", Size: "2GiB"}},
		HCL: []labtest.Edit{
			labtest.AddHardware("lab-tpm", "  tpm          = \"2.0\"\n  boot_timeout = \"5min\"\n  disk \"data\" {\n    type = \"virtio\"\n    pci  = \""+higherSlot+"\"\n  }\n"),
			{Old: "  handover   = handover.lab\n"}, // a rebuild drains a node, and the controller runs outside of the lab's network
			{Old: "disk_layout \"os\" {\n  on = \"os\"\n  root {\n    size       = \"3GiB\"\n    filesystem = \"ext4\"\n  }\n}",
				New: "disk_layout \"os\" {\n  on       = \"os\"\n  preserve = [\"label:scratch\"]\n  root {\n    size       = \"3GiB\"\n    filesystem = \"ext4\"\n  }\n" +
					"  data \"scratch\" {\n    on         = \"data\"\n    mount      = \"/scratch\"\n    filesystem = \"xfs\"\n    encryption = \"tpm2\"\n  }\n" +
					"  data \"home\" {\n    mount      = \"/home\"\n    size       = \"512MiB\"\n    encryption = \"tpm2\"\n  }\n}"},
		}}
}

// TestEncryption brings a machine with an emulated TPM 2.0 from power-off to accepted with two
// encrypted data file systems. They are unlocked at a restart without a person; stay locked once
// the TPM was cleared, and once a key of the firmware changed, which drift finds, until an apply
// unlocks them by their recovery keys and enrolls the TPM again; and the preserved one outlives a
// reinstall.
func TestEncryption(t *testing.T) {
	const node = "n12"
	l := labtest.Up(t, encrypted())
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	wantEncrypted(t, l, node)
	l.OnNode(node, "echo kept >/scratch/kept && echo lost >/home/lost && sync")

	l.Reboot(node)
	wantEncrypted(t, l, node)
	l.OnNode(node, `test "$(cat /scratch/kept)" = kept`)
	if p := l.Plan("--refresh"); len(p.Steps) != 0 {
		t.Errorf("there is something to do: %+v", p.Steps)
	}

	l.PowerOff(node)
	l.ClearTPM(node)
	l.PowerOn(node)
	l.OnNode(node, "! mountpoint -q /scratch && ! ls /dev/mapper/luks-*")
	got := l.Ironrail("drift", "--kind", "settings")
	if got.Code == labtest.ExitDone || !strings.Contains(got.Stdout, "scratch is locked: PCR 7 is as when enrolled: losses of power have locked the TPM for a while, or the TPM was cleared or exchanged; home is locked: ") {
		t.Errorf("drift does not see a TPM that was cleared: %s", got)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--refresh", "--auto-approve"))
	l.Accepted(node)
	l.Reboot(node)
	wantEncrypted(t, l, node)
	l.OnNode(node, `test "$(cat /scratch/kept)" = kept`)
	wantRecovery(t, l, node)

	// Another certificate in db of the firmware, which is in setup mode and asks for no signature.
	const db = "/sys/firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f"
	l.OnNode(node, `(printf '\047\000\000\000'; echo `+l.SignatureList()+` | base64 -d) >/run/db && dd if=/run/db of=`+db+` bs=64k status=none`)
	l.OnNode(node, "systemd-run --quiet --on-active=1 systemctl reboot")
	l.WaitNode(node, "test -e "+db+" && test ! -e /run/db && ! mountpoint -q /scratch")
	got = l.Ironrail("drift", "--kind", "settings")
	if got.Code == labtest.ExitDone || !strings.Contains(got.Stdout, "scratch is locked: PCR 7 is ") || !strings.Contains(got.Stdout, "when enrolled: Secure Boot, its keys (db, dbx) or the loader (shim) were changed") {
		t.Errorf("drift does not see PCR 7 that changed: %s", got)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--refresh", "--auto-approve"))
	l.Accepted(node)
	wantEncrypted(t, l, node)

	l.Want(labtest.ExitDone, l.Ironrail("rebuild", "--auto-approve", node))
	l.Accepted(node)
	wantEncrypted(t, l, node)
	l.OnNode(node, `test "$(cat /scratch/kept)" = kept && test ! -e /home/lost`)
}

// wantEncrypted fails the test unless the node's own programs see both volumes as they are to be.
func wantEncrypted(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	t.Logf("%s", l.OnNode(node, "lsblk -o NAME,TYPE,FSTYPE,LABEL,MOUNTPOINTS; cat /etc/crypttab /etc/fstab; cat /sys/class/tpm/tpm0/pcr-sha256/7; systemctl --failed --no-legend"))
	for _, look := range []string{
		`test "$(findmnt -no FSTYPE /scratch)" = xfs && test "$(findmnt -no FSTYPE /home)" = ext4`,
		`for m in /scratch /home; do test "$(lsblk -dno TYPE "$(findmnt -no SOURCE $m)")" = crypt || exit 1; done`,
		`for d in $(blkid -t TYPE=crypto_LUKS -o device); do cryptsetup luksDump "$d" | grep -q systemd-tpm2 && cryptsetup luksDump "$d" | grep -Eq 'tpm2-(pcrs|hash-pcrs): +7' && cryptsetup open --test-passphrase --token-only "$d" || exit 1; done`,
		`test "$(blkid -t TYPE=crypto_LUKS -o device | wc -l)" = 2`,
	} {
		l.OnNode(node, look)
	}
}

// wantRecovery fails the test unless the recovery keys open the volumes, and stand nowhere but in
// the folder of keys.
func wantRecovery(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	got := l.Ironrail("state", "keys", "--recovery", node)
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if len(lines) != 2 {
		t.Fatalf("recovery keys: %d lines", len(lines))
	}
	for _, line := range lines {
		f := strings.Fields(line) // label, UUID, key
		l.OnNode(node, "printf %s "+f[2]+" | cryptsetup open --test-passphrase --key-file - /dev/disk/by-uuid/"+f[1])
		if files := l.Holds(f[2]); len(files) > 0 {
			t.Errorf("the recovery key of %s stands in %v", f[0], files)
		}
	}
}
