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

// wantNetplan looks whether netplan has set up the interfaces of a node.
func wantNetplan(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	for _, look := range []string{
		`test "$(stat -c %a /etc/netplan/10-ironrail.yaml)" = 600 && test "$(ls /etc/netplan)" = 10-ironrail.yaml`,
		`test -s /run/systemd/network/10-netplan-boot.network && ! ls /etc/systemd/network/10-ironrail-boot.network`,
		`test -z "$(netplan generate 2>&1)"`,
		`test "$(ip -4 -o address show scope global | grep -c 'inet 10\.77\.0\.')" = 1`,
		`{ ! test -e /run/dbus/system_bus_socket || networkctl status --no-pager; } && ! systemctl --failed --no-legend | grep .`, // networkctl asks over D-Bus, which vendors' images may lack
	} {
		t.Logf("%s: %s", node, l.OnNode(node, look))
	}
}

// debianBlock is the image block of site.hcl.
const debianBlock = "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n}"

// system is an operating system that the lab installs.
type system struct {
	name     string
	codename string   // of the Debian that is in it
	nodes    []string // n1 has a BIOS
	release  string   // PRETTY_NAME of os-release(5) begins so
	// image edits the image block, with what it names.
	image func(*labtest.Lab) labtest.Edit
}

// systems are all of them.
func systems() []system {
	return []system{
		{"debian-12", "bookworm", []string{"n1", "n2"}, "Debian GNU/Linux 12", nil},
		{"debian-13", "trixie", []string{"n1", "n2"}, "Debian GNU/Linux 13", func(*labtest.Lab) labtest.Edit {
			return labtest.Edit{Old: `= "bookworm"`, New: `= "trixie"`}
		}},
		{"oci", "bookworm", []string{"n1", "n2"}, "Debian GNU/Linux 12", func(l *labtest.Lab) labtest.Edit {
			return labtest.Edit{Old: debianBlock,
				New: fmt.Sprintf("image \"oci\" \"os\" {\n  source  = %q\n  os      = \"debian\"\n  release = \"12\"\n}", l.ContainerImage("bookworm"))}
		}},
		// Packages of Debian from an archive that looks like Ubuntu's.
		{"ubuntu-like", "bookworm", []string{"n1", "n2"}, "Ubuntu 24.04", likeUbuntu("openssh-server", "chrony")},
		// The image has no loader for a BIOS.
		{"raw-cloud", "bookworm", []string{"n2", "n5"}, "Debian GNU/Linux 12", cloudImage(labtest.UbuntuDisk)},
	}
}

// likeUbuntu is an image of kind ubuntu, with packages, in the place of that of site.hcl.
func likeUbuntu(packages ...string) func(*labtest.Lab) labtest.Edit {
	return func(l *labtest.Lab) labtest.Edit {
		url, key := l.UbuntuArchive("bookworm", "noble:24.04")
		return labtest.Edit{Old: debianBlock, New: fmt.Sprintf(`image "ubuntu" "os" {
  release  = "noble"
  kernel   = "linux-image-generic"
  packages = ["%s"]
  repository {
    url = %q
    key = %q
  }
}`, strings.Join(packages, `", "`), url, key)}
	}
}

// cloudImage is an image of a vendor's partitions in the place of that of site.hcl.
func cloudImage(partitions string) func(*labtest.Lab) labtest.Edit {
	return func(l *labtest.Lab) labtest.Edit {
		path, checksum := l.CloudImage("bookworm", partitions)
		return labtest.Edit{Old: debianBlock,
			New: fmt.Sprintf("image \"raw\" \"os\" {\n  source   = %q\n  checksum = %q\n  os       = \"debian\"\n  release  = \"12\"\n}", path, checksum)}
	}
}

// TestRockyDisk: an image in the five partitions of Rocky 9, on XFS and with an empty
// machine-id, is installed as it is, and its last partition grown. What is in it is of
// Debian, with a menu of its own: entries of the Boot Loader Specification are not tried.
func TestRockyDisk(t *testing.T) {
	s := system{"raw-rocky", "bookworm", []string{"n2"}, "Debian GNU/Linux 12", cloudImage(labtest.RockyDisk)}
	l := s.install(t, labtest.Options{Name: s.name})
	for _, node := range s.nodes {
		got := l.OnNode(node, `findmnt -no SOURCE,FSTYPE /; findmnt -no SOURCE,FSTYPE /boot; findmnt -no SOURCE,FSTYPE /boot/efi; cat /etc/machine-id /etc/fstab; df -h /; systemctl --failed --no-legend`)
		t.Logf("%s:\n%s", node, got)
		for _, want := range []string{"/dev/vda5 xfs\n", "/dev/vda4 xfs\n", "/dev/vda3 vfat\n"} {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.TrimSpace(want)) {
				t.Errorf("%s: no %q in what it says", node, want)
			}
		}
		l.OnNode(node, `test "$(df --output=size -BM / | tail -n 1 | tr -d ' M')" -gt 2800 && test -s /etc/machine-id`) // it has 2270 in the image; the disk has 4096
	}
}

