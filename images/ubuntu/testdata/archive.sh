#!/bin/sh
# Makes an archive that looks like Ubuntu's, of Debian's own packages and with Debian's own
# programs: os-release says that the system is Ubuntu, linux-image-generic leads to a kernel,
# and is newer in the updates, and the three suites are signed with a key of their own.
#
# usage: archive.sh WORK RELEASE ARCHIVE "SUITE:VERSION [PACKAGE]..."
#	WORK     an empty folder to work in
#	RELEASE  of Debian, such as bookworm
#	ARCHIVE  the folder to make, with the public key as key.asc
#	SUITE    codename and number of the release that it says to be, such as noble:24.04
set -eu
work=$1 release=$2 archive=$3
set -- $4
suite=${1%:*} number=${1#*:}
shift
cd "$work"

# Packages with all that they need, and all without which no system is made.
mkdir -p root/etc root/lists/partial root/cache/archives/partial pool
: >root/status
signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
printf "deb $signed http://deb.debian.org/debian $release main\ndeb $signed http://deb.debian.org/debian $release-updates main\ndeb $signed http://deb.debian.org/debian-security $release-security main\n" >root/sources
cat >apt.conf <<-CONF
	Dir::Etc "$work/root/etc";
	Dir::Etc::sourcelist "$work/root/sources";
	Dir::Etc::sourceparts "/dev/null";
	Dir::State::lists "$work/root/lists";
	Dir::State::status "$work/root/status";
	Dir::Cache "$work/root/cache";
	APT::Architecture "amd64";
	APT::Architectures "amd64";
	APT::Install-Recommends "false";
	APT::Sandbox::User "root";
	Acquire::Retries "3";
	Binary::apt-get::APT::Keep-Downloaded-Packages "true";
CONF
export APT_CONFIG="$work/apt.conf"
apt-get -q update
apt-get -q -y --download-only install linux-image-amd64 "?narrow(?codename(^$release$),?or(?essential,?priority(required)))" apt "$@"
mv root/cache/archives/*.deb pool/

# Signed loaders, where Ubuntu's packages have them: Debian 13's, whose GRUB for the network has HTTP.
echo "deb $signed http://deb.debian.org/debian trixie main" >root/sources
apt-get -q update
mkdir loaders
(cd loaders && apt-get -q download shim-signed shim-helpers-amd64-signed grub-efi-amd64-signed && for p in *.deb; do dpkg-deb -x "$p" all; done)
unset APT_CONFIG
pack() { # NAME [FROM TO]...
	name=$1
	shift
	mkdir -p "loaders/$name/DEBIAN"
	printf 'Package: %s\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@example>\nDescription: signed loaders\n' "$name" >"loaders/$name/DEBIAN/control"
	while [ $# -gt 0 ]; do
		install -D -m 644 "loaders/all/usr/lib/$1" "loaders/$name/usr/lib/$2"
		shift 2
	done
	dpkg-deb --root-owner-group -b "loaders/$name" "pool/${name}_1_amd64.deb" >/dev/null
}
pack shim-signed shim/shimx64.efi.signed shim/shimx64.efi.signed.latest shim/mmx64.efi.signed shim/mmx64.efi
grub=grub/x86_64-efi-signed
pack grub-efi-amd64-signed $grub/grubx64.efi.signed $grub/grubx64.efi.signed $grub/grubnetx64.efi.signed $grub/grubnetx64.efi.signed

# The system says to be Ubuntu.
dpkg-deb -R pool/base-files_*.deb base
rm pool/base-files_*.deb base/DEBIAN/md5sums
sed -i 's/^Version: .*/&ubuntulike1/' base/DEBIAN/control
cat >base/usr/lib/os-release <<-OS
	PRETTY_NAME="Ubuntu $number (packages of Debian $release)"
	NAME="Ubuntu"
	VERSION_ID="$number"
	VERSION_CODENAME=$suite
	ID=ubuntu
	ID_LIKE=debian
OS
dpkg-deb --root-owner-group -b base pool/ >/dev/null

# What leads to the newest kernel: version 2 is in the updates alone.
for version in 1 2; do
	mkdir -p "meta$version/DEBIAN"
	printf 'Package: linux-image-generic\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@example>\nDepends: linux-image-amd64\nDescription: the newest kernel\n' "$version" >"meta$version/DEBIAN/control"
	dpkg-deb --root-owner-group -b "meta$version" . >/dev/null
done

mkdir made home
chmod 700 home
mv pool made/pool
cp linux-image-generic_1_amd64.deb made/pool/
mkdir made/pool-updates
cp linux-image-generic_2_amd64.deb made/pool-updates/
export GNUPGHOME="$work/home"
gpg --batch --quiet --passphrase '' --quick-gen-key archive rsa2048 sign 0
gpg --armor --export >made/key.asc
cd made
for s in "$suite" "$suite-updates" "$suite-security"; do
	for component in main restricted universe; do
		mkdir -p "dists/$s/$component/binary-amd64"
		: >"dists/$s/$component/binary-amd64/Packages"
	done
done
apt-ftparchive packages pool >"dists/$suite/main/binary-amd64/Packages"
apt-ftparchive packages pool-updates >"dists/$suite-updates/main/binary-amd64/Packages"
for s in "$suite" "$suite-updates" "$suite-security"; do
	apt-ftparchive -o "APT::FTPArchive::Release::Origin=Ubuntu" -o "APT::FTPArchive::Release::Suite=$s" -o "APT::FTPArchive::Release::Codename=$suite" \
		-o "APT::FTPArchive::Release::Architectures=amd64" -o "APT::FTPArchive::Release::Components=main restricted universe" release "dists/$s" >release
	gpg --batch --quiet --clearsign --output "dists/$s/InRelease" release
done
rm release
gpgconf --kill all
cd ..
mv made "$archive"
