// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// The partitions of images for clouds.
const (
	UbuntuDisk = "ubuntu" // of 24.04: p14 for BIOS (empty), p15 the EFI system partition, p16 /boot, p1 the root, last on the disk; ext4
	RockyDisk  = "rocky"  // of 9: p1 PReP, p2 for BIOS (both empty), p3 the EFI system partition, p4 /boot, p5 the root; XFS
)

// cloudScript makes the image of a whole disk with programs of others alone, in the
// partitions of a vendor. cloud-init is
// in it, and wants to set names, addresses and keys; so are mdadm and mkfs.xfs, which disk
// layouts need; shim and GRUB are those that Debian
// signs; update-grub makes the menu, whose root is then named by its label, as the
// makers of Ubuntu's images do. Everything that it mounts goes with its namespace. $1 is
// the folder to work in, $2 the release, $3 the file to write, $4 whose partitions.
const cloudScript = `set -eu
cd "$1"
case $4 in # offsets and sizes in MiB
ubuntu)
	kind=ext4 esp=5 espsize=106 boot=111 bootsize=913 root=1025 size=3300
	table='-n 14:2048:+4M -t 14:ef02 -n 15:10240:+106M -t 15:ef00 -n 16:227328:+913M -t 16:ea00 -n 1:2099200:0 -t 1:8300' ;;
rocky)
	kind=xfs esp=6 espsize=100 boot=106 bootsize=1000 root=1106 size=3381
	table='-n 1:2048:+4M -t 1:4100 -n 2:10240:+1M -t 2:ef02 -n 3:12288:+100M -t 3:ef00 -n 4:217088:+1000M -t 4:8300 -n 5:2265088:0 -t 5:8300' ;;
esac
rootsize=2270
mmdebstrap --quiet --mode=root --variant=important --include=linux-image-amd64,initramfs-tools,grub-efi-amd64,grub-efi-amd64-signed,shim-signed,openssh-server,cloud-init,netplan.io,ifupdown,chrony,ca-certificates,zstd,mdadm,xfsprogs --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*' "$2" root
mkdir -p root/etc/default/grub.d root/boot/efi
printf 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0,9600n8 quiet"\nGRUB_TIMEOUT=0\nGRUB_RECORDFAIL_TIMEOUT=0\n' >root/etc/default/grub.d/50-cloudimg-settings.cfg
echo 'PasswordAuthentication no' >root/etc/ssh/sshd_config.d/60-cloudimg-settings.conf
printf 'network:\n  version: 2\n  ethernets:\n    all:\n      match: {name: "e*"}\n      dhcp4: true\n' >root/etc/netplan/90-default.yaml
chmod 600 root/etc/netplan/90-default.yaml
printf 'auto lo\niface lo inet loopback\nallow-hotplug ens3\niface ens3 inet dhcp\n' >root/etc/network/interfaces
echo builder >root/etc/hostname
truncate -s ${size}M disk
sgdisk $table disk >/dev/null
# part NAME TYPE LABEL OFFSET SIZE mounts a new file system of the disk at NAME
part() {
	truncate -s "$5M" part
	case $2 in
	ext4) mke2fs -q -F -t ext4 -L "$3" part ;;
	xfs) mkfs.xfs -q -L "${3%img-rootfs}" part ;;
	esac
	dd if=part of=disk bs=1M seek="$4" conv=notrunc,sparse status=none
	rm part
	mkdir -p "$1"
	mount -o "loop,offset=$(($4 * 1048576)),sizelimit=$(($5 * 1048576))" disk "$1"
}
part at "$kind" cloudimg-rootfs "$root" "$rootsize"
part at/boot "$kind" BOOT "$boot" "$bootsize"
truncate -s "${espsize}M" esp
mkfs.vfat -F 32 -n UEFI esp >/dev/null
cp -a root/. at/
rm -f at/etc/machine-id
: >at/etc/machine-id
cp -r at/usr/lib/grub/x86_64-efi at/boot/grub/
mount -t tmpfs -o mode=755 dev at/dev
for d in null zero urandom; do cp -a /dev/$d at/dev/; done
mkdir -p at/dev/disk/by-uuid
rootdev=$(findmnt -no SOURCE at)
bootdev=$(findmnt -no SOURCE at/boot)
rootuuid=$(blkid -o value -s UUID $rootdev)
bootuuid=$(blkid -o value -s UUID $bootdev)
cp -a $rootdev at/dev/image1
cp -a $bootdev at/dev/image16
ln -s ../../image1 at/dev/disk/by-uuid/$rootuuid
ln -s ../../image16 at/dev/disk/by-uuid/$bootuuid
case $4 in
ubuntu) printf 'LABEL=cloudimg-rootfs\t/\t ext4\tdiscard,commit=30,errors=remount-ro\t0 1\nLABEL=BOOT\t/boot\text4\tdefaults\t0 2\nLABEL=UEFI\t/boot/efi\tvfat\tumask=0077\t0 1\n' ;;
rocky) printf 'UUID=%s\t/\txfs\tdefaults\t0\t0\nUUID=%s\t/boot\txfs\tdefaults\t0\t0\nUUID=%s\t/boot/efi\tvfat\tdefaults,uid=0,gid=0,umask=077,shortname=winnt\t0\t2\n' "$rootuuid" "$bootuuid" "$(blkid -o value -s UUID esp)" ;;
esac >at/etc/fstab
mount -t proc proc at/proc
mount -t sysfs -o ro sys at/sys
grubfs=$kind
if [ "$kind" = ext4 ]; then grubfs=ext2; fi
# GRUB takes a loop device for the file behind it, which is not in the root
cat >at/tmp/grub-probe <<X
#!/bin/sh
case "\$*" in
*target=device*/boot*) echo /dev/image16 ;;
*target=device*) echo /dev/image1 ;;
*target=fs_uuid*) case "\$*" in */dev/image16*|*/boot*) echo $bootuuid ;; *) echo $rootuuid ;; esac ;;
*target=fs*) echo $grubfs ;;
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
if [ "$4" = ubuntu ]; then sed -i "s/root=UUID=$rootuuid/root=LABEL=cloudimg-rootfs/" at/boot/grub/grub.cfg; fi
umount at/dev at/proc at/sys
mkdir -p EFI/BOOT EFI/debian
cp at/usr/lib/shim/shimx64.efi.signed EFI/BOOT/BOOTX64.EFI
cp at/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed EFI/BOOT/grubx64.efi
printf "search.fs_uuid %s root\nset prefix=(\$root)'/grub'\nconfigfile \$prefix/grub.cfg\n" "$bootuuid" >EFI/debian/grub.cfg
mcopy -s -i esp EFI ::/
dd if=esp of=disk bs=1M seek=$esp conv=notrunc status=none
umount at/boot
umount at
qemu-img convert -c -O qcow2 disk "$3.new"
mv "$3.new" "$3"
rm -rf root disk EFI at esp
`

