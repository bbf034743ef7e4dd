// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// wantSetUp looks whether a node that runs the image of somebody else is set up as
// itself, by names of file systems that no other disk has.
func wantSetUp(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	got := l.OnNode(node, `echo "name $(hostname)"; cat /proc/cmdline /etc/fstab; grep -c '^[[:space:]]*linux .*root=UUID=' /boot/grub/grub.cfg; echo "others $(grep '^[[:space:]]*linux' /boot/grub/grub.cfg | grep -vc root=UUID=)"
for m in / /boot /boot/efi; do findmnt -no TARGET,SOURCE,FSTYPE,SIZE $m; done; cloud-init status; ip -br -4 address; systemctl --failed --no-legend; update-grub 2>&1; echo "again $(grep '^[[:space:]]*linux' /boot/grub/grub.cfg | grep -c 'root=UUID=.*console=ttyS0')"`)
	t.Logf("%s:\n%s", node, got)
	for _, want := range []string{"name " + node + "\n", " root=UUID=", "\nUUID=", "\t/boot\t", "PARTUUID=", "/dev/vda16", "others 0\n", "disabled"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: no %q in what it says", node, want)
		}
	}
	for _, no := range []string{"LABEL=", "again 0\n"} {
		if strings.Contains(got, no) {
			t.Errorf("%s: %q in what it says", node, no)
		}
	}
}

// TestSystem: each operating system that is built is installed from power-off to
// accepted, on a BIOS and a UEFI machine, with its driver stack, the tests of its links
// and its groups, and its hand-over. Beside the lab's own, which every other test
// installs.
func TestSystem(t *testing.T) {
	both := []string{"n1", "n2"}
	for _, c := range []struct {
		name    string // of the case and its lab
		nodes   []string
		edits   []labtest.Edit
		release string // PRETTY_NAME of os-release(5) begins so
		prepare func(*labtest.Lab)
	}{
		{"debian-13", both, []labtest.Edit{{Old: `= "bookworm"`, New: `= "trixie"`}}, "Debian GNU/Linux 13", nil},
		{"oci", both, nil, "Debian GNU/Linux 12", func(l *labtest.Lab) {
			l.Edit(labtest.Edit{
				Old: "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n}",
				New: fmt.Sprintf("image \"oci\" \"os\" {\n  source  = %q\n  os      = \"debian\"\n  release = \"12\"\n}", l.ContainerImage("bookworm")),
			})
		}},
		// The image has no loader for a BIOS.
		{"raw-cloud", []string{"n2", "n5"}, nil, "Debian GNU/Linux 12", func(l *labtest.Lab) {
			path, checksum := l.CloudImage("bookworm")
			l.Edit(labtest.Edit{
				Old: "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n}",
				New: fmt.Sprintf("image \"raw\" \"os\" {\n  source   = %q\n  checksum = %q\n  os       = \"debian\"\n  release  = \"12\"\n}", path, checksum),
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := labtest.Up(t, labtest.Options{Name: c.name, HCL: c.edits, Machines: c.nodes})
			if c.prepare != nil {
				c.prepare(l)
			}
			l.Want(labtest.ExitDone, l.Outside("image", "build"))
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
			l.Accepted(c.nodes...)
			for _, node := range c.nodes {
				if got := l.OnNode(node, `. /etc/os-release; echo "$PRETTY_NAME, $(uname -r)"`); !strings.HasPrefix(got, c.release) {
					t.Errorf("%s runs %q, want %s", node, got, c.release)
				}
				if strings.HasPrefix(c.name, "raw") {
					wantSetUp(t, l, node)
				}
			}
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
		})
	}
}
