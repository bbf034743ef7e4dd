#!/bin/sh
# Makes a repository of RPM packages with a compiler and Open MPI, of Debian's own files and with
# Debian's own programs (mmdebstrap, rpmbuild, createrepo_c, gpg): one package has all files, and
# others with RHEL's names need it. Open MPI is in the places of RHEL too.
#
# usage: toolchain.sh WORK DIR MIRROR
#	WORK    an empty folder to work in
#	DIR     the folder to make: the repository, its key as key.asc, an empty database as rpmdb.sqlite
#	MIRROR  of Debian 12
set -eu
work=$1 made=$2 mirror=$3
cd "$work"
tree=$work/tree
mmdebstrap --quiet --mode=root --variant=minbase --format=directory --include=g++,make,libopenmpi-dev,openmpi-bin \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$tree" "$mirror"
lib=usr/lib/x86_64-linux-gnu
mkdir -p "$tree/usr/lib64/openmpi/bin" "$tree/usr/include"
ln -s "/$lib/openmpi/lib" "$tree/usr/lib64/openmpi/lib"
for p in mpirun orted; do ln -s "/usr/bin/$p" "$tree/usr/lib64/openmpi/bin/$p"; done
ln -s "/$lib/openmpi/include" "$tree/usr/include/openmpi-x86_64"
rm -rf "$tree"/var/lib/apt "$tree"/var/cache/* "$tree"/dev/* "$tree"/proc/* "$tree"/sys/* "$tree"/run/* "$tree"/tmp/* "$tree/var/lib/dpkg"
{
	printf 'Name: everything\nVersion: 1\nRelease: 1.el9\nSummary: of Debian\nLicense: various\nAutoReqProv: no\nProvides: /bin/sh\n%%description\nOf Debian.\n%%files\n'
	for f in $(ls "$tree"); do printf '/%s\n' "$f"; done
	for p in bash coreutils findutils gcc-c++ grep make openmpi-devel openmpi sed; do
		printf '%%package -n %s\nSummary: of Debian\nRequires: everything\nAutoReqProv: no\n%%description -n %s\nOf Debian.\n%%files -n %s\n' "$p" "$p" "$p"
	done
} >all.spec
rpmbuild -bb --quiet --target x86_64 --buildroot "$tree" --define "_topdir $work/rpm" --define "_rpmdir $work/rpms" --define '__spec_install_pre %{nil}' --define '__spec_clean_body %{nil}' \
	--define '__os_install_post %{nil}' --define 'debug_package %{nil}' --define '_build_id_links none' --define '_binary_payload w1.gzdio' --define '_missing_build_ids_terminate_build 0' all.spec
mkdir home result
chmod 700 home
export GNUPGHOME="$work/home"
gpg --batch --quiet --passphrase '' --quick-gen-key packages rsa3072 sign 0
mv rpms/x86_64/*.rpm result/
rpm --define "__gpg $(command -v gpg)" --define '_gpg_name packages' --define "_gpg_path $work/home" --addsign result/*.rpm >/dev/null
createrepo_c --quiet result
gpg --armor --export >result/key.asc
gpgconf --kill all
rpm --dbpath "$work/db" --define '_db_backend sqlite' --initdb
cp db/rpmdb.sqlite result/
mv result "$made"
