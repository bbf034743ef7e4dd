// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// realImage is an image of a system as its vendor publishes it for clouds, which whoever
// has it names in the environment.
type realImage struct {
	variable string // the environment's, with its path or URL; VARIABLE_CHECKSUM has its checksum
	os       string // as the image block has it
	release  string // as the image block has it
	pretty   string // PRETTY_NAME of os-release(5) begins so
}

// realImages are those that TestReal installs.
func realImages() []realImage {
	return []realImage{
		{"LAB_REAL_UBUNTU", "ubuntu", "24.04", "Ubuntu 24.04"},
		{"LAB_REAL_DEBIAN", "debian", "12", "Debian GNU/Linux 12"},
		{"LAB_REAL_ROCKY", "rhel", "9", "Rocky Linux 9"},
		{"LAB_REAL_ALMA", "rhel", "9", "AlmaLinux 9"},
		{"LAB_REAL_RHEL", "rhel", "9", "Red Hat Enterprise Linux 9"},
	}
}

// block is the image block.
func (i realImage) block(t *testing.T) labtest.Edit {
	t.Helper()
	source, checksum := os.Getenv(i.variable), os.Getenv(i.variable+"_CHECKSUM")
	switch {
	case source == "":
		t.Skipf("%s is not set: it names the disk image of %s that its vendor publishes for clouds, by path or URL, and %s_CHECKSUM its checksum (sha256:...)", i.variable, i.pretty, i.variable)
	case checksum == "":
		t.Fatalf("%s is set, and %s_CHECKSUM is not: the checksum that the vendor's list has for it (sha256:...)", i.variable, i.variable)
	case !strings.Contains(source, "://") && !filepath.IsAbs(source):
		t.Fatalf("%s is %q: neither a URL nor an absolute path", i.variable, source)
	}
	return labtest.Edit{Old: debianBlock,
		New: fmt.Sprintf("image \"raw\" \"os\" {\n  source   = %q\n  checksum = %q\n  os       = %q\n  release  = %q\n}", source, checksum, i.os, i.release)}
}

// ofOneImage are the edits that leave of site.hcl what needs no package beside the image,
// since there is no mirror of its vendor, and give it the room that it takes.
func ofOneImage() []labtest.Edit {
	return []labtest.Edit{
		{Old: "    size       = \"3GiB\"", New: "    size       = \"12GiB\""}, // images of RHEL and its rebuilds have 10 GiB
		{Old: " # RDMA in the kernel, over an ordinary NIC"},
		{Old: "  nic \"rail\" {\n    fabric        = fabric.rail\n    software_rdma = \"rxe\"\n    ports         = [{ rail = 0, pci = \"0000:00:04.0\", panel = \"rail 0\" }]\n  }\n", All: true},
		{Old: "driver \"inbox\" \"rdma\" { # the distribution's own RDMA stack, from a repository that the controller serves\n  packages = [\"rdma-core\", \"ibverbs-utils\", \"perftest\", \"openmpi-bin\", \"python3-mpi4py\"]\n}\n"},
		{Old: "  drivers    = [driver.rdma]\n"},
		{Old: "fabric \"roce\" \"rail\" {\n  rails      = 1\n  topology   = \"explicit\"\n  addressing = \"subnet\"\n  cidr       = \"10.77.16.0/24\"\n  mtu        = 1500\n}\n"},
		{Old: "  pair {\n    engine = \"perftest\"\n    size   = \"64KiB\"\n  }\n  all_reduce {\n    engine = \"mpi\"\n    scope  = [\"all\"]\n    sizes  = [\"4KiB\", \"1MiB\"]\n  }\n" +
			"  limit \"rdma.write_bw\" { # a quarter of what emulation gave: it is noisy\n    at_least = \"2MB/s\"\n  }\n" +
			"  limit \"all_reduce.busbw\" { # less than a quarter: it falls most when the controller is busy\n    at_least = \"5MB/s\"\n  }\n"},
	}
}

// TestReal: images as their vendors publish them, which the environment names, are
// installed as they are, from power-off to accepted; the node is itself, its root has
// the size that the site gives it, and it starts again with a menu that its own programs
// made. It gets no drivers
// and no rails: their packages would have to come from the vendor's mirror.
func TestReal(t *testing.T) {
	for _, i := range realImages() {
		t.Run(strings.ToLower(strings.TrimPrefix(i.variable, "LAB_REAL_")), func(t *testing.T) {
			block := i.block(t)
			s := system{"real-" + filepath.Base(t.Name()), "", []string{"n2"}, i.pretty, func(*labtest.Lab) labtest.Edit { return block }}
			l := s.install(t, labtest.Options{Name: s.name, HCL: ofOneImage(), Disks: []labtest.Disk{{Machine: "n2", Name: labtest.SystemDisk, Size: "16GiB"}}})
			t.Logf("%s", l.OnNode("n2", "uname -r; cat /proc/cmdline /etc/fstab; findmnt --real; systemctl --failed --no-legend; getenforce; ls -lZ /etc/machine-id /etc/fstab; cat /boot/loader/entries/*; true"))
			id := l.OnNode("n2", "cat /etc/machine-id")
			for _, look := range []string{
				`test "$(hostname)" = n2 && test -s /etc/machine-id`,
				`grep -q ' root=UUID=' /proc/cmdline && ! grep -q LABEL= /etc/fstab`,
				`test -e /etc/cloud/cloud-init.disabled && ! systemctl is-active cloud-init.service`,
				`test "$(df --output=size -BM / | tail -n 1 | tr -d ' M')" -gt 11000`,
				`if command -v update-grub; then update-grub; else grub2-mkconfig -o /boot/grub2/grub.cfg; fi && sync`,
			} {
				l.OnNode("n2", look)
			}
			l.PowerOff("n2")
			l.PowerOn("n2")
			if again := l.OnNode("n2", "cat /etc/machine-id"); again != id {
				t.Errorf("its machine-id was %q and is %q", id, again)
			}
			l.OnNode("n2", `grep -q ' root=UUID=' /proc/cmdline`)
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
		})
	}
}
