// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/internal/peertest"
)

// program is the beginning of an ELF program.
func program(machine elf.Machine) string {
	head := make([]byte, 64)
	copy(head, elf.ELFMAG)
	binary.LittleEndian.PutUint16(head[18:], uint16(machine))
	return string(head)
}

const release = "6.1.0-9-amd64"

// tree is as little of a system as is installed.
func tree() map[string]string {
	return map[string]string{
		"etc/os-release":                                     "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		"etc/fstab":                                          "LABEL=cloudimg-rootfs / ext4 rw 0 1\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n",
		"etc/apt/sources.list.d/own.sources":                 "Types: deb\nURIs: http://archive.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
		"etc/ssh/sshd_config":                                "Include /etc/ssh/sshd_config.d/*.conf\nPermitRootLogin no\n",
		"etc/ssh/sshd_config.d/60-c.conf":                    "PermitRootLogin no\n",
		"boot/grub/grub.cfg":                                 "menuentry 'Debian' {\n\tlinux\t/boot/vmlinuz root=LABEL=cloudimg-rootfs ro quiet\n}\n",
		"usr/share/keyrings/debian-archive-keyring.gpg":      "keys",
		"usr/lib/systemd/system/systemd-networkd.service":    "",
		"usr/sbin/sshd":                                      program(elf.EM_X86_64),
		"usr/sbin/update-grub":                               "#!/bin/sh\n",
		"var/lib/dpkg/status":                                "Package: base-files\n",
		"boot/vmlinuz-" + release:                            "kernel 9",
		"boot/initrd.img-" + release:                         "initrd",
		"boot/vmlinuz-6.1.0-10-amd64":                        "a kernel without modules is not taken",
		"lib/modules/" + release + "/modules.dep":            "kernel/fs/ext4/ext4.ko:\n",
		"lib/modules/" + release + "/modules.alias":          "",
		"lib/modules/" + release + "/modules.softdep":        "",
		"lib/modules/" + release + "/modules.builtin":        "",
		"lib/modules/" + release + "/kernel/fs/ext4/ext4.ko": "ext4",
	}
}

const entryRelease = "5.14.0-427.13.1.el9_4.x86_64"

// entriesTree is as little of a system as is installed whose kernels are in entries, in the
// places of Rocky 9.
func entriesTree() map[string]string {
	return map[string]string{
		"etc/os-release":                       "NAME=\"Rocky Linux\"\nID=\"rocky\"\nVERSION_ID=\"9.4\"\nPRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n",
		"etc/fstab":                            "LABEL=cloudimg-rootfs / xfs defaults 0 0\n",
		"etc/ssh/sshd_config":                  "Include /etc/ssh/sshd_config.d/*.conf\n",
		"etc/ssh/sshd_config.d/50-redhat.conf": "UsePAM yes\n",
		"etc/selinux/config":                   "SELINUX=enforcing\nSELINUXTYPE=targeted\n",
		"etc/dracut.conf":                      "# see dracut.conf.d\n",
		"etc/default/grub":                     "GRUB_CMDLINE_LINUX=\"console=ttyS0,115200n8\"\nGRUB_ENABLE_BLSCFG=true\n",
		"boot/grub2/grub.cfg":                  "insmod blscfg\nblscfg\n",
		"boot/loader/entries/a-" + entryRelease + ".conf": "title Rocky Linux\nlinux /vmlinuz-" + entryRelease + "\ninitrd /initramfs-" + entryRelease + ".img $tuned_initrd\noptions root=UUID=0a ro console=ttyS0,115200n8 $tuned_params\n",
		"boot/vmlinuz-" + entryRelease:                    "kernel 14",
		"boot/initramfs-" + entryRelease + ".img":         "initrd",
		"usr/sbin/sshd":                                         program(elf.EM_X86_64),
		"usr/sbin/grub2-mkconfig":                               "#!/bin/sh\n",
		"usr/lib/kernel/install.d/20-grub.install":              "#!/bin/bash\n",
		"usr/lib/systemd/system/NetworkManager.service":         "",
		"usr/lib/dracut/dracut.conf.d/01-dist.conf":             "hostonly=\"yes\"\n",
		"usr/lib/dracut/dracut.conf.d/02-generic-image.conf":    "hostonly=\"no\"\n",
		"usr/libexec/selinux/selinux-autorelabel":               "#!/bin/bash\n",
		"var/lib/rpm/rpmdb.sqlite":                              "SQLite format 3",
		"lib/modules/" + entryRelease + "/modules.dep":          "kernel/fs/xfs/xfs.ko:\n",
		"lib/modules/" + entryRelease + "/modules.alias":        "",
		"lib/modules/" + entryRelease + "/modules.softdep":      "",
		"lib/modules/" + entryRelease + "/modules.builtin":      "",
		"lib/modules/" + entryRelease + "/kernel/fs/xfs/xfs.ko": "xfs",
	}
}

