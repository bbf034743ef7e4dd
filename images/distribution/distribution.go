// SPDX-License-Identifier: Apache-2.0

// Package distribution describes the distributions of Linux that images are made of:
// their releases, package manager, kernel packages and files. What depends on a
// distribution is asked here; beside the tables of vendors, which say what they
// package for whom, no other package names one.
package distribution

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Names of the families, as in the label of an image block and in ID of
// os-release(5).
const (
	Debian = "debian"
	Ubuntu = "ubuntu"
	RHEL   = "rhel" // Rocky, Alma and Oracle Linux too
)

// PackageManager is what installs packages.
type PackageManager int

// The package managers.
const (
	Apt PackageManager = iota + 1
	Dnf
)

// Log is the file in which a node's package manager writes what it did.
func (m PackageManager) Log() string {
	if m == Dnf {
		return "/var/log/dnf.log"
	}
	return "/var/log/apt/term.log"
}

// Family is what the releases of a distribution have in common.
type Family struct {
	Name    string
	Title   string         // as people say it
	Manager PackageManager // of its packages
	// OwnArchive reports whether GPU drivers come from its own archive where no
	// repository is named: without the vendors' programs.
	OwnArchive bool
	// Components are those of its archive that drivers come from, beside main.
	Components []string
	// Holds are the packages that hold others at their versions, where the manager does not by
	// itself.
	Holds []string
	// Keyring is the file with the keys of its archive, below the root.
	Keyring string
	// Kernel is the package that leads to the newest kernel, by architecture.
	Kernel  map[inventory.Arch]string
	Boot    Boot
	storage map[string][]string // packages with the programs that disk layouts need, by what they need
	unlock  map[string][]string // packages that unlock LUKS2 volumes by a TPM 2.0, by version; of others it is not known
	// Disk is what disk images of it have to have; nil: none is taken.
	Disk *DiskImage

	parts     int               // of a version that make a release: 1 of "12.11", 2 of "24.04.3"
	codenames map[string]string // versions by lower-case codename
	kernels   string            // begins the names of packages that hold one kernel
	whole     string            // begins those that lead to one kernel with its modules; "": none do
	headers   string            // begins the names of packages with the headers for one; of dnf, the name of all
	newest    string            // headers for the newest kernel, where the package of the kernel does not say which
}

// debianStorage are Debian's packages.
var debianStorage = map[string][]string{inventory.StorageLVM: {"lvm2"}, inventory.StorageRAID: {"mdadm"}, inventory.StorageXFS: {"xfsprogs"}}

// unlockBy are the packages that unlock by a TPM, beside systemd: cryptsetup, and the libraries
// of the TPM Software Stack that systemd loads, whose names end with their ABI (packages of
// bookworm, trixie and noble). systemd of Ubuntu 22.04 is built without them.
func unlockBy(esys, mu, rc string) []string {
	return []string{"cryptsetup-bin", "libtss2-esys-" + esys, "libtss2-mu" + mu, "libtss2-rc" + rc, "libtss2-tcti-device" + rc}
}

// StoragePackages are those with the programs that disk layouts need in a release, by what they
// need; false where this is not known of the release.
func (f Family) StoragePackages(r Release, need string) ([]string, bool) {
	if need == inventory.StorageTPM2 {
		packages, ok := f.unlock[r.Version]
		return packages, ok
	}
	return f.storage[need], true
}

// CheckEncryption refuses an image whose nodes have encrypted file systems, where its system is
// not known to unlock them.
func CheckEncryption(i *inventory.Image) error {
	if !slices.Contains(i.Storage, inventory.StorageTPM2) {
		return nil
	}
	if f, known := Find(i.Kind); known {
		if r, ok := ParseRelease(i.Kind, i.Release); ok && f.unlock[r.Version] != nil {
			return nil
		}
	}
	return errkind.New(errkind.Unsupported, "encrypted file systems are made with images of kind debian (releases 12 and 13) and ubuntu (24.04), which get the programs for it; image %q is of kind %q, release %q", i.Name, i.Kind, i.Release)
}

// Families are the distributions that are known
// (wiki.debian.org/DebianReleases, wiki.ubuntu.com/Releases). They are shared: nobody
// changes them.
func Families() []Family { return families() }

// families is made once: a plan asks for the family of every node many times.
var families = sync.OnceValue(func() []Family {
	return []Family{
		{Name: Debian, Title: "Debian", Manager: Apt, OwnArchive: true,
			Components: []string{"contrib", "non-free", "non-free-firmware"}, Keyring: "usr/share/keyrings/debian-archive-keyring.gpg",
			Kernel: map[inventory.Arch]string{inventory.AMD64: "linux-image-amd64", inventory.ARM64: "linux-image-arm64"},
			parts:  1, codenames: map[string]string{"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"},
			Boot: linked, storage: debianStorage, unlock: map[string][]string{"12": unlockBy("3.0.2-0", "0", "0"), "13": append(unlockBy("3.0.2-0t64", "-4.0.1-0t64", "0t64"), "systemd-cryptsetup")}, Disk: networkdImage, kernels: "linux-image-", headers: "linux-headers-", newest: "linux-headers-amd64"},
		{Name: Ubuntu, Title: "Ubuntu", Manager: Apt, Keyring: "usr/share/keyrings/ubuntu-archive-keyring.gpg",
			Kernel: map[inventory.Arch]string{inventory.AMD64: "linux-image-generic", inventory.ARM64: "linux-image-generic"},
			parts:  2, codenames: map[string]string{"focal": "20.04", "jammy": "22.04", "noble": "24.04", "resolute": "26.04"},
			Boot: linkedInBoot, storage: debianStorage, unlock: map[string][]string{"24.04": unlockBy("3.0.2-0t64", "-4.0.1-0t64", "0t64")}, Disk: networkdImage, kernels: "linux-image-", headers: "linux-headers-", newest: "linux-headers-generic"},
		{Name: RHEL, Title: "RHEL", Manager: Dnf,
			Kernel: map[inventory.Arch]string{inventory.AMD64: "kernel", inventory.ARM64: "kernel"},
			Boot:   entries, Disk: entriesImage, Holds: []string{"python3-dnf-plugin-versionlock"},
			parts: 1, kernels: "kernel-core-", whole: "kernel-", headers: "kernel-devel"},
	}
})

