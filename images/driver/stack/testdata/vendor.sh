#!/bin/sh
# Makes a repository of a vendor with packages that are called like NVIDIA's for RHEL 9, and hold
# nothing but a file each, with rpmbuild, createrepo_c and gpg: signed by a key of its own, index and
# packages. The module that the package for DKMS "builds" is one of the kernel's own.
#
# usage: vendor.sh WORK DIR KERNEL MODULES
#	WORK     an empty folder to work in
#	DIR      the folder to make: the repository, and the public key as key.asc
#	KERNEL   version and release of kernel-devel, as VERSION-RELEASE
#	MODULES  name of the folder with the kernel's modules, below /lib/modules
set -eu
work=$1 made=$2 kernel=$3 modules=$4
cd "$work"
mkdir -m 700 home
mkdir specs result
export GNUPGHOME="$work/home"
gpg --batch --quiet --passphrase '' --quick-gen-key vendor rsa3072 sign 0

# spec NAME EPOCH VERSION RELEASE ARCH REQUIRES
spec() {
	file=specs/$1-$3-$4.spec
	printf 'Name: %s\nEpoch: %s\nVersion: %s\nRelease: %s\nSummary: stands for %s\nLicense: various\nAutoReqProv: no\nBuildArch: %s\n' "$1" "$2" "$3" "$4" "$1" "$5" >"$file"
	[ -z "$6" ] || printf 'Requires: %s\n' "$6" >>"$file"
	printf '%%description\nStands for %s.\n' "$1" >>"$file"
	printf '%%install\nmkdir -p %%{buildroot}/usr/share/vendor\necho %s >%%{buildroot}/usr/share/vendor/%s\n' "$3" "$1" >>"$file"
	printf '%%files\n/usr/share/vendor/%s\n' "$1" >>"$file"
}
for v in 580.126.16 580.173.02 590.44.01; do
	same="= 3:$v"
	spec nvidia-driver-cuda 3 $v 1.el9 x86_64 "nvidia-driver-cuda-libs $same, nvidia-persistenced $same, nvidia-kmod $same"
	spec nvidia-driver-cuda-libs 3 $v 1.el9 x86_64 "libnvidia-ml $same"
	spec libnvidia-ml 3 $v 1.el9 x86_64 ""
	spec nvidia-persistenced 3 $v 1.el9 x86_64 ""
	spec kmod-nvidia-open-dkms 3 $v 1.el9 noarch "dkms >= 3.1.8"
	sed -i "s,^AutoReqProv,Provides: nvidia-kmod $same\nAutoReqProv," specs/kmod-nvidia-open-dkms-$v-1.el9.spec
	cat >>specs/kmod-nvidia-open-dkms-$v-1.el9.spec <<-SPEC
		%post
		mkdir -p /lib/modules/$modules/extra
		cp "\$(find /lib/modules/$modules/kernel -name 'dummy.ko*' | head -n 1)" /lib/modules/$modules/extra/nvidia.ko
		depmod $modules
	SPEC
done
# A module that the vendor built for the kernel, whose name has the versions of both.
built=kmod-nvidia-open-580.126.16-${kernel%.el*}
spec "$built" 3 580.126.16 1.el9 x86_64 ""
sed -i "s,^AutoReqProv,Provides: nvidia-kmod = 3:580.126.16\nAutoReqProv," "specs/$built-580.126.16-1.el9.spec"
printf '%%%%post\nmkdir -p /lib/modules/%s/extra\ncp "$(find /lib/modules/%s/kernel -name "dummy.ko*" | head -n 1)" /lib/modules/%s/extra/nvidia.ko\ndepmod %s\n' "$modules" "$modules" "$modules" "$modules" >>"specs/$built-580.126.16-1.el9.spec"
spec nvidia-container-toolkit 0 1.17.8 1 x86_64 "" # of another version, whatever the driver's is
spec datacenter-gpu-manager-4-cuda13 1 4.4.1 1 x86_64 ""
spec dkms 0 3.1.8 1.el9 noarch ""
spec kernel-devel 0 "${kernel%-*}" "${kernel##*-}" x86_64 ""
spec kernel-devel 0 "${kernel%-*}.1" "${kernel##*-}" x86_64 ""
for s in specs/*.spec; do
	rpmbuild -bb --quiet --target x86_64 --define "_topdir $work/top" --define "_rpmdir $work/rpms" --define '_binary_payload w3.gzdio' --define '__os_install_post %{nil}' "$s" 2>/dev/null
done
cp rpms/*/*.rpm result/
rpm --define "__gpg $(command -v gpg)" --define '_gpg_name vendor' --define "_gpg_path $work/home" --addsign result/*.rpm >/dev/null
createrepo_c --quiet result
gpg --batch --quiet --armor --detach-sign result/repodata/repomd.xml
gpg --armor --export >result/key.asc
gpgconf --kill all
mv result "$made"