// entriesDisk is an image of it that differs by a file; an empty text takes the file away.
func entriesDisk(name, text string) disk {
	return disk{tree: func(files map[string]string) {
		clear(files)
		maps.Copy(files, entriesTree())
		if files[name] = text; text == "" {
			delete(files, name)
		}
	}}
}

// ofRebuild is a block of an image of a rebuild of RHEL.
func ofRebuild(r *Recipe) { r.OS, r.Release = "rhel", "9" }

// disk says how an image differs from one that is taken.
type disk struct {
	tree    func(map[string]string) // of the root
	layout  []string                // arguments of sgdisk; default: p14, p15 (EFI), p1 last
	second  bool                    // another partition, from 20 MiB on, holds a system too
	noEFI   bool                    // nothing is in p15
	badRoot bool                    // the root file system is overwritten
	boot    bool                    // /boot is p16, from 20 MiB on
	settle  func(dir string)        // what else is done to the files of the root
}

const mib = 1 << 20

func command(t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "MTOOLS_SKIP_CHECK=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// write makes files below dir.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// image makes the image of a whole disk of 72 MiB with programs that are not ours: from
// 1 MiB on p14 for BIOS, from 4 MiB on p15, from 40 MiB on the root file system.
func (d disk) image(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	command(t, "truncate", "-s", "72M", path)
	layout := d.layout
	if d.boot {
		layout = []string{"-n", "14:2048:8191", "-t", "14:ef02", "-n", "15:8192:40959", "-t", "15:ef00", "-n", "16:40960:81919", "-t", "16:ea00", "-n", "1:81920:145407", "-t", "1:8303"}
	} else if layout == nil {
		layout = []string{"-n", "14:2048:8191", "-t", "14:ef02", "-n", "15:8192:81919", "-t", "15:ef00", "-c", "15:esp", "-n", "1:81920:145407", "-t", "1:8303"}
	}
	command(t, append([]string{"sgdisk"}, append(slices.Clone(layout), path)...)...)
	files := tree()
	if d.tree != nil {
		d.tree(files)
	}
	if d.boot {
		boot := map[string]string{}
		for name, text := range files {
			if below, ok := strings.CutPrefix(name, "boot/"); ok {
				boot[below] = text
				delete(files, name)
			}
		}
		files["boot/.keep"] = ""
		command(t, "mke2fs", "-q", "-F", "-t", "ext4", "-L", "BOOT", "-E", "offset=20971520", "-d", write(t, t.TempDir(), boot), path, "19m")
	}
	root := write(t, t.TempDir(), files)
	if d.settle != nil {
		d.settle(root)
	}
	command(t, "mke2fs", "-q", "-F", "-t", "ext4", "-L", "cloudimg-rootfs", "-E", "offset=41943040", "-d", root, path, "31m")
	switch {
	case d.second:
		command(t, "mke2fs", "-q", "-F", "-t", "ext4", "-E", "offset=20971520", "-d", root, path, "19m")
		fallthrough
	case !d.noEFI:
		command(t, "mkfs.vfat", "--offset=8192", path, "16384")
		loader := write(t, t.TempDir(), map[string]string{"EFI/BOOT/BOOTX64.EFI": "MZ"})
		command(t, "mcopy", "-s", "-i", path+"@@4194304", filepath.Join(loader, "EFI"), "::/")
	}
	if d.badRoot {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 64<<10), 40*mib+2048); err != nil { // group descriptors
			t.Fatal(err)
		}
	}
	return path
}

