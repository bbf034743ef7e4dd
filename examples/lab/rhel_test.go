// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// withoutRails are the edits that leave a site of nodes with one network, without drivers and
// tests between nodes.
func withoutRails() []labtest.Edit {
	const rail = "  nic \"rail\" {\n    fabric        = fabric.rail\n    software_rdma = \"rxe\"%s\n    ports         = [{ rail = 0, pci = \"0000:00:04.0\", panel = \"rail 0\" }]\n  }\n"
	return []labtest.Edit{
		{Old: fmt.Sprintf(rail, " # RDMA in the kernel, over an ordinary NIC")},
		{Old: fmt.Sprintf(rail, ""), All: true},
		{Old: "  drivers    = [driver.rdma]\n  validation = validation.lab\n"},
	}
}

// likeRHEL is an image of kind rhel in the place of that of site.hcl.
func likeRHEL(l *labtest.Lab) labtest.Edit {
	url, key := l.RHELRepositories("bookworm", "9.6")
	return labtest.Edit{Old: debianBlock, New: fmt.Sprintf(`image "rhel" "os" {
  release = "9"
  repository "appstream" {
    url = "%s/AppStream"
    key = %q
  }
  repository "baseos" {
    url = "%[1]s/BaseOS"
    key = %[2]q
  }
}`, url, key)}
}

// TestRHEL: an image of kind rhel, made by dnf of RPM packages with the files of Debian, is
// brought from power-off to accepted. Its kernel is started by its entry of the Boot Loader
// Specification, its address is set by NetworkManager, and what its host block asks for is there.
func TestRHEL(t *testing.T) {
	nodes := []string{"n2", "n5"}
	l := labtest.Up(t, labtest.Options{Name: "rhel", Machines: nodes, HCL: withoutRails()})
	l.Edit(likeRHEL(l))
	l.Edit(labtest.Edit{Old: `  timezone    = "UTC"`, New: `  timezone    = "Europe/Berlin"
  hold_kernel = true
  sysctl      = { "vm.swappiness" = "7" }
  accounts {
    sudo_groups = ["operators"]
  }`})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, node := range nodes {
		for _, look := range []string{
			`. /etc/os-release && test "$ID" = rocky && rpm -q kernel-core`,
			`test "$(ls /boot/loader/entries | wc -l)" = 1 && grep -q "^options .*no_timer_check" /boot/loader/entries/*.conf && grep -q no_timer_check /proc/cmdline`,
			`for c in $(nmcli -g UUID connection show --active); do nmcli -g ipv4.method connection show $c; done | grep -q manual && test "$(ip -4 -o address show scope global | grep -c 'inet 10\.77\.0\.')" = 1`,
			`test "$(readlink /etc/localtime)" = /usr/share/zoneinfo/Europe/Berlin && test "$(cat /proc/sys/vm/swappiness)" = 7`,
			`grep '^%operators ' /etc/sudoers.d/90-ironrail && visudo -c`,
			`grep '^exclude.*kernel' /etc/dnf/dnf.conf`,
			`! systemctl --failed --no-legend | grep .`,
		} {
			t.Logf("%s: %s", node, l.OnNode(node, look))
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	if got := l.Ironrail("drift"); got.Code != labtest.ExitDone || strings.Contains(got.Stdout, "has drifted") {
		t.Errorf("drift: %s", got)
	}
}

// TestRHELDiskless: nodes keep a system of kind diskless, made by dnf of RPM packages with the files of
// Debian, in memory, from power-off to accepted: a machine with a BIOS and one with UEFI. No byte of
// their disks is written, NetworkManager sets their addresses, and rails and drivers are as on a disk.
func TestRHELDiskless(t *testing.T) {
	nodes := []string{"n1", "n2"}
	l := labtest.Up(t, labtest.Options{Name: "rhel-diskless", Machines: nodes, Memory: 3584, HCL: append(withoutRails(),
		labtest.Edit{Old: "  disks      = disk_layout.os\n"}, labtest.Edit{Old: "size = \"1GiB\"", New: "size = \"3584MiB\"", All: true})})
	url, key := l.RHELRepositories("bookworm", "9.6 linux-image-amd64")
	l.Edit(labtest.Edit{Old: debianBlock, New: fmt.Sprintf("image \"diskless\" \"os\" {\n  os      = \"rhel\"\n  release = \"9\"\n  repository \"appstream\" {\n    url = \"%[1]s/AppStream\"\n    key = %[2]q\n  }\n  repository \"baseos\" {\n    url = \"%[1]s/BaseOS\"\n    key = %[2]q\n  }\n}", url, key)})
	for _, n := range nodes {
		l.Fill(n, labtest.SystemDisk, `mkfs.ext4 -q -F -L somebodys "$D"`)
	}
	same := l.Unchanged("n1/"+labtest.SystemDisk, "n2/"+labtest.SystemDisk)
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, n := range nodes {
		t.Logf("%s:\n%s", n, l.OnNode(n, "findmnt -no FSTYPE,SIZE,USED / ; cat /etc/fstab /proc/cmdline; free -m; systemctl --failed --no-legend; ip -br address; ls /boot"))
		for _, look := range []string{
			`. /etc/os-release && test "$ID" = rocky && rpm -q kernel-core`,
			`test "$(findmnt -no FSTYPE /)" = overlay && test "$(hostname)" = ` + n,
			`for c in $(nmcli -g UUID connection show --active); do nmcli -g ipv4.method connection show $c; done | grep -q manual && test "$(ip -4 -o address show scope global | grep -c 'inet 10\.77\.0\.')" = 1`,
			`cat /etc/selinux/config; grep -x SELINUX=permissive /etc/selinux/config`,
			`! ls /boot/initramfs-*`,
			`! grep -q ' /dev/vd' /proc/mounts && ! systemctl --failed --no-legend | grep .`,
			`touch /usr/bin/written && ! test -e /init`,
		} {
			l.OnNode(n, look)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.PowerOff("n2")
	l.Want(labtest.ExitDone, l.Ironrail("rebuild", "n2", "--auto-approve", "--jobs-unknown"))
	l.Accepted(nodes...)
	l.OnNode("n2", `! test -e /usr/bin/written && test "$(findmnt -no FSTYPE /)" = overlay`)
	l.Untouched(nodes...)
	for _, n := range nodes {
		l.PowerOff(n)
	}
	same()
}
