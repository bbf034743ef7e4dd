// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/inventory"
)

// mirrored is what a layout with a RAID 1 and XFS needs.
var mirrored = []string{inventory.StorageRAID, inventory.StorageTree, inventory.StorageXFS}

// onMirror has a recipe make the form for such a layout.
func onMirror(r *Recipe) { r.Storage = mirrored }

// initrdFiles are in the initrd of a system that finds a root on an array of XFS.
var initrdFiles = []string{"usr/sbin/mdadm", "usr/lib/modules/" + release + "/kernel/drivers/md/raid1.ko", "usr/lib/modules/" + release + "/kernel/fs/xfs/xfs.ko.zst"}

// makeInitrd makes an initrd with programs of others: one archive of microcode as it is,
// and one of files, packed.
func makeInitrd(t *testing.T, pack string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{"main/init"}, files...) {
		if name != "main/init" {
			name = "main/" + name
		}
		write(t, dir, map[string]string{name: "x"})
	}
	write(t, dir, map[string]string{"early/kernel/x86/microcode/AuthenticAMD.bin": strings.Repeat("m", 4097)})
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `cd "$1/early" && find . | cpio --quiet -o -H newc && cd ../main && find . | cpio --quiet -o -H newc | `+pack, "sh", dir).Output()
	if err != nil {
		t.Fatalf("%s: %v", pack, err)
	}
	return string(out)
}

// withLayouts adds to a system what a layout with RAID 1 and XFS needs: the programs of
// this very one.
func withLayouts(t *testing.T, files map[string]string) {
	t.Helper()
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(path, "/")] = string(b)
	}
	for _, program := range []string{"mdadm", "mkfs.xfs", "mke2fs", "mkswap"} {
		path := "/usr/sbin/" + program
		add(path)
		out, err := exec.CommandContext(t.Context(), "ldd", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "/") {
				add(word)
			}
		}
	}
	files["lib/modules/"+release+"/modules.alias"] = "alias pci:v00008086d000015B7sv*sd*bc*sc*i* e1000e\n"
	files["boot/initrd.img-"+release] = makeInitrd(t, "zstd -q -c", initrdFiles...)
	files["lib/modules/"+release+"/modules.dep"] += "kernel/drivers/md/raid1.ko:\nkernel/fs/xfs/xfs.ko:\n"
	files["lib/modules/"+release+"/kernel/drivers/md/raid1.ko"], files["lib/modules/"+release+"/kernel/fs/xfs/xfs.ko"] = "raid1", "xfs"
}

