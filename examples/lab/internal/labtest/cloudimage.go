// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// cloudScript makes the image of a whole disk with programs of others alone, in the
// partitions of Ubuntu 24.04's images for clouds: p14 for BIOS (empty), p15 the EFI
// system partition, p16 /boot, p1 the root file system, last on the disk. cloud-init is
// in it, and wants to set names, addresses and keys; so are mdadm and mkfs.xfs, which disk
// layouts need; shim and GRUB are those that Debian
// signs; update-grub makes the menu, whose root is then named by its label, as the
// makers of Ubuntu's images do. Everything that it mounts goes with its namespace. $1 is
// the folder to work in, $2 the release, $3 the file to write.
const cloudScript = `set -eu
cd "$1"
mmdebstrap --quiet --mode=root --variant=important --include=linux-image-amd64,initramfs-tools,grub-efi-amd64,grub-efi-amd64-signed,shim-signed,openssh-server,cloud-init,netplan.io,ifupdown,chrony,ca-certificates,zstd,mdadm,xfsprogs --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*' "$2" root
mkdir -p root/etc/default/grub.d root/boot/efi
printf 'LABEL=cloudimg-rootfs\t/\t ext4\tdiscard,commit=30,errors=remount-ro\t0 1\nLABEL=BOOT\t/boot\text4\tdefaults\t0 2\nLABEL=UEFI\t/boot/efi\tvfat\tumask=0077\t0 1\n' >root/etc/fstab
printf 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0,9600n8 quiet"\nGRUB_TIMEOUT=0\nGRUB_RECORDFAIL_TIMEOUT=0\n' >root/etc/default/grub.d/50-cloudimg-settings.cfg
echo 'PasswordAuthentication no' >root/etc/ssh/sshd_config.d/60-cloudimg-settings.conf
printf 'network:\n  version: 2\n  ethernets:\n    all:\n      match: {name: "e*"}\n      dhcp4: true\n' >root/etc/netplan/90-default.yaml
chmod 600 root/etc/netplan/90-default.yaml
printf 'auto lo\niface lo inet loopback\nallow-hotplug ens3\niface ens3 inet dhcp\n' >root/etc/network/interfaces
echo builder >root/etc/hostname
truncate -s 3300M disk
sgdisk -n 14:2048:+4M -t 14:ef02 -n 15:10240:+106M -t 15:ef00 -n 16:227328:+913M -t 16:ea00 -n 1:2099200:0 -t 1:8300 disk >/dev/null
mke2fs -q -t ext4 -L cloudimg-rootfs -E offset=1074790400 disk 2270m
mke2fs -q -F -t ext4 -L BOOT -E offset=116391936 disk 913m
truncate -s 106M esp
mkfs.vfat -F 32 -n UEFI esp >/dev/null
mkdir at
mount -o loop,offset=1074790400,sizelimit=2380267520 disk at
mkdir at/boot
mount -o loop,offset=116391936,sizelimit=957349888 disk at/boot
cp -a root/. at/
cp -r at/usr/lib/grub/x86_64-efi at/boot/grub/
mount -t tmpfs -o mode=755 dev at/dev
for d in null zero urandom; do cp -a /dev/$d at/dev/; done
mkdir -p at/dev/disk/by-uuid
root=$(findmnt -no SOURCE at)
boot=$(findmnt -no SOURCE at/boot)
rootuuid=$(blkid -o value -s UUID $root)
bootuuid=$(blkid -o value -s UUID $boot)
cp -a $root at/dev/image1
cp -a $boot at/dev/image16
ln -s ../../image1 at/dev/disk/by-uuid/$rootuuid
ln -s ../../image16 at/dev/disk/by-uuid/$bootuuid
mount -t proc proc at/proc
mount -t sysfs -o ro sys at/sys
# GRUB takes a loop device for the file behind it, which is not in the root
cat >at/tmp/grub-probe <<X
#!/bin/sh
case "\$*" in
*target=device*/boot*) echo /dev/image16 ;;
*target=device*) echo /dev/image1 ;;
*target=fs_uuid*) case "\$*" in */dev/image16*|*/boot*) echo $bootuuid ;; *) echo $rootuuid ;; esac ;;
*target=fs*) echo ext2 ;;
*target=partmap*) echo gpt ;;
*target=partuuid*) exit 1 ;;
esac
X
chmod 755 at/tmp/grub-probe
mount --bind at/tmp/grub-probe at/usr/sbin/grub-probe
chroot at update-grub
umount at/usr/sbin/grub-probe
rm at/tmp/grub-probe
grep -q "root=UUID=$rootuuid" at/boot/grub/grub.cfg
sed -i "s/root=UUID=$rootuuid/root=LABEL=cloudimg-rootfs/" at/boot/grub/grub.cfg
umount at/dev at/proc at/sys
mkdir -p EFI/BOOT EFI/debian
cp at/usr/lib/shim/shimx64.efi.signed EFI/BOOT/BOOTX64.EFI
cp at/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed EFI/BOOT/grubx64.efi
printf "search.fs_uuid %s root\nset prefix=(\$root)'/grub'\nconfigfile \$prefix/grub.cfg\n" "$bootuuid" >EFI/debian/grub.cfg
mcopy -s -i esp EFI ::/
dd if=esp of=disk bs=1M seek=5 conv=notrunc status=none
umount at/boot
umount at
qemu-img convert -c -O qcow2 disk "$3.new"
mv "$3.new" "$3"
rm -rf root disk EFI at esp
`

// CloudImage makes an image of a release of Debian as vendors publish theirs, with
// programs that are not ours, and returns its path and its checksum. It is made once for
// all tests and kept beside the lab.
func (l *Lab) CloudImage(release string) (path, checksum string) {
	l.t.Helper()
	path = l.madeOnce("cloud", release, ".qcow2", cloudScript, "unshare", "--mount")
	sum := sha256.New()
	if err := hashInto(sum, path); err != nil {
		l.t.Fatal(err)
	}
	return path, "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// madeOnce is what a script made of a release, with programs that are not ours: it is kept
// beside the lab for all tests, and made anew when the script is another. The script gets a
// folder to work in, the release, and the path of what it makes; before is what it is run
// by.
func (l *Lab) madeOnce(kind, release, suffix, script string, before ...string) (path string) {
	l.t.Helper()
	dir := filepath.Join(l.source(), ".lab", kind)
	of := sha256.Sum256([]byte(script))
	path = filepath.Join(dir, release+"-"+hex.EncodeToString(of[:4])+suffix)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	work := filepath.Join(dir, "work")
	if err := os.RemoveAll(work); err != nil {
		l.t.Fatal(err)
	}
	if err := os.MkdirAll(work, 0o755); err != nil { //nolint:gosec // the root of an image may lie below
		l.t.Fatal(err)
	}
	argv := append(before, "sh", "-c", script, "sh", work, release, path)
	if res := l.run(applyLimit, argv[0], argv[1:]...); res.Code != 0 {
		l.t.Fatalf("%s of %s: %s", kind, release, res)
	}
	return path
}