// recipe is one of a file, with the checksum that it has.
func recipe(t *testing.T, path string) Recipe {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return Recipe{Block: "os", Source: filepath.Base(path), Site: filepath.Dir(path), Checksum: "sha256:" + hex.EncodeToString(sum[:]), OS: "debian", Release: "12"}
}

func needMakers(t *testing.T) {
	t.Helper()
	peertest.Need(t, "sgdisk", "mke2fs", "mkfs.vfat", "mcopy", "mdir", "mount", "qemu-img", "xz", "zstd")
	if os.Geteuid() != 0 {
		t.Skip("needs root: file systems are mounted")
	}
	probe := filepath.Join(t.TempDir(), "probe")
	command(t, "truncate", "-s", "4M", probe)
	command(t, "mke2fs", "-q", "-t", "ext4", probe)
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "ro,loop", probe, t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("needs loop devices: %s", out)
	}
	command(t, "umount", "-d", mountPoint(t, probe))
}

// mountPoint is where the loop device of a file is mounted.
func mountPoint(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "-n", "-O", "NAME", "-j", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestPeerForms: an image is the same disk in whatever form it comes.
func TestPeerForms(t *testing.T) {
	needMakers(t)
	plain := disk{}.image(t)
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	command(t, "qemu-img", "convert", "-O", "qcow2", plain, at("plain.qcow2"))
	command(t, "qemu-img", "convert", "-c", "-O", "qcow2", plain, at("deflate.qcow2"))
	command(t, "qemu-img", "convert", "-c", "-O", "qcow2", "-o", "compression_type=zstd,cluster_size=2M", plain, at("zstd.qcow2"))
	command(t, "qemu-img", "convert", "-O", "qcow2", "-o", "compat=0.10,cluster_size=512", plain, at("old.qcow2"))
	command(t, "sh", "-c", `gzip -c "$1" >"$2/disk.gz"; xz -T1 -1 -c "$1" >"$2/disk.xz"; zstd -q -c "$1" >"$2/disk.zst"; gzip -c "$2/deflate.qcow2" >"$2/qcow2.gz"`, "sh", plain, dir)
	for _, path := range []string{plain, at("plain.qcow2"), at("deflate.qcow2"), at("zstd.qcow2"), at("old.qcow2"), at("disk.gz"), at("disk.xz"), at("disk.zst"), at("qcow2.gz")} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			src, err := recipe(t, path).Build(t.Context(), t.TempDir(), func(line string) { t.Log(line) })
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(src.Disk); err != nil || !bytes.Equal(got, want) {
				t.Errorf("another disk of %d bytes, %v", len(got), err)
			}
			if drivers, err := os.ReadFile(src.Files[images.DriversFile]); err != nil || !strings.Contains(string(drivers), "module ext4") {
				t.Errorf("drivers %q, %v", drivers, err)
			}
			for name, text := range map[string]string{
				images.KernelFile: "kernel 9", images.StatusFile: "Package: base-files\n", images.KeyringFile: "keys",
				images.SourcesFile: "deb http://archive.example/debian bookworm main\ndeb http://archive.example/debian bookworm-updates main\n",
			} {
				if got, err := os.ReadFile(src.Files[name]); err != nil || string(got) != text {
					t.Errorf("%s is %q, %v; want %q", name, got, err, text)
				}
			}
		})
	}
}