func needLayouts(t *testing.T) {
	t.Helper()
	needMakers(t)
	peertest.Need(t, "mdadm", "mkfs.xfs", "mke2fs", "mkswap", "cpio", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img", "/usr/lib/grub/x86_64-efi/kernel.img")
}

// plainOf is what a list of chunks and its blob hold.
func plainOf(t *testing.T, list, blob string) []byte {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out []byte
	for _, c := range m.Chunks {
		if c.Zero() {
			out = append(out, make([]byte, c.Plain)...)
		} else if out, err = z.DecodeAll(packed[c.Offset:c.Offset+c.Length], out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestPeerTree: the files of an image come onto a file system that mkfs.xfs made, /boot of
// another partition among them, with all that belongs to them and a menu for any root; the
// loaders come apart, and the disk stays as it is.
func TestPeerTree(t *testing.T) {
	needLayouts(t)
	const selinux, capability = "system_u:object_r:sshd_exec_t:s0\x00", "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	path := disk{boot: true, tree: func(files map[string]string) {
		withLayouts(t, files)
		files["etc/fstab"] = "LABEL=cloudimg-rootfs / ext4 rw 0 1\nLABEL=BOOT /boot ext4 defaults 0 2\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n"
		files["vmlinuz"] = "of an older kernel"
	}, settle: func(dir string) {
		sshd := filepath.Join(dir, "usr/sbin/sshd")
		for _, err := range []error{
			os.Chown(sshd, 7, 8), unix.Setxattr(sshd, "security.selinux", []byte(selinux), 0), unix.Setxattr(sshd, "security.capability", []byte(capability), 0),
			os.Link(sshd, filepath.Join(dir, "usr/sbin/sshd2")), os.MkdirAll(filepath.Join(dir, "dev"), 0o755), unix.Mknod(filepath.Join(dir, "dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}}.image(t)
	r := recipe(t, path)
	onMirror(&r)
	dir := t.TempDir()
	src, err := r.Build(t.Context(), dir, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(src.Disk); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another disk of %d bytes, %v", len(got), err)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("something is still mounted, %v", err)
	}
	hasTools(t, src.Files[images.InitrdFile])
	loaders := plainOf(t, src.Files[manifest.LoadersFile], src.Files[manifest.LoadersBlob])
	config, err := loadercfg.ByUUID("11111111-2222-4333-8444-555555555555")
	if err != nil {
		t.Fatal(err)
	}
	if err := loadercfg.Replace(loaders, config); err != nil {
		t.Error(err)
	}
	fs, root := filepath.Join(t.TempDir(), "fs"), t.TempDir()
	command(t, "truncate", "-s", "310M", fs)
	command(t, "mkfs.xfs", "-q", fs)
	command(t, "mount", "-o", "loop", fs, root)
	defer command(t, "umount", root)
	files, err := roottree.Unpack(t.Context(), bytes.NewReader(plainOf(t, src.Files[manifest.TreeFile], src.Files[manifest.TreeBlob])), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Verify(t.Context(), root, func(int64) {}); err != nil {
		t.Error(err)
	}
	looksAt(t, root, selinux, capability)
}

// hasTools looks whether the install ramdisk has the programs that layouts are made with.
func hasTools(t *testing.T, initrd string) {
	t.Helper()
	b, err := os.ReadFile(initrd)
	if err != nil {
		t.Fatal(err)
	}
	names, err := initrdNames(bytes.NewReader(b[bytes.LastIndex(b, magicZstd):])) // behind the modules
	for _, program := range []string{"mdadm", "mkfs.xfs", "mke2fs", "mkswap"} {
		if err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "/bin/"+program) }) {
			t.Errorf("the ramdisk has no %s, %v", program, err)
		}
	}
}

// looksAt compares a root that was unpacked with the one of the image.
func looksAt(t *testing.T, root, selinux, capability string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(root, name) }
	for name, want := range map[string]string{
		"boot/vmlinuz-" + release: "kernel 9", "etc/kernel-img.conf": "do_symlinks = yes\nlink_in_boot = no\n", "vmlinuz": "kernel 9", "usr/sbin/update-grub": "#!/bin/sh\n",
		"etc/fstab": "LABEL=cloudimg-rootfs / ext4 rw 0 1\nLABEL=BOOT /boot ext4 defaults 0 2\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n",
	} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if menu, err := os.ReadFile(at("boot/grub/grub.cfg")); err != nil || !strings.Contains(string(menu), loadercfg.Foreign) || !strings.Contains(string(menu), "linux /vmlinuz root=LABEL=ironrail-root ro") {
		t.Errorf("menu %q, %v", menu, err)
	}
	if link, err := os.Readlink(at("initrd.img")); link != "boot/initrd.img-"+release || err != nil {
		t.Errorf("initrd.img leads to %q, %v", link, err)
	}
	for name, want := range map[string]string{"security.selinux": selinux, "security.capability": capability} {
		b := make([]byte, 256)
		if n, err := unix.Getxattr(at("usr/sbin/sshd"), name, b); err != nil || string(b[:n]) != want {
			t.Errorf("%s is %q, %v", name, b[:max(n, 0)], err)
		}
	}
	info, err := os.Stat(at("usr/sbin/sshd2"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Nlink != 2 || st.Uid != 7 || st.Gid != 8 {
		t.Errorf("sshd has %d names, and belongs to %d:%d", st.Nlink, st.Uid, st.Gid)
	}
	if info, err := os.Stat(at("dev/null")); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("dev/null: %v", err)
	}
	for _, name := range []string{"lost+found", "boot/lost+found", "boot/.keep"} {
		if _, err := os.Lstat(at(name)); err == nil {
			t.Errorf("%s came too", name)
		}
	}
}

// TestPeerTreeRefused: an image that could not be put onto a layout is refused when it is
// built, and taken where no layout needs what it lacks.
func TestPeerTreeRefused(t *testing.T) {
	needLayouts(t)
	spoilt := func(change func(map[string]string)) string {
		return disk{tree: func(files map[string]string) {
			withLayouts(t, files)
			change(files)
		}}.image(t)
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   string
	}{
		"no mdadm":       {func(f map[string]string) { delete(f, "usr/sbin/mdadm"); delete(f, "usr/sbin/mkfs.xfs") }, "the image lacks mdadm (/usr/sbin/mdadm), mkfs.xfs (/usr/sbin/mkfs.xfs), which disk layouts of its nodes need"},
		"initrd":         {func(f map[string]string) { f["boot/initrd.img-"+release] = makeInitrd(t, "gzip", initrdFiles[1:]...) }, "/boot/initrd.img-" + release + " has no mdadm in it"},
		"xfs in initrd":  {func(f map[string]string) { f["boot/initrd.img-"+release] = makeInitrd(t, "xz", initrdFiles[:2]...) }, "has no module xfs in it"},
		"damaged initrd": {func(f map[string]string) { f["boot/initrd.img-"+release] = f["boot/initrd.img-"+release][:4000] }, "/boot/initrd.img-" + release + ": it is cut off"},
		"kernel":         {func(f map[string]string) { f["lib/modules/"+release+"/modules.dep"] = "kernel/fs/xfs/xfs.ko:\n" }, "the kernel has no module raid1 or raid10"},
		"another part":   {func(f map[string]string) { f["etc/fstab"] += "PARTLABEL=esp /srv vfat defaults 0 2\n" }, "/etc/fstab line 3, /srv: what is on partition 15 would not come onto a disk layout"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recipe(t, spoilt(c.change))
			if _, err := r.Build(t.Context(), t.TempDir(), func(string) {}); err != nil {
				t.Errorf("as it is: %v", err)
			}
			onMirror(&r)
			if _, err := r.Build(t.Context(), t.TempDir(), func(string) {}); err == nil || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
				t.Errorf("got %v; want one that says %q and what to do", err, c.want)
			}
		})
	}
}

// TestPeerInitrdNames: initrds of every packing that is read.
func TestPeerInitrdNames(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "cpio", "zstd", "xz")
	for _, pack := range []string{"cat", "gzip", "xz", "zstd -q -c"} {
		names, err := initrdNames(strings.NewReader(makeInitrd(t, pack, initrdFiles...)))
		if err != nil || !slices.Contains(names, "usr/sbin/mdadm") || !slices.Contains(names, "kernel/x86/microcode/AuthenticAMD.bin") || !slices.Contains(names, initrdFiles[2]) {
			t.Errorf("%s: %q, %v", pack, names, err)
		}
	}
	if _, err := initrdNames(strings.NewReader(makeInitrd(t, "bzip2 || echo BZh"))); err != errPacking {
		t.Errorf("bzip2: %v", err)
	}
}

// TestLacks: what no initrd says is asked of the kernel alone.
func TestLacks(t *testing.T) {
	t.Parallel()
	const builtin = "kernel/fs/xfs/xfs.ko\n"
	drivers, err := modalias.Parse(strings.NewReader("alias pci:v00008086d*sv*sd*bc02sc*i*\nmodule raid1\nmodule xfs\n"))
	if err != nil {
		t.Fatal(err)
	}
	none, err := modalias.Parse(strings.NewReader("alias pci:v00008086d*sv*sd*bc02sc*i*\nmodule raid1\n"))
	if err != nil {
		t.Fatal(err)
	}
	grouped, err := modalias.Parse(strings.NewReader("alias pci:v00008086d*sv*sd*bc02sc*i*\nmodule dm_mod\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		drivers *modalias.List
		storage []string
		initrd  []string
		want    string
	}{
		"not read":   {drivers, mirrored, nil, ""},
		"built in":   {drivers, mirrored, initrdFiles[:2], ""},
		"swap alone": {none, []string{inventory.StorageTree}, []string{"init"}, ""},
		"no module":  {none, mirrored, nil, "no module xfs"},
		"no lvm":     {grouped, []string{inventory.StorageLVM}, initrdFiles, "no lvm in it: it could not activate the volume group"},
		"no dm":      {grouped, []string{inventory.StorageLVM}, []string{"sbin/lvm"}, "no module dm-mod in it"},
		"lvm":        {grouped, []string{inventory.StorageLVM}, []string{"sbin/lvm", "x/dm-mod.ko.xz"}, ""},
		"no dm-mod":  {none, []string{inventory.StorageLVM}, nil, "the kernel has no module dm-mod"},
		"no raid":    {drivers, mirrored, initrdFiles[:1], "no module raid1 or raid10 in it"},
	} {
		if err := lacks(c.storage, "initrd", c.drivers, builtin, c.initrd); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// FuzzInitrd: what the image brings never ends the build.
func FuzzInitrd(f *testing.F) {
	f.Add([]byte("070701" + strings.Repeat("0", 104)))
	f.Add([]byte("\x00\x00070702" + strings.Repeat("F", 104)))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1})
	f.Add(magicGzip)
	f.Fuzz(func(t *testing.T, b []byte) {
		names, err := initrdNames(io.LimitReader(bytes.NewReader(b), 1<<20))
		if err == nil && len(names) > len(b)*1200 {
			t.Errorf("%d names of %d bytes", len(names), len(b))
		}
	})
}
