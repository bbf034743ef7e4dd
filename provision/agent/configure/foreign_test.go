// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// menu is as update-grub of Ubuntu writes it, with the label that its images have.
const menu = `set default=0
if [ "${recordfail}" = 1 ] ; then
  set timeout=0
fi
menuentry 'Ubuntu' --class ubuntu {
	recordfail
	search --no-floppy --fs-uuid --set=root 1111-2222
	linux	/vmlinuz-6.8.0-31-generic root=LABEL=cloudimg-rootfs ro  console=tty1 console=ttyS0 quiet splash $vt_handoff
	initrd	/initrd.img-6.8.0-31-generic
}
submenu 'Advanced options' {
	menuentry 'recovery' {
		linux	/vmlinuz-6.8.0-31-generic root=LABEL=cloudimg-rootfs ro recovery nomodeset iommu=pt
	}
}
`

// cloudDisk makes a disk in the layout of Ubuntu 24.04 with programs of others.
func cloudDisk(t *testing.T) string {
	t.Helper()
	peertest.Need(t, "sgdisk", "mke2fs")
	path := filepath.Join(t.TempDir(), "disk")
	for _, argv := range [][]string{
		{"truncate", "-s", "140M", path},
		{"sgdisk", "-n", "14:2048:+4M", "-t", "14:ef02", "-n", "15:10240:+40M", "-t", "15:ef00", "-u", "15:0A0B0C0D-0000-4000-8000-000000000015", "-n", "16:92160:+20M", "-t", "16:ea00", "-n", "1:133120:+60M", "-t", "1:8300", path},
		{"mke2fs", "-q", "-t", "ext4", "-L", "BOOT", "-U", "b0000000-0000-4000-8000-000000000016", "-E", "offset=47185920", path, "20m"},
		{"mke2fs", "-q", "-F", "-t", "ext4", "-L", "cloudimg-rootfs", "-U", "a0000000-0000-4000-8000-000000000001", "-E", "offset=68157440", path, "60m"},
	} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	return path
}