// TestSystem: each operating system is installed from power-off to accepted, with its
// driver stack, the tests of its links and its groups, and its hand-over: on one ext4
// disk, and on a mirror of two with XFS, swap and a data disk, where each disk is then
// taken out in turn, the kernel is updated meanwhile, and the nodes are installed again
// with the data kept.
func TestSystem(t *testing.T) {
	for _, s := range systems() {
		t.Run(s.name+"-one-disk", func(t *testing.T) {
			l := s.install(t, labtest.Options{Name: s.name})
			for _, node := range s.nodes {
				if s.name == "raw-cloud" {
					wantSetUp(t, l, node)
				}
				if s.name == "raw-cloud" || s.name == "ubuntu-like" {
					wantNetplan(t, l, node)
				}
			}
		})
		t.Run(s.name+"-mirror", func(t *testing.T) { s.onMirror(t) })
	}
}

// install brings the nodes of a system to accepted.
func (s system) install(t *testing.T, o labtest.Options) *labtest.Lab {
	t.Helper()
	o.Machines = s.nodes
	l := labtest.Up(t, o)
	if s.image != nil {
		l.Edit(s.image(l))
	}
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(s.nodes...)
	for _, node := range s.nodes {
		if got := l.OnNode(node, `. /etc/os-release; echo "$PRETTY_NAME, $(uname -r)"`); !strings.HasPrefix(got, s.release) {
			t.Errorf("%s runs %q, want %s", node, got, s.release)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	return l
}

// TestSettings: what the host block asks for is on the node and stays, and the tests of a
// node run what the driver `tools` brings.
func TestSettings(t *testing.T) {
	nodes := []string{"n2", "n5"}
	l := labtest.Up(t, labtest.Options{Name: "settings", Machines: nodes, HCL: []labtest.Edit{
		{Old: `  timezone    = "UTC"`, New: `  timezone    = "Europe/Berlin"
  hold_kernel = true
  sysctl      = { "vm.swappiness" = "7", "net.core.rmem_max" = "4194304" }
  user_data   = <<-X
    #!/bin/sh
    set -eu
    getent hosts "$(hostname)"
    sleep 20 # longer than the boot: the bring-up waits for it
    echo "$(date -u +%s) $(cat /proc/sys/kernel/random/boot_id)" >>/var/lib/site-was-here
  X
  accounts {
    sudo_groups = ["operators"]
  }`},
		{Old: `"openssh-server", "chrony"]`, New: `"openssh-server", "chrony", "sudo", "unattended-upgrades"]`},
		{Old: "driver \"inbox\" \"rdma\" {", New: "driver \"tools\" \"tools\" {}\n\ndriver \"inbox\" \"rdma\" {"},
		{Old: `"ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"]`, New: `"ibverbs-utils"]`},
		{Old: "= [driver.rdma]", New: "= [driver.rdma, driver.tools]"},
	}})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, node := range nodes {
		for _, look := range []string{
			`test "$(readlink /etc/localtime)" = /usr/share/zoneinfo/Europe/Berlin`,
			`test "$(cat /proc/sys/vm/swappiness)" = 7 && test "$(cat /proc/sys/net/core/rmem_max)" = 4194304`,
			`apt-mark showhold | grep -x linux-image-amd64 && apt-mark showhold | grep -x "linux-image-$(uname -r)"`,
			`grep '^%operators ' /etc/sudoers.d/90-ironrail && visudo -c`,
			`! systemctl is-enabled apt-daily.timer && ! systemctl is-enabled unattended-upgrades.service && ! systemctl is-active unattended-upgrades.service`,
			`fio --version && mpirun --version && ib_write_bw --version | grep Version`, // perftest ends with 1 there
			`dpkg -V fio perftest`,
			`test "$(wc -l </var/lib/site-was-here)" = 1 && grep '"exit": 0' /var/lib/ironrail/user-data.json && ! systemctl is-failed ironrail-user-data`,
		} {
			l.OnNode(node, look)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.OnNode(nodes[0], "sysctl -w vm.swappiness=60 && apt-mark unhold linux-image-amd64")
	if got := l.Ironrail("drift"); got.Code == labtest.ExitDone || !strings.Contains(got.Stdout, "vm.swappiness") || !strings.Contains(got.Stdout, "linux-image-amd64") {
		t.Errorf("drift does not see what was changed: %s", got)
	}
}

// TestUbuntuSettings: on a system that looks like Ubuntu, what the host block asks for is on
// the node, nothing updates itself, and netplan sets the MTU of the network, also when it is
// edited.
func TestUbuntuSettings(t *testing.T) {
	s := system{"settings-ubuntu", "bookworm", []string{"n2"}, "Ubuntu 24.04", likeUbuntu("openssh-server", "chrony", "sudo", "unattended-upgrades")}
	const dns = "  dns  = [\"10.77.0.2\"]\n"
	l := s.install(t, labtest.Options{Name: s.name, HCL: []labtest.Edit{
		{Old: dns, New: dns + "  mtu  = 1400\n"},
		{Old: `  timezone    = "UTC"`, New: `  timezone    = "Europe/Berlin"
  hold_kernel = true
  locale      = "C.UTF-8"
  sysctl      = { "vm.swappiness" = "7" }
  accounts {
    sudo_groups = ["operators"]
  }`},
	}})
	wantNetplan(t, l, "n2")
	mtu := func(want string) {
		t.Helper()
		l.OnNode("n2", `dev=$(ip -o route get 10.77.0.2 | sed 's/.* dev \([^ ]*\) .*/\1/'); test "$(cat /sys/class/net/$dev/mtu)" = `+want+
			` && grep -x '      mtu: `+want+`' /etc/netplan/10-ironrail.yaml && grep -x MTUBytes=`+want+` /run/systemd/network/10-netplan-boot.network`)
	}
	mtu("1400")
	for _, look := range []string{
		`test "$(readlink /etc/localtime)" = /usr/share/zoneinfo/Europe/Berlin`,
		`grep -x LANG=C.UTF-8 /etc/default/locale`,
		`test "$(cat /proc/sys/vm/swappiness)" = 7`,
		`apt-mark showhold | grep -x linux-image-generic && apt-mark showhold | grep -x "linux-image-$(uname -r)"`,
		`grep '^%operators ' /etc/sudoers.d/90-ironrail && visudo -c`,
		`for u in apt-daily.timer apt-daily-upgrade.timer motd-news.timer; do test "$(systemctl is-enabled $u)" = masked || exit 1; done`,
		`! systemctl is-enabled unattended-upgrades.service && ! systemctl is-active unattended-upgrades.service`,
		`test "$(readlink /boot/vmlinuz)" = "vmlinuz-$(uname -r)"`,
		`! command -v snap && grep 'Pin-Priority: -10' /etc/apt/preferences.d/ironrail-snapd`,
	} {
		l.OnNode("n2", look)
	}
	l.Edit(labtest.Edit{Old: "mtu  = 1400", New: "mtu  = 1450"})
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve", "--jobs-unknown")) // its scheduler does not run
	mtu("1450")
	l.OnNode("n2", "networkctl reload && sleep 2 && true")
	mtu("1450")
}

// TestCloudConfig: the cloud-init of an image of a vendor reads what the site has for it, once,
// and sets nothing that ironrail does. One whose settings fail keeps the node out.
func TestCloudConfig(t *testing.T) {
	s := system{"cloud-config", "bookworm", []string{"n2"}, "Debian GNU/Linux 12", cloudImage(labtest.UbuntuDisk)}
	const given = "  user_data   = <<-X\n    #cloud-config\n    write_files:\n    - path: /etc/site\n      content: \"was here\"\n    runcmd:\n    - [sh, -c, \"sleep 15; echo once >>/var/lib/site-was-here\"]\n  X\n"
	l := s.install(t, labtest.Options{Name: s.name, HCL: []labtest.Edit{{Old: `  timezone    = "UTC"`, New: `  timezone    = "UTC"` + "\n" + given}}})
	for _, look := range []string{
		`test "$(cat /etc/site)" = "was here" && test "$(wc -l </var/lib/site-was-here)" = 1`,
		`cloud-init status | grep -x 'status: done'`,
		`test "$(hostname)" = n2 && ip -4 -br address | grep -c '10\.77\.0\.12/24' | grep -x 1`,
		`test "$(ls /etc/ssh/ssh_host_*_key)" = /etc/ssh/ssh_host_ed25519_key`,
		`! id debian && ! systemctl --failed --no-legend | grep .`,
	} {
		l.OnNode("n2", look)
	}
	l.Edit(labtest.Edit{Old: "sleep 15; echo once >>/var/lib/site-was-here", New: "exit 3"})
	if got := l.Ironrail("plan"); !strings.Contains(got.Stdout+got.Stderr, "user_data") || !strings.Contains(got.Stdout+got.Stderr, "an edit alone reinstalls nothing") {
		t.Errorf("an edit of user data: %s", got)
	}
	got := l.Ironrail("rebuild", "n2", "--auto-approve", "--jobs-unknown")
	if got.Code == labtest.ExitDone || !strings.Contains(got.Stdout+got.Stderr, "cloud-init failed") {
		t.Errorf("user data that fails: %s", got)
	}
}
