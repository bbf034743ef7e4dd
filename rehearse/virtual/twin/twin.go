// SPDX-License-Identifier: Apache-2.0

// Package twin describes the systems that virtual nodes run: what a distribution says of
// itself, by release and architecture. The simulated disk of an image carries the
// description, so that a node runs what was written to it.
package twin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/inventory"
)

// Twin is one system. Its zero value is Debian 12 on amd64.
type Twin struct {
	ID       string         `json:"id"`       // of os-release(5)
	Name     string         `json:"name"`     // likewise
	Release  string         `json:"release"`  // VERSION_ID
	Codename string         `json:"codename"` // "" for none
	Arch     inventory.Arch `json:"arch"`
	Kernel   string         `json:"kernel"`            // release
	Leading  string         `json:"leading,omitempty"` // package that leads to the newest kernel; "" where the image names a kernel itself
	Build    string         `json:"build"`             // what uname -v prints
	Compiler string         `json:"compiler"`
	NoInitrd bool           `json:"no_initrd,omitempty"` // the image leaves it to the node to make one
}

// release is what one release of a distribution has.
type release struct {
	family, version string
	id, name        string
	kernel          string // release; %s: flavour, or the architecture
	flavour         map[inventory.Arch]string
	build, compiler string
}

// both are the flavours of kernels that are named after the architecture.
var both = map[inventory.Arch]string{inventory.AMD64: "amd64", inventory.ARM64: "arm64"}

// generic are those of Ubuntu.
var generic = map[inventory.Arch]string{inventory.AMD64: "generic", inventory.ARM64: "generic"}

// rpm are the architectures as rpm has them.
var rpm = map[inventory.Arch]string{inventory.AMD64: "x86_64", inventory.ARM64: "aarch64"}

// releases are those that images are made of. Kernels are ones that the distributions
// had in 2026; a site's own image has the one that it has.
var releases = []release{
	{distribution.Debian, "12", "debian", "Debian GNU/Linux", "6.1.0-56-%s", both, "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)", "(debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40)"},
	{distribution.Debian, "13", "debian", "Debian GNU/Linux", "6.12.57+deb13-%s", both, "#1 SMP PREEMPT_DYNAMIC Debian 6.12.57-1 (2025-11-05)", "(debian-kernel@lists.debian.org) (gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld (GNU Binutils for Debian) 2.44)"},
	{distribution.Ubuntu, "22.04", "ubuntu", "Ubuntu", "5.15.0-161-%s", generic, "#171-Ubuntu SMP", "(buildd@lcy02) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04.2) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38)"},
	{distribution.Ubuntu, "24.04", "ubuntu", "Ubuntu", "6.8.0-94-%s", generic, "#96-Ubuntu SMP PREEMPT_DYNAMIC", "(buildd@lcy02) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0, GNU ld (GNU Binutils for Ubuntu) 2.42)"},
	{distribution.Ubuntu, "26.04", "ubuntu", "Ubuntu", "7.0.0-10-%s", generic, "#10-Ubuntu SMP PREEMPT_DYNAMIC", "(buildd@lcy02) (x86_64-linux-gnu-gcc-15 (Ubuntu 15.2.0) 15.2.0, GNU ld (GNU Binutils for Ubuntu) 2.46)"},
	{distribution.RHEL, "9", "rocky", "Rocky Linux", "5.14.0-570.12.1.el9_6.%s", rpm, "#1 SMP PREEMPT_DYNAMIC", "(mockbuild@iad1-prod-build001.bld.equ.rockylinux.org) (gcc (GCC) 11.5.0, GNU ld version 2.35.2)"},
	{distribution.RHEL, "10", "rocky", "Rocky Linux", "6.12.0-55.20.1.el10_0.%s", rpm, "#1 SMP PREEMPT_DYNAMIC", "(mockbuild@iad1-prod-build001.bld.equ.rockylinux.org) (gcc (GCC) 14.2.1, GNU ld version 2.41)"},
}

// Of returns the twin of an image. What the block does not say, or names a release that
// is not in the table, is that of the table's first row of its family, else of Debian 12.
func Of(i *inventory.Image) Twin {
	if i == nil {
		return Twin{}.orDebian()
	}
	of, known := distribution.OfImage(i)
	row := findRow(of)
	arch := i.Arch
	if arch == "" {
		arch = inventory.AMD64
	}
	t := Twin{ID: row.id, Name: row.name, Release: row.version, Arch: arch, Build: row.build, Compiler: row.compiler, NoInitrd: kinds.LeavesInitrd(i)}
	f, _ := distribution.Find(row.family)
	if known && of.Family == row.family {
		t.Release = of.Version
	}
	t.Codename = f.Codename(distribution.Release{Family: row.family, Version: t.Release})
	flavour := flavourOf(i.Kernel, f, row.flavour[arch])
	t.Kernel = fmt.Sprintf(row.kernel, flavour)
	if named := f.KernelRelease(i.Kernel); named != "" {
		t.Kernel = named
	} else if f.Manager == distribution.Apt {
		t.Leading = "linux-image-" + flavour
	}
	return t
}

