#!/bin/sh
# Makes repositories of RPM packages that look like those of Rocky Linux, of Debian's own files and
# with Debian's own programs (mmdebstrap, rpmbuild, createrepo_c, gpg): a system of Debian is
# divided into packages with the names that those of RHEL have, signed with a key of its own.
#
# usage: repository.sh WORK RELEASE DIR "NUMBER KERNEL [PACKAGE]..."
#	WORK     an empty folder to work in
#	RELEASE  of Debian, such as bookworm
#	DIR      the folder to make: repositories BaseOS and AppStream, and the public key as key.asc
#	NUMBER   of the release that it says to be, such as 9.6
#	KERNEL   Debian's package of a kernel
#	PACKAGE  Debian's, beside those that the system has
set -eu
work=$1 release=$2 made=$3
set -- $4
number=$1 kernel=$2
shift 2
cd "$work"
tree=$work/tree

include="bash,ca-certificates,chrony,dbus,dracut-core,dnf,e2fsprogs,grub-common,grub-efi-amd64-bin,grub-pc-bin,grub2-common,iproute2,kmod,network-manager,openssh-server,policycoreutils,rpm,selinux-policy-default,sudo,systemd,systemd-sysv,tzdata,udev,zstd,$kernel"
for p in "$@"; do include=$include,$p; done
env INITRD=No mmdebstrap --quiet --mode=root --variant=minbase --format=directory --include="$include" \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
	"$release" "$tree"