// CloudImage makes an image of a release of Debian as vendors publish theirs, in the
// partitions of one of them, with programs that are not ours, and returns its path and its
// checksum. It is made once for all tests and kept beside the lab.
func (l *Lab) CloudImage(release, partitions string) (path, checksum string) {
	l.t.Helper()
	path = l.madeOnce("cloud", release, ".qcow2", cloudScript, partitions, "unshare", "--mount")
	sum := sha256.New()
	if err := hashInto(sum, path); err != nil {
		l.t.Fatal(err)
	}
	return path, "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// madeOnce is what a script made of a release, with programs that are not ours: it is kept
// beside the lab for all tests, and made anew when the script is another. The script gets a
// folder to work in, the release, the path of what it makes, and a variant; before is what
// it is run by.
func (l *Lab) madeOnce(kind, release, suffix, script, variant string, before ...string) (path string) {
	l.t.Helper()
	dir := filepath.Join(l.source(), ".lab", kind)
	of := sha256.Sum256([]byte(script + variant))
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
	argv := append(before, "sh", "-c", script, "sh", work, release, path, variant)
	if res := l.run(applyLimit, argv[0], argv[1:]...); res.Code != 0 {
		l.t.Fatalf("%s of %s: %s", kind, release, res)
	}
	return path
}