// TestPeerLayouts: images with /boot apart, in the order of their vendors' partitions,
// are taken with the kernel from there: Ubuntu 24.04's on ext4, Rocky 9's on xfs. What is
// in them is ours.
func TestPeerLayouts(t *testing.T) {
	needMakers(t)
	peertest.Need(t, "mkfs.xfs")
	for _, c := range []struct {
		name, fstab string
		kind        string
		table       []string
		boot, root  int // MiB
		tree        func() map[string]string
		of          func(*Recipe)
		kernel      string
		packages    string
	}{
		{"ubuntu-24.04", "LABEL=cloudimg-rootfs / ext4 discard,commit=30,errors=remount-ro 0 1\nLABEL=BOOT /boot ext4 defaults 0 2\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n", "ext4",
			[]string{"-n", "14:2048:+4M", "-t", "14:ef02", "-n", "15:10240:+40M", "-t", "15:ef00", "-n", "16:92160:+310M", "-t", "16:ea00", "-n", "1:727040:+310M", "-t", "1:8300"}, 45, 355, tree, func(*Recipe) {}, "kernel 9",
			"{[] /var/lib/dpkg/status names no package}"},
		{"rocky-9", "LABEL=cloudimg-rootfs / xfs defaults 0 0\nLABEL=BOOT /boot xfs defaults 0 0\nLABEL=UEFI /boot/efi vfat defaults 0 2\n", "xfs",
			[]string{"-n", "1:2048:+4M", "-t", "1:4100", "-n", "2:10240:+1M", "-t", "2:ef02", "-n", "3:12288:+39M", "-t", "3:ef00", "-n", "4:92160:+310M", "-t", "4:8300", "-n", "5:727040:+310M", "-t", "5:8300"}, 45, 355, entriesTree, ofRebuild, "kernel 14",
			"{[{rpm alpha 2:1.0-3 noarch alpha-1.0-3.src.rpm   GPL-2.0-or-later AND MIT}] }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "disk")
			command(t, "truncate", "-s", "667M", path)
			command(t, append(append([]string{"sgdisk"}, c.table...), path)...)
			files, boot := c.tree(), map[string]string{}
			if c.kind == "xfs" {
				files["var/lib/rpm/rpmdb.sqlite"] = rpmDatabase(t)
			}
			files["etc/fstab"] = c.fstab
			for name, text := range files {
				if below, ok := strings.CutPrefix(name, "boot/"); ok {
					boot[below] = text
					delete(files, name)
				}
			}
			files["boot/.keep"] = ""
			for label, at := range map[string]int{"BOOT": c.boot, "cloudimg-rootfs": c.root} {
				content := map[string]map[string]string{"BOOT": boot, "cloudimg-rootfs": files}[label]
				fill(t, path, c.kind, label, at, content)
			}
			command(t, "mkfs.vfat", "-F", "16", "-n", "UEFI", "--offset="+map[string]string{"ext4": "10240", "xfs": "12288"}[c.kind], path, "39936")
			loader := write(t, t.TempDir(), map[string]string{"EFI/BOOT/BOOTX64.EFI": "MZ"})
			command(t, "mcopy", "-s", "-i", fmt.Sprintf("%s@@%d", path, map[string]int{"ext4": 5 * mib, "xfs": 6 * mib}[c.kind]), filepath.Join(loader, "EFI"), "::/")
			dir, r := t.TempDir(), recipe(t, path)
			c.of(&r)
			src, err := r.Build(t.Context(), dir, func(line string) { t.Log(line) })
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(src.Files[images.KernelFile]); err != nil || string(got) != c.kernel {
				t.Errorf("kernel %q, %v", got, err)
			}
			if _, lists := src.Files[images.StatusFile]; lists != (r.OS == "debian") || src.System.Distribution != r.OS {
				t.Errorf("files %v of %+v", src.Files, src.System)
			}
			if got := fmt.Sprint(src.Installed); got != c.packages {
				t.Errorf("packages %s, want %s", got, c.packages)
			}
			if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || bytes.Contains(mounts, []byte(dir)) {
				t.Errorf("something is still mounted, %v", err)
			}
		})
	}
}