# What no system of RHEL has.
cp -a "$tree/var/lib/dpkg/info" info
cd "$tree"
rm -rf var/lib/dpkg var/lib/apt var/cache/* etc/apt etc/dpkg etc/initramfs-tools etc/kernel/*inst.d etc/default/grub.d etc/machine-id etc/fstab etc/hostname etc/resolv.conf \
	boot/initrd* vmlinuz* initrd* var/log/* run/* tmp/* dev/* usr/share/python-apt root/.rpmdb root/.rpmmacros
find . -name '*systemd-networkd*' -delete
rm -f usr/lib/kernel/install.d/85-initrd.install usr/lib/kernel/install.d/90-loaderentry.install etc/yum.repos.d/*

# Files in the places of RHEL.
kernelrelease=$(ls usr/lib/modules)
mv "boot/vmlinuz-$kernelrelease" "usr/lib/modules/$kernelrelease/vmlinuz"
rm -f boot/System.map-* boot/config-*
mkdir -p boot/grub2 boot/loader/entries boot/efi/EFI/rocky boot/efi/EFI/BOOT etc/sysconfig etc/pki/rpm-gpg usr/libexec/selinux usr/share/crypto-policies/policies etc/crypto-policies etc/dnf usr/lib/dracut/dracut.conf.d
for p in bin/grub-editenv bin/grub-mkimage bin/grub-mkrelpath sbin/grub-mkconfig sbin/grub-probe; do
	cp -a "usr/$p" "usr/$(dirname $p)/grub2-${p#*grub-}"
done
rm -rf boot/grub
cp usr/lib/systemd/selinux-autorelabel usr/libexec/selinux/
mv etc/selinux/default etc/selinux/targeted
[ ! -d var/lib/selinux/default ] || mv var/lib/selinux/default var/lib/selinux/targeted
printf 'SELINUX=enforcing\nSELINUXTYPE=targeted\n' >etc/selinux/config
cp usr/lib/systemd/system/ssh.service usr/lib/systemd/system/sshd.service
cp usr/lib/systemd/system/chrony.service usr/lib/systemd/system/chronyd.service
rm -rf etc/chrony etc/systemd/system/*.wants/ssh.service etc/systemd/system/*.wants/chrony.service etc/systemd/system/sshd.service etc/systemd/system/chronyd.service
echo 'DAEMON_OPTS="-F 1 -f /etc/chrony.conf"' >etc/default/chrony
printf 'pool pool.example iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n' >etc/chrony.conf
echo 'hostonly="no"' >usr/lib/dracut/dracut.conf.d/02-generic-image.conf
printf '[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\nskip_if_unavailable=False\n' >etc/dnf/dnf.conf
mkdir -p etc/yum.repos.d
printf '[baseos]\nname=BaseOS\nmirrorlist=https://mirrors.example/mirrorlist?repo=BaseOS\nenabled=1\ngpgcheck=1\n[devel]\nname=devel\nmirrorlist=https://mirrors.example/mirrorlist?repo=devel\ngpgcheck=1\n' >etc/yum.repos.d/rocky.repo
rm -f etc/os-release
cat >usr/lib/os-release <<-OS
	NAME="Rocky Linux"
	VERSION="$number (packages of Debian $release)"
	ID="rocky"
	ID_LIKE="rhel centos fedora"
	VERSION_ID="$number"
	PLATFORM_ID="platform:el${number%%.*}"
	PRETTY_NAME="Rocky Linux $number (packages of Debian $release)"
OS
ln -s ../usr/lib/os-release etc/os-release
echo "Rocky Linux release $number" >etc/rocky-release

# rpm's database is where that of RHEL is.
case ${number%%.*} in 9) db=/var/lib/rpm ;; *) db=/usr/lib/sysimage/rpm ;; esac
printf '%%_dbpath %s\n%%_db_backend sqlite\n' $db >etc/rpm/macros.rocky 2>/dev/null || { mkdir -p etc/rpm && printf '%%_dbpath %s\n%%_db_backend sqlite\n' $db >etc/rpm/macros.rocky; }
rm -rf var/lib/rpm

# Stands for update-crypto-policies: the policy has to be there.
echo '# a policy' >usr/share/crypto-policies/policies/DEFAULT.pol
echo '# a policy' >usr/share/crypto-policies/policies/FUTURE.pol
echo DEFAULT >etc/crypto-policies/config
cat >usr/bin/update-crypto-policies <<-'SH'
	#!/bin/sh
	while [ "$1" != --set ]; do shift; done
	[ -e "/usr/share/crypto-policies/policies/${2%%:*}.pol" ] || { echo "Unknown policy \`$2\`" >&2; exit 1; }
	echo "$2" >/etc/crypto-policies/config
SH

# Stand for the plugins of grub2-common and dracut.
cat >usr/lib/kernel/install.d/20-grub.install <<-'SH'
	#!/bin/sh
	set -e
	[ -n "$KERNEL_INSTALL_MACHINE_ID" ] || exit 0
	id=$KERNEL_INSTALL_MACHINE_ID-$2
	case $1 in
	add)
		cp "$4" "/boot/vmlinuz-$2"
		. /etc/os-release
		{
			echo "title $NAME ($2) $VERSION"
			echo "version $2"
			echo "linux $(grub2-mkrelpath "/boot/vmlinuz-$2")"
			echo "initrd $(grub2-mkrelpath /boot)/initramfs-$2.img"
			echo "options $(cat /etc/kernel/cmdline)"
			echo 'grub_users $grub_users'
			echo 'grub_arg --unrestricted'
			echo "grub_class $ID"
		} >"/boot/loader/entries/$id.conf"
		[ -e /boot/grub2/grubenv ] || grub2-editenv /boot/grub2/grubenv create
		if . /etc/sysconfig/kernel && [ "$UPDATEDEFAULT" = yes ]; then
			grub2-editenv /boot/grub2/grubenv set "saved_entry=$id"
		fi
		;;
	remove) rm -f "/boot/loader/entries/$id.conf" "/boot/vmlinuz-$2" ;;
	esac
SH
cat >usr/lib/kernel/install.d/50-dracut.install <<-'SH'
	#!/bin/sh
	case $1 in
	add) exec dracut --force --kver "$2" "/boot/initramfs-$2.img" ;;
	remove) rm -f "/boot/initramfs-$2.img" ;;
	esac
SH
chmod 755 usr/bin/update-crypto-policies usr/lib/kernel/install.d/*.install usr/libexec/selinux/selinux-autorelabel

# Stands for GRUB with blscfg, which Debian's does not have. For UEFI the command is a function of
# custom.cfg, which reads an entry as a script. Its lines for kernel and initrd are commands, and find
# no file: root is no disk until the options come. For BIOS a module of that name does nothing of it.
cp usr/lib/grub/i386-pc/setpci.mod usr/lib/grub/i386-pc/blscfg.mod
echo 'blscfg: ' >>usr/lib/grub/i386-pc/moddep.lst
cat >boot/grub2/custom.cfg <<-'GRUB'
	function title { true; }
	function version { true; }
	function grub_users { true; }
	function grub_arg { true; }
	function grub_class { true; }
	function options {
	  set root=$bls_root
	  linux /boot/vmlinuz-$bls_release $*
	  initrd /boot/initramfs-$bls_release.img
	}
	function blscfg {
	  for entry in /boot/loader/entries/*.conf; do
	    regexp --set=1:bls_id '/([^/]*)\.conf$' "$entry"
	    regexp --set=1:bls_release '/[0-9a-f]*-([^/]*)\.conf$' "$entry"
	    menuentry "$bls_id" --id "$bls_id" "$entry" "$bls_release" {
	      load_video
	      bls_release="$3"
	      bls_root=$root
	      set root=none
	      source ($bls_root)$2
	    }
	  done
	}
GRUB
rm -rf usr/lib/grub/x86_64-efi

# Signed loaders of Debian 13, where shim-x64 and grub2-efi-x64 have them: RHEL's one GRUB starts from
# the network and from the disk, as Debian's for the network does.
cd "$work"
mkdir -p loaders/lists/partial loaders/cache/archives/partial
: >loaders/status
echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main' >loaders/sources
apt="-q -o Dir::Etc::sourcelist=$work/loaders/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$work/loaders/lists -o Dir::State::status=$work/loaders/status -o Dir::Cache=$work/loaders/cache -o APT::Sandbox::User=root"
apt-get $apt update
(cd loaders && apt-get $apt download shim-signed shim-helpers-amd64-signed grub-efi-amd64-signed && for p in *.deb; do dpkg-deb -x "$p" all; done)
for f in rocky/shimx64.efi BOOT/BOOTX64.EFI; do cp loaders/all/usr/lib/shim/shimx64.efi.signed "tree/boot/efi/EFI/$f"; done
cp loaders/all/usr/lib/shim/mmx64.efi.signed tree/boot/efi/EFI/rocky/mmx64.efi
cp loaders/all/usr/lib/shim/fbx64.efi.signed tree/boot/efi/EFI/BOOT/fbx64.efi
cp loaders/all/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed tree/boot/efi/EFI/rocky/grubx64.efi

# Which package each file is of: rules first, then Debian's lists, and the rest is filesystem.
cat >names <<-'NAMES'
	bash bash
	ca-certificates ca-certificates
	chrony chrony
	coreutils coreutils
	dnf dnf
	dnf-data dnf
	dnf-plugins-core python3-dnf-plugin-versionlock
	dracut-core dracut
	e2fsprogs e2fsprogs
	grub-common grub2-tools
	grub2-common grub2-tools
	grub-pc-bin grub2-pc
	iproute2 iproute
	kmod kmod
	libc6 glibc
	network-manager NetworkManager
	openssh-client openssh-server
	openssh-server openssh-server
	openssh-sftp-server openssh-server
	policycoreutils policycoreutils
	rpm rpm
	rpm-common rpm
	selinux-policy-default selinux-policy-targeted
	sudo sudo
	systemd systemd
	systemd-sysv systemd
	tzdata tzdata
	udev systemd-udev
	util-linux util-linux
NAMES
{
	while read -r deb name; do
		for list in info/$deb.list info/$deb:*.list; do
			[ ! -e "$list" ] || sed -E -e 's,^/(bin|sbin|lib|lib32|lib64|libx32)/,/usr/\1/,' -e "s,^,$name ," "$list"
		done
	done <names
	cat info/linux-image-[0-9]*.list | sed -E -e 's,^/lib/,/usr/lib/,' -e 's,^,kernel-core ,'
} >owners
cat >rules <<-'RULES'
	^/boot/grub2 grub2-tools
	^/boot/loader grub2-tools
	^/boot/efi/EFI/[^/]*/(shim|mm|fb|BOOTX) shim-x64
	^/boot/efi/EFI/BOOT shim-x64
	^/boot/efi/EFI/rocky/grub grub2-efi-x64
	^/usr/lib/modules/ kernel-core
	^/usr/lib/grub/i386-pc grub2-pc
	^/usr/(bin|sbin)/grub2- grub2-tools
	^/usr/lib/kernel/install.d/20-grub grub2-tools
	^/usr/lib/kernel/install.d/50-dracut dracut
	^/usr/lib/dracut/dracut.conf.d/02-generic dracut-config-generic
	^/usr/libexec/selinux policycoreutils
	^/(etc|var/lib)/selinux/(targeted|config) selinux-policy-targeted
	^/usr/bin/update-crypto crypto-policies-scripts
	^/(etc|usr/share)/crypto-policies crypto-policies-scripts
	^/etc/dnf/dnf.conf dnf
	^/etc/rpm/macros.rocky rpm
	^/etc/(os-release|rocky-release|yum.repos.d) rocky-release
	^/usr/lib/os-release rocky-release
	^/etc/(chrony.conf|default/chrony) chrony
	^/usr/lib/systemd/system/chronyd chrony
	^/usr/lib/systemd/system/sshd.service openssh-server