// Find returns a family by its name; false where it is not known.
func Find(name string) (Family, bool) {
	all := Families()
	i := slices.IndexFunc(all, func(f Family) bool { return f.Name == name })
	if i < 0 {
		return Family{}, false
	}
	return all[i], true
}

// Release is a release of a distribution as drivers count them: Debian and RHEL by
// their major number, Ubuntu by year and month.
type Release struct {
	Family  string // the name of one
	Version string // "12", "24.04", "9"
}

// String is the release as people say it.
func (r Release) String() string {
	f, _ := Find(r.Family)
	return f.Title + " " + r.Version
}

// ParseRelease reads a version or a codename of a family; false for a text that is
// neither.
func ParseRelease(family, text string) (Release, bool) {
	f, ok := Find(family)
	if !ok {
		return Release{}, false
	}
	version := strings.ToLower(strings.TrimSpace(text))
	if number, ok := f.codenames[version]; ok {
		version = number
	}
	for i, dots := 0, 0; i < len(version); i++ { // a point release is the same release
		if version[i] != '.' {
			continue
		}
		if dots++; dots == f.parts {
			version = version[:i]
		}
	}
	if _, err := strconv.ParseFloat(version, 64); err != nil {
		return Release{}, false
	}
	return Release{family, version}, true
}

// ReadOSRelease reads the variables of os-release(5), without their quotes.
func ReadOSRelease(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			all[key] = strings.Trim(value, `"'`)
		}
	}
	return all
}

// OSRelease reads the variables of os-release(5) of a root file system; none where it has no
// such file.
func OSRelease(root fs.FS) map[string]string {
	text, err := fs.ReadFile(root, "etc/os-release")
	if err != nil {
		text, _ = fs.ReadFile(root, "usr/lib/os-release")
	}
	return ReadOSRelease(string(text))
}

// Codename is the name that the archive of a family has for a release; "" where it has
// none.
func (f Family) Codename(r Release) string {
	for name, version := range f.codenames {
		if version == r.Version {
			return name
		}
	}
	return ""
}

// OfImage returns what an image block says to be; false for kinds that do not say it
// (oci, raw, installer, diskless).
func OfImage(image *inventory.Image) (Release, bool) {
	return ParseRelease(kindOf(image), image.Release)
}

// FamilyOf returns the distribution of an image block, whatever its release is; false
// for kinds that do not say it.
func FamilyOf(image *inventory.Image) (Family, bool) { return Find(kindOf(image)) }

func kindOf(image *inventory.Image) string {
	if image.OS != "" {
		return image.OS
	}
	return image.Kind
}

// KernelRelease is the kernel that a package holds, as in linux-image-6.1.0-56-amd64;
// "" for packages such as linux-image-amd64, which lead to the newest, and for others.
func (f Family) KernelRelease(pkg string) string {
	release, ok := strings.CutPrefix(pkg, f.kernels)
	if !ok && f.whole != "" {
		release, ok = strings.CutPrefix(pkg, f.whole)
		first, _, _ := strings.Cut(release, "-")
		ok = ok && strings.Contains(first, ".") // not kernel-64k
	}
	release = strings.TrimPrefix(release, "unsigned-") // Ubuntu's
	if !ok || release == "" || release[0] < '0' || release[0] > '9' {
		return ""
	}
	return release
}

// HeadersPackage returns the package with the headers that modules are built with for a
// kernel, and the version that it has to have, VERSION-RELEASE of rpm; "": the name says it,
// or the release is "", since it is not known yet. They are then those that come with the package
// of the kernel.
func (f Family) HeadersPackage(release, kernel string) (name, version string) {
	switch rest, ok := strings.CutPrefix(kernel, f.kernels); {
	case f.Manager == Dnf:
		if i := strings.LastIndex(release, "."); i >= 0 && slices.Contains(rpmArchitectures, release[i+1:]) {
			release = release[:i]
		}
		return f.headers, release
	case release != "":
		return f.headers + release, ""
	case ok:
		return f.headers + rest, ""
	}
	return f.newest, ""
}

// StandBeside reports whether several versions of a package are installed beside each other, so
// that none is held: that of the headers by dnf (installonlypkgs of dnf.conf(5)).
func (f Family) StandBeside(name string) bool { return f.Manager == Dnf && name == f.headers }

// rpmArchitectures are those that end the release of a kernel (uname -r).
var rpmArchitectures = []string{"x86_64", "aarch64"}

// CompareKernels orders kernel releases: runs of digits by value, the rest as text.
func CompareKernels(a, b string) int {
	for a != "" && b != "" {
		x, y := firstSpan(a), firstSpan(b)
		a, b = a[len(x):], b[len(y):]
		i, errA := strconv.Atoi(x)
		j, errB := strconv.Atoi(y)
		switch {
		case errA == nil && errB == nil && i != j:
			return i - j
		case (errA != nil || errB != nil) && x != y:
			return strings.Compare(x, y)
		}
	}
	return len(a) - len(b)
}

// firstSpan returns the longest beginning of s that is all digits or has none.
func firstSpan(s string) string {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for i := 1; i < len(s); i++ {
		if digit(s[i]) != digit(s[0]) {
			return s[:i]
		}
	}
	return s
}
