// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What the firmware of machines of x86-64 begins with; of Debian's ovmf.
const (
	FirmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"    // no keys: firmware with Secure Boot is in setup mode
	SecureVars   = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd" // Microsoft's keys, and Secure Boot on
)

// Pull takes the disks of a name out of machines without power, which have all of these
// disks. A machine always has a disk that is called SystemDisk: where that one is pulled,
// another, instead, takes its name, and keeps its content, its slot and its serial number.
// back undoes it.
func (l *Lab) Pull(all []Disk, name, instead string, machines ...string) (back func()) {
	l.t.Helper()
	var left []Disk
	for _, d := range all {
		switch {
		case !slices.Contains(machines, d.Machine) || d.Name != instead && d.Name != name:
		case name == SystemDisk && d.Name == instead:
			d.Name = SystemDisk
		case d.Name == name:
			continue
		}
		left = append(left, d)
	}
	move := func(machine, from, to string) {
		l.t.Helper()
		if err := os.Rename(from, to); err != nil {
			l.t.Fatalf("%s: %v", machine, err)
		}
	}
	if name == SystemDisk {
		for _, m := range machines {
			move(m, l.DiskFile(m, name), l.DiskFile(m, name)+".pulled")
			move(m, l.DiskFile(m, instead), l.DiskFile(m, name))
		}
	}
	l.SetDisks(left)
	return func() {
		l.t.Helper()
		if name == SystemDisk {
			for _, m := range machines {
				move(m, l.DiskFile(m, name), l.DiskFile(m, instead))
				move(m, l.DiskFile(m, name)+".pulled", l.DiskFile(m, name))
			}
		}
		l.SetDisks(all)
	}
}

// ResetNVRAM makes the firmware of a machine without power forget its variables, as an
// empty battery does, and begin with others: FirmwareVars or SecureVars.
func (l *Lab) ResetNVRAM(machine, vars string) {
	l.t.Helper()
	from, err := os.Open(vars)
	if err != nil {
		l.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(l.machines, machine, "vars.fd"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		l.t.Fatal(err)
	}
}

// PowerOn switches machines on by their BMCs, with a client that is not ours, and waits
// until their systems answer.
func (l *Lab) PowerOn(machines ...string) {
	l.t.Helper()
	for _, machine := range machines {
		bmc := "10.77.1.1" + strings.TrimPrefix(machine, "n") // as the CSV has it
		if out := l.Inside("ipmitool", "-I", "lanplus", "-C", "3", "-H", bmc, "-U", "admin", "-E", "power", "on"); out.Code != 0 {
			l.t.Fatalf("%s: power on: %s", machine, out)
		}
	}
	for _, machine := range machines {
		l.waitNode(machine, "true", "does not answer")
	}
}

// WaitArrays waits until no array of these nodes lacks a disk or copies onto one.
func (l *Lab) WaitArrays(nodes ...string) {
	l.t.Helper()
	for _, node := range nodes {
		l.waitNode(node, `! grep -qE '\[[U_]*_[U_]*\]|resync|recovery|reshape' /proc/mdstat`, "has arrays that are not whole")
	}
}

// waitNode repeats a command on a node until it ends well.
func (l *Lab) waitNode(node, command, otherwise string) {
	l.t.Helper()
	for until := time.Now().Add(applyLimit); ; time.Sleep(2 * time.Second) {
		res := l.Inside(l.ssh(node, 10, command)...)
		if res.Code == 0 {
			return
		}
		if time.Now().After(until) {
			l.t.Fatalf("%s %s: %s", node, otherwise, res)
		}
	}
}

// Reboot restarts the system of a node, and waits until it is up again.
func (l *Lab) Reboot(node string) {
	l.t.Helper()
	const id = "cat /proc/sys/kernel/random/boot_id"
	before := strings.TrimSpace(l.OnNode(node, id))
	l.OnNode(node, "systemd-run --quiet --on-active=1 systemctl reboot")
	l.waitNode(node, `test "$(`+id+`)" != `+before+` && systemctl is-system-running --wait`, "does not come up again")
}

// ClearTPM makes the emulated TPM of a machine without power forget all that it has: its seeds, by
// which it sealed keys.
func (l *Lab) ClearTPM(machine string) {
	l.t.Helper()
	kept, err := filepath.Glob(filepath.Join(l.machines, machine, "tpm", "*"))
	if err != nil || len(kept) == 0 {
		l.t.Fatalf("%s has no TPM: %v", machine, err)
	}
	for _, f := range kept {
		if err := os.Remove(f); err != nil {
			l.t.Fatal(err)
		}
	}
}

// Holds reports the files of the site, but for those of its keys, that have a text in them.
func (l *Lab) Holds(text string) (files []string) {
	l.t.Helper()
	err := filepath.WalkDir(l.site, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/.ironrail/keys/") {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), text) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

// SignatureList is a new certificate for db of a firmware in setup mode, in base64: an
// authenticated variable (UEFI 2.10, 8.2.2) without its attributes.
func (l *Lab) SignatureList() string {
	l.t.Helper()
	const script = "cd \"$1\" && openssl req -new -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -subj /CN=lab -days 30 2>/dev/null && " +
		"cert-to-efi-sig-list -g 6c616230-0000-4000-8000-000000000012 c.pem db.esl && sign-efi-sig-list -k k.pem -c c.pem db db.esl db.auth >/dev/null && base64 -w0 db.auth"
	out, err := exec.CommandContext(l.t.Context(), "bash", "-euc", script, "bash", l.t.TempDir()).Output()
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out)
}

// WaitNode waits until a command ends well on a node, which may be restarting.
func (l *Lab) WaitNode(node, command string) {
	l.t.Helper()
	l.waitNode(node, command, "does not come to what was expected")
}