// rpmDatabase is the database of a system with one package, as rpm makes it.
func rpmDatabase(t *testing.T) string {
	t.Helper()
	peertest.Need(t, "rpm", "rpmbuild")
	dir := write(t, t.TempDir(), map[string]string{"alpha.spec": "Name: alpha\nEpoch: 2\nVersion: 1.0\nRelease: 3\nSummary: s\nLicense: GPLv2+ and MIT\nBuildArch: noarch\n%description\nx\n%files\n"})
	command(t, "rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir, filepath.Join(dir, "alpha.spec"))
	root := []string{"rpm", "--root", filepath.Join(dir, "root"), "--dbpath", "/var/lib/rpm"}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, append(root, "--initdb")...)
	command(t, append(root, "-i", "--nodeps", filepath.Join(dir, "RPMS/noarch/alpha-1.0-3.noarch.rpm"))...)
	text, err := os.ReadFile(filepath.Join(dir, "root/var/lib/rpm/rpmdb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fill makes a file system of 310 MiB with files in a disk, from mib on.
func fill(t *testing.T, disk, kind, label string, at int, files map[string]string) {
	t.Helper()
	fs, dir := filepath.Join(t.TempDir(), "fs"), t.TempDir()
	command(t, "truncate", "-s", "310M", fs)
	command(t, "mkfs."+kind, "-q", "-L", label[:min(len(label), map[string]int{"xfs": 12, "ext4": 16}[kind])], fs)
	command(t, "mount", "-o", "loop", fs, dir)
	write(t, dir, files)
	command(t, "umount", dir)
	command(t, "dd", "if="+fs, "of="+disk, "bs=1M", fmt.Sprintf("seek=%d", at), "conv=notrunc,sparse", "status=none")
}

// cut makes an image that is cut off after size bytes.
func cut(t *testing.T, format string, size int64) string {
	path := filepath.Join(t.TempDir(), "cut."+format)
	command(t, "qemu-img", "convert", "-O", format, disk{}.image(t), path)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

// without is a system without the files whose names begin so.
func without(prefix string) disk {
	return disk{tree: func(files map[string]string) {
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
	}}
}

// with is a system with another file.
func with(name, text string) disk {
	return disk{tree: func(files map[string]string) { files[name] = text }}
}

func made(d disk) func(*testing.T) string { return d.image }

// refusals are images that are not taken, by what is wrong with them.
var refusals = []struct {
	name  string
	image func(*testing.T) string
	spoil func(*Recipe)
	want  string
}{
	{"wrong digest", made(disk{}), func(r *Recipe) { r.Checksum = "sha256:" + strings.Repeat("0", 64) }, "the site's files say sha256:0000"},
	{"no file", made(disk{}), func(r *Recipe) { r.Source = "absent" }, `source "absent"`},
	{"qcow2 cut off", func(t *testing.T) string { return cut(t, "qcow2", 1<<20) }, nil, "it is cut off"},
	{"qcow2 header alone", func(t *testing.T) string { return cut(t, "qcow2", 100) }, nil, "it is cut off"},
	{"raw cut off", func(t *testing.T) string { return cut(t, "raw", 60*mib) }, nil, "partition"},
	{"backing file", func(t *testing.T) string {
		base := disk{}.image(t)
		path := filepath.Join(t.TempDir(), "top.qcow2")
		command(t, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, path)
		return path
	}, nil, "has a backing file"},
	{"xz cut off", func(t *testing.T) string {
		path := disk{}.image(t)
		command(t, "xz", "-T1", "-1", path)
		if err := os.Truncate(path+".xz", 5000); err != nil {
			t.Fatal(err)
		}
		return path + ".xz"
	}, nil, "cannot be unpacked beyond byte"},
	{"no disk", func(t *testing.T) string {
		return filepath.Join(write(t, t.TempDir(), map[string]string{"f": strings.Repeat("hello", 999)}), "f")
	}, nil, "cannot be read as a whole disk"},
	{"no kernel", made(without("boot/vmlinuz")), nil, "there is no kernel inside"},
	{"no modules", made(without("lib/modules")), nil, "there is no kernel inside"},
	{"no ssh server", made(without("usr/sbin/sshd")), nil, "lacks an SSH server"},
	{"architecture", made(with("usr/sbin/sshd", program(elf.EM_AARCH64))), nil, "/usr/sbin/sshd is for EM_AARCH64"},
	{"other release", made(disk{}), func(r *Recipe) { r.Release = "13" }, "the image is of Debian 12, and its block says Debian 13"},
	{"other distribution", made(with("etc/os-release", "ID=arch\nPRETTY_NAME=\"Arch Linux\"\n")), nil, `the image is of "Arch Linux"`},
	{"no system", made(without("etc/os-release")), nil, "holds a system"},
	{"boot that is not there", made(with("etc/fstab", "LABEL=BOOT /boot ext4 defaults 0 2\n")), nil, "/etc/fstab line 1, /boot: no partition is LABEL=BOOT"},
	{"boot by number", made(with("etc/fstab", "/dev/vda16 /boot ext4 defaults 0 2\n")), nil, "/etc/fstab line 1, /boot: /dev/vda16 names no file system"},
	{"boot on the ESP", made(with("etc/fstab", "PARTLABEL=esp /boot vfat defaults 0 2\n")), nil, "partition 15 is neither ext4 nor xfs"},
	{"var of its own", made(with("etc/fstab", "PARTLABEL=esp /var vfat defaults 0 2\n")), nil, "/etc/fstab line 1, /var is a file system of its own"},
	{"a disk that is waited for", made(with("etc/fstab", "tmpfs /tmp tmpfs\nUUID=ab /data ext4 nofail\nUUID=ab /srv ext4\n")), nil, "/etc/fstab line 3, /srv: no partition is UUID=ab"},
	{"another partition as ESP", made(with("etc/fstab", "LABEL=cloudimg-rootfs /boot/efi ext4\n")), nil, "which is no EFI system partition"},
	{"no initrd at boot", made(with("etc/default/grub.d/40-force-partuuid.cfg", "GRUB_FORCE_PARTUUID=0a-1b\n")), nil, "GRUB_FORCE_PARTUUID in /etc/default/grub.d/40-force-partuuid.cfg"},
	{"no menu", made(without("boot/grub")), nil, "GRUB has no menu"},
	{"menu without a kernel", made(with("boot/grub/grub.cfg", "set timeout=0\n")), nil, "/boot/grub/grub.cfg starts no kernel"},
	{"boot entries", made(disk{tree: func(files map[string]string) {
		files["boot/grub/grub.cfg"], files["boot/loader/entries/a.conf"] = "blscfg\n", "linux /vmlinuz\n"
	}}), nil, "the kernels are in /boot/loader/entries (1 of them)"},
	{"entries without os", made(entriesDisk("x", "x")), func(r *Recipe) { r.OS, r.Release = "", "" }, "the image is of RHEL 9, on which driver stacks are not installed, and its block does not say so"},
	{"another release of RHEL", made(entriesDisk("etc/os-release", "ID=almalinux\nVERSION_ID=8.10\nPRETTY_NAME=Alma\n")), ofRebuild, "images of Debian, Ubuntu, RHEL 9 are installed"},
	{"no NetworkManager", made(entriesDisk("usr/lib/systemd/system/NetworkManager.service", "")), ofRebuild, "the image lacks NetworkManager"},
	{"no initrd of dracut", made(entriesDisk("boot/initramfs-"+entryRelease+".img", "")), ofRebuild, "its initrd /initramfs-" + entryRelease + ".img is not there"},
	{"no entries", made(entriesDisk("boot/loader/entries/a-"+entryRelease+".conf", "")), ofRebuild, "there is no entry in /boot/loader/entries"},
	{"menu without entries", made(entriesDisk("boot/grub2/grub.cfg", "linux /vmlinuz root=x\n")), ofRebuild, "does not take in the entries"},
	{"entry without options", made(entriesDisk("boot/loader/entries/b.conf", "linux /vmlinuz-"+entryRelease+"\ninitrd /initramfs-"+entryRelease+".img\n")), ofRebuild, "/boot/loader/entries/b.conf: it has no options"},
	{"entry of a kernel that is gone", made(entriesDisk("boot/loader/entries/b.conf", "linux /boot/vmlinuz-4\n")), ofRebuild, "/boot/loader/entries/b.conf: its linux /boot/vmlinuz-4 is not there"},
	{"initrd of one machine by dracut", made(entriesDisk("usr/lib/dracut/dracut.conf.d/02-generic-image.conf", "")), ofRebuild, "hostonly in /usr/lib/dracut/dracut.conf.d/01-dist.conf"},
	{"the same in etc", made(entriesDisk("etc/dracut.conf.d/02-generic-image.conf", "hostonly=yes # mine\n")), ofRebuild, "hostonly in /etc/dracut.conf.d/02-generic-image.conf"},
	{"SELinux by hand", made(entriesDisk("etc/selinux/config", "# SELINUX=disabled\nSELINUX=permissive\nAUTORELABEL=0\n")), ofRebuild, "has AUTORELABEL=0"},
	{"SELinux without labels", made(entriesDisk("usr/libexec/selinux/selinux-autorelabel", "")), ofRebuild, "SELinux is enforcing"},
	{"initrd of one machine", made(with("etc/initramfs-tools/conf.d/x", "MODULES=dep\n")), nil, "MODULES=dep in /etc/initramfs-tools/conf.d/x"},
	{"root is kept out", made(with("etc/ssh/sshd_config", "PermitRootLogin no\nInclude /etc/ssh/sshd_config.d/*.conf\n")), nil, "/etc/ssh/sshd_config line 1, PermitRootLogin: root could not log in"},
	{"users of ssh", made(with("etc/ssh/sshd_config.d/90-site.conf", "# site\nAllowUsers=ops\n")), nil, "/etc/ssh/sshd_config.d/90-site.conf line 2, AllowUsers: root could not log in"},
	{"settings of ssh", made(with("etc/ssh/sshd_config", "UsePAM yes\n")), nil, "does not include etc/ssh/sshd_config.d"},
	{"two systems", made(disk{second: true, layout: []string{"-n", "15:8192:40959", "-t", "15:ef00", "-n", "2:40960:81919", "-t", "2:8303", "-n", "1:81920:145407", "-t", "1:8303"}}), nil, "partitions 1 and 2 both hold a system"},
	{"no ESP", made(disk{noEFI: true, layout: []string{"-n", "1:81920:145407", "-t", "1:8303"}}), nil, "0 EFI system partitions"},
	{"ESP without a loader", made(disk{noEFI: true}), nil, "has no /EFI/BOOT/BOOTX64.EFI"},
	{"root not last", made(disk{layout: []string{"-n", "15:8192:81919", "-t", "15:ef00", "-n", "1:81920:145407", "-t", "1:8303", "-n", "3:145408:147000", "-t", "3:8300"}}), nil, "partition 3 lies behind it"},
	{"damaged root", made(disk{badRoot: true}), nil, "cannot be mounted"},
	{"data where the marker goes", func(t *testing.T) string {
		path := disk{}.image(t)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("x"), mib-1); err != nil {
			t.Fatal(err)
		}
		return path
	}, nil, "where the install marker goes"},
}

// TestPeerRefused: an image that could not be installed is refused when it is built, with
// the block, the file, and the cause.
func TestPeerRefused(t *testing.T) {
	needMakers(t)
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			r := recipe(t, c.image(t))
			if c.spoil != nil {
				c.spoil(&r)
			}
			dir := t.TempDir()
			_, err := r.Build(t.Context(), dir, func(string) {})
			if err == nil {
				t.Fatal("was taken")
			}
			if begins := fmt.Sprintf("image os (%s): ", r.Source); !strings.HasPrefix(err.Error(), begins) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want one that begins %q and says %q", err, begins, c.want)
			}
			if mounted, err := os.ReadFile("/proc/self/mounts"); err != nil || bytes.Contains(mounted, []byte(dir)) {
				t.Errorf("something is still mounted below %s, %v", dir, err)
			}
		})
	}
}
