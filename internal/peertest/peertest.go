// SPDX-License-Identifier: Apache-2.0

// Package peertest finds the programs of others that tests ask for a second opinion,
// or says what to install where they are missing. A test that uses it is called
// TestPeer, so that `make check` can leave such tests out.
package peertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// required is the value of IRONRAIL_PEERS with which a missing peer fails a test, as
// in CI; else the test is skipped.
const required = "required"

// util is the package of programs that every Debian has.
const util = "util-linux"

// packages are the programs and files that tests need, with the Debian 12 package
// that has each.
var packages = map[string]string{
	"amtool":                  "prometheus-alertmanager",
	"ansible-inventory":       "ansible-core",
	"apt-ftparchive":          "apt-utils",
	"apt-get":                 "apt",
	"bash":                    "bash",
	"blkid":                   util,
	"busybox":                 "busybox",
	"chromium":                "chromium",
	"cpio":                    "cpio",
	"createrepo_c":            "createrepo-c",
	"cryptsetup":              "cryptsetup-bin",
	"dash":                    "dash",
	"debugfs":                 "e2fsprogs",
	"dhcrelay":                "isc-dhcp-relay",
	"dnf":                     "dnf",
	"dnsmasq":                 "dnsmasq-base",
	"dmsetup":                 "dmsetup",
	"dpkg-deb":                "dpkg",
	"dpkg-query":              "dpkg",
	"drbdmeta":                "drbd-utils",
	"e2fsck":                  "e2fsprogs",
	"efibootmgr":              "efibootmgr",
	"etcd":                    "etcd-server",
	"findmnt":                 util,
	"fsck.vfat":               "dosfstools",
	"genisoimage":             "genisoimage",
	"gpg":                     "gnupg",
	"gpgconf":                 "gnupg",
	"gpgv":                    "gpgv",
	"groff":                   "groff-base",
	"grub-editenv":            "grub-common",
	"grub-mkconfig":           "grub-common",
	"grub-mkimage":            "grub-common",
	"ibnetdiscover":           "infiniband-diags",
	"ibsim":                   "ibsim-utils",
	"ip":                      "iproute2",
	"ipmi_sim":                "openipmi",
	"ipmitool":                "ipmitool",
	"kea-dhcp4":               "kea-dhcp4-server",
	"losetup":                 "mount",
	"lsblk":                   util,
	"make-bcache":             "bcache-tools",
	"mcopy":                   "mtools",
	"mdadm":                   "mdadm",
	"minisign":                "minisign",
	"mdir":                    "mtools",
	"mformat":                 "mtools",
	"mke2fs":                  "e2fsprogs",
	"mkfs.btrfs":              "btrfs-progs",
	"mkfs.exfat":              "exfatprogs",
	"mkfs.f2fs":               "f2fs-tools",
	"mkfs.gfs2":               "gfs2-utils",
	"mkfs.jfs":                "jfsutils",
	"mkfs.nilfs2":             "nilfs-tools",
	"mkfs.ntfs":               "ntfs-3g",
	"mkfs.ocfs2":              "ocfs2-tools",
	"mkfs.vfat":               "dosfstools",
	"mkfs.xfs":                "xfsprogs",
	"mkreiserfs":              "reiserfsprogs",
	"mksquashfs":              "squashfs-tools",
	"mkswap":                  util,
	"mkudffs":                 "udftools",
	"mmd":                     "mtools",
	"modinfo":                 "kmod",
	"mmdebstrap":              "mmdebstrap",
	"g++":                     "g++",
	"mount":                   "mount",
	"mpirun":                  "openmpi-bin",
	"mtype":                   "mtools",
	"named-checkzone":         "bind9-utils",
	"netplan":                 "netplan.io",
	"nsenter":                 util,
	"opensm":                  "opensm",
	"openssl":                 "openssl",
	"parted":                  "parted",
	"pdfinfo":                 "poppler-utils",
	"pdftotext":               "poppler-utils",
	"perfdhcp":                "kea-admin",
	"prometheus":              "prometheus",
	"prometheus-alertmanager": "prometheus-alertmanager",
	"promtool":                "prometheus",
	"pvcreate":                "lvm2",
	"qemu-img":                "qemu-utils",
	"qemu-system-x86_64":      "qemu-system-x86",
	"rpm":                     "rpm",
	"rpm2cpio":                "rpm2cpio",
	"rpmbuild":                "rpm",
	"sbsign":                  "sbsigntool",
	"scontrol":                "slurm-client",
	"setcap":                  "libcap2-bin",
	"setpriv":                 util,
	"sfdisk":                  "fdisk",
	"sgdisk":                  "gdisk",
	"swtpm":                   "swtpm",
	"tar":                     "tar",
	"skopeo":                  "skopeo",
	"slurmctld":               "slurmctld",
	"slurmd":                  "slurmd",
	"smpquery":                "infiniband-diags",
	"sminfo":                  "infiniband-diags",
	"snmpget":                 "snmp",
	"snmpwalk":                "snmp",
	"squeue":                  "slurm-client",
	"ssh":                     "openssh-client",
	"ssh-keygen":              "openssh-client",
	"sshd":                    "openssh-server",
	"tc":                      "iproute2",
	"tcpdump":                 "tcpdump",
	"umoci":                   "umoci",
	"unshare":                 util,
	"wipefs":                  util,
	"xz":                      "xz-utils",
	"zstd":                    "zstd",

	"cert-to-efi-sig-list":    "efitools",
	"grub-script-check":       "grub-common",
	"qemu-system-aarch64":     "qemu-system-arm",
	"systemd-analyze":         "systemd",
	"systemd-cryptenroll":     "systemd",
	"systemd-escape":          "systemd",
	"systemd-socket-activate": "systemd",

	"/usr/bin/qemu-aarch64-static":                      "qemu-user-static",
	"/usr/lib/x86_64-linux-gnu/libtss2-tcti-swtpm.so.0": "libtss2-tcti-swtpm0",
	"/usr/share/AAVMF/AAVMF_CODE.fd":                    "qemu-efi-aarch64",

	"/usr/lib/grub/i386-pc/boot.img":                    "grub-pc-bin",
	"/usr/lib/grub/x86_64-efi/kernel.img":               "grub-efi-amd64-bin",
	"/usr/lib/ipxe":                                     "ipxe",
	"/usr/lib/systemd/systemd-networkd":                 "systemd",
	"/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so": "libumad2sim0",
	"/usr/share/OVMF/OVMF_CODE_4M.fd":                   "ovmf",
	"/usr/share/OVMF/OVMF_CODE_4M.secboot.fd":           "ovmf",
}