// findRow returns the row of a release, else the first of its family, else the first.
func findRow(of distribution.Release) release {
	for _, same := range []func(release) bool{
		func(r release) bool { return r.family == of.Family && r.version == of.Version },
		func(r release) bool { return r.family == of.Family },
	} {
		if i := slices.IndexFunc(releases, same); i >= 0 {
			return releases[i]
		}
	}
	return releases[0]
}

// flavourOf is the flavour that a kernel package means, as nvidia-64k of
// linux-image-nvidia-64k; def where it names none.
func flavourOf(pkg string, f distribution.Family, def string) string {
	if word, ok := strings.CutPrefix(pkg, "linux-image-"); ok && f.Name == distribution.Ubuntu && f.KernelRelease(pkg) == "" && word != "virtual" {
		return word
	}
	return def
}

// orDebian is t, or Debian 12 where t is the zero value.
func (t Twin) orDebian() Twin {
	if t.ID == "" {
		return Of(&inventory.Image{Block: inventory.Block{Kind: distribution.Debian}, Release: "12"})
	}
	return t
}

// OSRelease is os-release(5).
func (t Twin) OSRelease() string {
	t = t.orDebian()
	text := fmt.Sprintf("NAME=%q\nID=%s\nVERSION_ID=%q\n", t.Name, t.ID, t.Release)
	if t.Codename != "" {
		text += "VERSION_CODENAME=" + t.Codename + "\n"
	}
	return text
}

// Machine is the architecture as the kernel has it.
func (t Twin) Machine() string { return rpm[t.orDebian().Arch] }

// Version is what uname -v prints.
func (t Twin) Version() string { return t.orDebian().Build }

// Banner is the first line of the kernel's log.
func (t Twin) Banner(release string) string {
	t = t.orDebian()
	return fmt.Sprintf("Linux version %s %s %s", release, t.Compiler, t.Build)
}

// LibraryClass is the class of 64 bit libraries, as ldconfig prints it.
func (t Twin) LibraryClass() string {
	return map[inventory.Arch]string{inventory.AMD64: "x86-64", inventory.ARM64: "AArch64"}[t.orDebian().Arch]
}

// PackageArch is the architecture as dpkg has it.
func (t Twin) PackageArch() string { return string(t.orDebian().Arch) }

// Triplet is the folder of shared libraries below /usr/lib on Debian and Ubuntu.
func (t Twin) Triplet() string { return t.Machine() + "-linux-gnu" }

// KernelPackage is the package that the kernel is of.
func (t Twin) KernelPackage() string {
	t = t.orDebian()
	if t.ID == "rocky" {
		return "kernel-core"
	}
	return "linux-image-" + t.Kernel
}

// kernelPackages are the packages with the kernel, and what leads to it.
func (t Twin) kernelPackages() []string {
	list := []string{t.KernelPackage()}
	if t = t.orDebian(); t.Leading != "" {
		list = append(list, t.Leading)
	}
	return list
}

// OfRPM reports whether its packages are of rpm.
func (t Twin) OfRPM() bool { return t.orDebian().ID == "rocky" }

// Files are the files of an installed system that say what it is, by name.
func (t Twin) Files() map[string]string {
	files := map[string]string{"etc/os-release": t.OSRelease()}
	if t = t.orDebian(); t.ID == "rocky" {
		files["etc/dnf/dnf.conf"] = "[main]\ngpgcheck=1\nbest=True\n"
	} else {
		files[dpkg.StatusFile] = t.Status(nil)
	}
	if t.ID == distribution.Ubuntu {
		files["usr/sbin/netplan"] = ""
	}
	return files
}

// Status is dpkg's list of what the image has.
func (t Twin) Status(packages []string) string {
	var b strings.Builder
	for _, p := range append(t.kernelPackages(), packages...) {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nArchitecture: %s\nVersion: %s\n\n", p, t.PackageArch(), ImageVersion)
	}
	return b.String()
}

// ImageVersion is what packages of an image call themselves, whose true versions
// nobody knows before the image is built.
const ImageVersion = "1.0~image1"

// SquashfsMagic begins an image that is kept in memory, and no disk (fs/squashfs/squashfs_fs.h).
const SquashfsMagic = "hsqs"

// Place is where in the root file system of a simulated disk the description lies, and
// Size the most that it takes, in bytes. Nothing else of it is there.
const (
	Place = 16 << 10
	Size  = 4 << 10
)

// mark begins a description.
const mark = "ironrail twin\n"

// Encode is the description as it lies on a disk.
func (t Twin) Encode() []byte {
	b, err := json.Marshal(t.orDebian())
	if err != nil {
		panic(err) // strings always marshal
	}
	return append([]byte(mark), b...)
}

// Decode reads a description; where there is none, the zero value says what the system is.
func Decode(b []byte) Twin {
	b, ok := bytes.CutPrefix(b, []byte(mark))
	var t Twin
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if !ok || json.Unmarshal(b, &t) != nil {
		t = Twin{}
	}
	return t.orDebian()
}