RULES
chroot tree find / -xdev -printf '%y %m %u %g %p\n' >files
awk '
	FILENAME == "rules" { rule[++rules] = $1; of[rules] = $2; next }
	FILENAME == "owners" { name = $1; sub(/^[^ ]* /, ""); owner[$0] = name; next }
	{
		type = $1; mode = $2; user = $3; group = $4
		sub(/^[^ ]* [^ ]* [^ ]* [^ ]* /, "")
		if ($0 == "/") next
		name = type == "d" || !($0 in owner) ? "filesystem" : owner[$0]
		for (n = 1; n <= rules; n++) if ($0 ~ rule[n]) { name = of[n]; break }
		path = $0
		gsub(/[][\\*{}%]/, "?", path)
		print (type == "d" ? "%dir " : "") (type == "l" ? "" : "%attr(" mode ", " user ", " group ") ") "\"" path "\"" >"list." name
	}' rules owners files
for name in linux-firmware glibc-minimal-langpack kernel; do : >"list.$name"; done

{
	printf 'Name: filesystem\nVersion: %s\nRelease: 1.el%s\nSummary: of Debian\nLicense: various\nAutoReqProv: no\n%%description\nOf Debian.\n' "$number" "${number%%.*}"
	for list in list.*; do
		name=${list#list.}
		[ "$name" != filesystem ] || continue
		requires="bash, coreutils, filesystem, glibc"
		provides=
		files=" -f $work/$list"
		[ -s "$list" ] || files=
		case $name in
		bash) requires=filesystem provides="Provides: /bin/sh" ;;
		coreutils | glibc) requires=filesystem ;;
		dnf) requires="$requires, rpm" ;;
		kernel) requires=kernel-core ;;
		kernel-core) requires="$requires, dracut, grub2-tools, systemd-udev, kmod" ;;
		rocky-release) provides="Provides: system-release = $number-1.el${number%%.*}" ;;
		esac
		printf '%%package -n %s\nSummary: of Debian\nRequires: %s\nAutoReqProv: no\n%s\n%%description -n %s\nOf Debian.\n%%files -n %s%s\n' "$name" "$requires" "$provides" "$name" "$name" "$files"
	done
	printf '%%files -f %s/list.filesystem\n' "$work"
	printf '%%posttrans -n kernel-core\nkernel-install add %s /lib/modules/%s/vmlinuz\n' "$kernelrelease" "$kernelrelease"
} >standin.spec
rpmbuild -bb --quiet --target x86_64 --buildroot "$tree" --define "_topdir $work/rpm" --define "_rpmdir $work/rpms" --define '__spec_install_pre %{nil}' --define '__spec_clean_body %{nil}' \
	--define '__os_install_post %{nil}' --define 'debug_package %{nil}' --define '_build_id_links none' --define '_binary_payload w3.zstdio' --define '__brp_compress /bin/true' \
	--define '_missing_build_ids_terminate_build 0' --define '_unpackaged_files_terminate_build 0' standin.spec

mkdir home result
chmod 700 home
export GNUPGHOME="$work/home"
gpg --batch --quiet --passphrase '' --quick-gen-key packages rsa3072 sign 0
mkdir -p result/BaseOS result/AppStream
cp rpms/x86_64/*.rpm result/BaseOS/
mv result/BaseOS/dracut-config-generic-*.rpm result/BaseOS/crypto-policies-scripts-*.rpm result/AppStream/
rpm --define "__gpg $(command -v gpg)" --define '_gpg_name packages' --define "_gpg_path $work/home" --addsign result/*/*.rpm >/dev/null
createrepo_c --quiet result/BaseOS
createrepo_c --quiet result/AppStream
gpg --armor --export >result/key.asc
gpgconf --kill all
mv result "$made"