// TestPeerForeign: a system that ironrail did not make is set up as the node that it is,
// names its file systems by UUID, and is the same when it is configured again.
func TestPeerForeign(t *testing.T) {
	t.Parallel()
	dev, err := disk.Open(cloudDisk(t), disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	root, dir, _, _ := tree(t)
	for name, text := range map[string]string{
		grubFile: menu, fstabFile: "LABEL=cloudimg-rootfs\t/\t ext4\tdiscard 0 1\nLABEL=BOOT /boot ext4 defaults 0 2\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n",
		"etc/netplan/50-cloud-init.yaml": "network: {}\n", "etc/network/interfaces": "auto eth0\niface eth0 inet dhcp\n", "etc/network/interfaces.d/50-cloud": "x",
		"etc/udev/rules.d/75-cloud-ifupdown.rules": "x", "etc/systemd/network/80-all.network": "x", "etc/systemd/network/10-ironrail-boot.network": "ours", "etc/NetworkManager/NetworkManager.conf": "",
		"etc/cloud/cloud.cfg": "users: [default]\n", "etc/default/grub.d/50-cloudimg-settings.cfg": "GRUB_CMDLINE_LINUX_DEFAULT=\"console=tty1\"\n",
		"usr/lib/systemd/system/apt-daily.timer": "",
	} {
		if err := rootfs.WriteText(root, name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !isForeign(root) {
		t.Error("is taken for one of ironrail's own")
	}
	p := params(t)
	p.Host.NoUpdates = true
	s, err := prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(s.host(root), s.foreign(root, target{devs: []disk.Device{dev}})); err != nil {
			t.Fatal(err)
		}
	}
	const rootUUID, args = "UUID=a0000000-0000-4000-8000-000000000001", "iommu=pt mitigations=off console=tty0 console=ttyS0,115200"
	want := strings.Replace(menu, "linux	/vmlinuz-6.8.0-31-generic root=LABEL=cloudimg-rootfs ro  console=tty1 console=ttyS0 quiet splash $vt_handoff", "linux /vmlinuz-6.8.0-31-generic root="+rootUUID+" ro "+args, 1)
	want = strings.Replace(want, "linux	/vmlinuz-6.8.0-31-generic root=LABEL=cloudimg-rootfs ro recovery nomodeset iommu=pt", "linux /vmlinuz-6.8.0-31-generic root="+rootUUID+" ro recovery nomodeset iommu=pt "+strings.TrimPrefix(args, "iommu=pt "), 1)
	for name, want := range map[string]string{
		grubFile:     want,
		fstabFile:    rootUUID + "\t/\t ext4\tdiscard 0 1\nUUID=b0000000-0000-4000-8000-000000000016 /boot ext4 defaults 0 2\nPARTUUID=0a0b0c0d-0000-4000-8000-000000000015 /boot/efi vfat umask=0077 0 1\n",
		defaultsFile: "# Written by ironrail when this node was installed.\nGRUB_CMDLINE_LINUX_DEFAULT=\"" + args + "\"\nGRUB_DISABLE_OS_PROBER=true\n",
		"etc/systemd/network/10-ironrail-boot.network": "ours",
	} {
		if got, err := fs.ReadFile(root.FS(), name); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	for name, there := range map[string]bool{
		"etc/cloud/cloud-init.disabled": true, "etc/netplan/50-cloud-init.yaml": false, "etc/network/interfaces.d/50-cloud": false, "etc/systemd/network/80-all.network": false,
		"etc/udev/rules.d/75-cloud-ifupdown.rules": false, "etc/NetworkManager/conf.d/10-ironrail.conf": true, "etc/systemd/system/apt-daily.timer": true,
	} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := fs.ReadFile(root.FS(), "etc/network/interfaces"); err != nil || strings.Contains(string(text), "eth0") {
		t.Errorf("interfaces: %v\n%s", err, text)
	}
	if err := rootfs.WriteText(root, grubFile, "set default=0\n", 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.foreign(root, target{devs: []disk.Device{dev}}); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "starts no kernel") {
		t.Errorf("a menu without kernels: %v", err)
	}
}

// TestPeerBootPart: /boot is what fstab names, on the disk of the root and on no other.
func TestPeerBootPart(t *testing.T) {
	t.Parallel()
	dev, err := disk.Open(cloudDisk(t), disk.Look)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	table, err := gpt.Read(dev, dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	for fstab, want := range map[string]string{
		"LABEL=BOOT /boot/ ext4 defaults\n": "UUID=b0000000-0000-4000-8000-000000000016", "LABEL=cloudimg-rootfs / ext4 defaults\n": "", "/dev/vda16 /boot ext4 defaults\n": "line 1: /boot: /dev/vda16 names no file system",
		"\nPARTUUID=0A0B0C0D-0000-4000-8000-000000000015 /boot vfat defaults\n": "line 2: /boot: it is neither ext4 nor xfs",
	} {
		is, err := readDisk(dev, fstab)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && is.dirs["/boot"] != want {
			t.Errorf("%q: %+v, %v; want %q (%d partitions)", fstab, is, err, want, len(table.Partitions()))
		}
	}
}

// TestForeignLayout: a system of somebody else whose files were put onto a layout is set
// up as such, keeps what it mounts of memory and of other machines, and its update-grub
// leaves the menu as it is.
func TestForeignLayout(t *testing.T) {
	t.Parallel()
	root, dir, _, self := tree(t)
	for name, text := range map[string]string{
		grubFile:              "# by the builder\n" + loadercfg.Foreign + "source /boot/grub/ironrail.cfg\nmenuentry x {\n  linux /vmlinuz root=LABEL=ironrail-root ro $ironrail_args\n}\n",
		fstabFile:             "LABEL=cloudimg-rootfs / ext4 discard 0 1\nLABEL=BOOT /boot ext4 defaults 0 2\n/dev/disk/cloud/part1 /mnt auto nofail 0 2\ntmpfs /tmp tmpfs size=1G\nfiler:/home /home nfs defaults 0 0\n",
		"etc/cloud/cloud.cfg": "", "etc/netplan/50-cloud-init.yaml": "network: {}\n", "etc/network/interfaces": "auto eth0\niface eth0 inet dhcp\n", "boot/initrd.img-6.1": "initrd",
	} {
		if err := rootfs.WriteText(root, name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"00_header": "echo 'insmod all_video'", "10_linux": "echo menuentry", "README": "text"} {
		if err := rootfs.WriteText(root, menuScripts+"/"+name, "#!/bin/sh\n"+text+"\n", map[bool]fs.FileMode{true: 0o644, false: 0o755}[name == "README"]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	l := mirror()
	for range 2 {
		if err := writeLayout(root, l); err != nil {
			t.Fatal(err)
		}
		if _, err := s.write(root, self, true); err != nil || !isForeign(root) {
			t.Fatalf("%v, foreign: %v", err, isForeign(root))
		}
		if err := s.foreign(root, target{layout: &l}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := fs.ReadFile(root.FS(), name)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got, want := read(fstabFile), fstab(l)+"tmpfs /tmp tmpfs size=1G\nfiler:/home /home nfs defaults 0 0\n"; got != want {
		t.Errorf("fstab is\n%s\nwant\n%s", got, want)
	}
	for name, there := range map[string]bool{"etc/cloud/cloud-init.disabled": true, "etc/netplan/50-cloud-init.yaml": false, defaultsFile: false} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := read("etc/network/interfaces"); strings.Contains(text, "eth0") {
		t.Errorf("interfaces: %s", text)
	}
}

// TestPeerKeepMenu: grub-mkconfig, which update-grub runs, leaves the menu as it is but for
// its comments, as often as it runs.
func TestPeerKeepMenu(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-mkconfig", "unshare", "mount")
	if os.Geteuid() != 0 {
		t.Skip("needs root: folders are mounted")
	}
	root, dir, _, _ := tree(t)
	const menu = loadercfg.Foreign + "set timeout=0\nmenuentry \"Debian\" {\n  linux /vmlinuz root=UUID=u-root ro $ironrail_args\n}\n"
	for name, text := range map[string]string{grubFile: "# by the builder\n" + menu, menuScripts + "/10_linux": "#!/bin/sh\necho menuentry\n", "probe": "#!/bin/sh\necho xfs\n"} {
		if err := rootfs.WriteText(root, name, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := keepMenu(root); err != nil {
			t.Fatal(err)
		}
		const script = `mount --bind "$1/etc/grub.d" /etc/grub.d && mount --bind "$1/boot" /boot && mount --bind "$1/probe" "$(command -v grub-probe)" && grub-mkconfig -o /boot/grub/grub.cfg`
		if out, err := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := fs.ReadFile(root.FS(), grubFile)
		if err != nil {
			t.Fatal(err)
		}
		kept := ""
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") && line != "\n" {
				kept += line
			}
		}
		if kept != menu || len(text) > len(menu)+600 || !isForeign(root) {
			t.Errorf("the menu is\n%s", text)
		}
	}
}