// optional are peers that CI does not install: without them a test is always skipped.
var optional = map[string]string{
	"bootctl":        "Debian package systemd-boot, which makes itself the boot loader of a machine with UEFI",
	"kube-apiserver": "of the Kubernetes project; Debian has no package",
	"kubeadm":        "of the Kubernetes project; Debian has no package",
	"nmcli":          "Debian package network-manager, which would take over the machine's own network",
	"udevadm":        "Debian package udev; a container has none",
}

// Need skips the test unless all programs are in the PATH; an absolute path is a program,
// file or folder. With IRONRAIL_PEERS=required a missing one fails the test.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		where, known := packages[p]
		if !known {
			where, known = packages[filepath.Base(p)]
		}
		other, may := optional[p]
		switch {
		case !known && !may:
			t.Fatalf("%s is not in the table of package peertest", p)
		case isFound(p):
		case may:
			t.Skipf("needs %s (%s)", p, other)
		default:
			reportMissing(t, p, where)
		}
	}
}

// Python returns the interpreter that has a module of a Debian package python3-NAME, or
// skips or fails as Need does. A python3 of one's own may come first in the PATH.
func Python(t testing.TB, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	reportMissing(t, "the Python module "+module, "python3-"+module)
	return ""
}

// Checkout returns the folder that an environment variable names: sources of others
// that no package has. Without it the test is always skipped; with it a missing program
// fails the test.
func Checkout(t testing.TB, variable, what string, programs ...string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is not set: it names %s", variable, what)
	}
	for _, p := range programs {
		if !isFound(p) {
			t.Fatalf("%s is set, and %s is not installed", variable, p)
		}
	}
	return dir
}

func isFound(program string) bool {
	if strings.HasPrefix(program, "/") {
		_, err := os.Stat(program)
		return err == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}

func reportMissing(t testing.TB, what, pkg string) {
	t.Helper()
	if os.Getenv("IRONRAIL_PEERS") == required {
		t.Fatalf("needs %s, and IRONRAIL_PEERS is %s: apt-get install %s", what, required, pkg)
	}
	t.Skipf("needs %s: apt-get install %s", what, pkg)
}
