// SPDX-License-Identifier: Apache-2.0

// Package debian builds whole-disk images of Debian, and of distributions that are made as
// it is (Distribution): it fetches the packages and compares them with the archive's signed
// lists, mmdebstrap makes the root file system of them, and package bootdisk the disk around
// it. It runs as root on a Debian controller and takes one to two minutes.
package debian

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is the kind "debian": Debian 12 and 13. It implements images.Kind.
type Kind struct{}

// releases are those that were built, installed and started.
var releases = []string{"12", "13"}

// Name implements images.Kind.
func (Kind) Name() string { return distribution.Debian }

// Supports implements images.Kind.
func (Kind) Supports(i *inventory.Image) error {
	if i.Arch == inventory.ARM64 && len(i.Storage) > 0 {
		return errkind.New(errkind.Unsupported, "disk layouts with RAID, XFS, swap or data disks are made of images of %s; image %q is of %s", inventory.AMD64, i.Name, i.Arch)
	}
	r, ok := distribution.ParseRelease(distribution.Debian, i.Release)
	if !ok || !slices.Contains(releases, r.Version) {
		return errkind.New(errkind.Unsupported, "images of Debian %s are built; image %q has release %q", strings.Join(releases, " and "), i.Name, i.Release)
	}
	return nil
}

// LeavesInitrd implements images.InitrdLeaver: on a controller of x86, under emulation, an
// initrd of arm64 takes longer than all the rest.
func (Kind) LeavesInitrd(i *inventory.Image) bool { return i.Arch == inventory.ARM64 }

// Recipe implements images.Kind. The archive knows a release by its codename.
func (Kind) Recipe(i *inventory.Image, _ string) images.Recipe {
	r := Recipe{Block: i.Name, Release: i.Release, Arch: i.Arch, Kernel: i.Kernel, Packages: i.Packages, Storage: i.Storage, SecureBoot: i.SecureBoot, Tagged: i.Tagged && i.Arch != inventory.ARM64, InMemory: i.Diskless()}
	if release, ok := distribution.ParseRelease(distribution.Debian, i.Release); ok {
		f, _ := distribution.Find(release.Family)
		r.Release = f.Codename(release)
	}
	return r
}

// Version changes whenever the same recipe would give another disk. It is part of
// the recipe's digest.
const Version = 1

// Recipe says what an image is made of.
type Recipe struct {
	Block    string         // name of the HCL block
	Release  string         // codename, such as bookworm
	Arch     inventory.Arch // empty: amd64
	Kernel   string         // kernel package; empty: the one of the architecture, such as linux-image-amd64
	Packages []string       // besides those that every image has
	Storage  []string       // what disk layouts need, of inventory.StorageTree and so on
	Mirrors  []string       // as mmdebstrap takes them: URLs or deb lines; empty: the distribution's own
	Key      string         // public keys of the mirrors in ASCII armor; empty: those that this controller has
	Of       Distribution   // zero: Debian

	SecureBoot bool // its nodes boot with Secure Boot
	Tagged     bool // its nodes boot on a VLAN: it brings an iPXE that tags
	InMemory   bool // its nodes keep it in memory: it is a squashfs and no disk

	downloads string // folder of WithDownloads
}

// Distribution is what one that is made as Debian is differs in.
type Distribution struct {
	Family string            // name of it
	Base   []string          // packages of every image, besides those of all distributions
	Files  map[string]string // of every image, besides those of all distributions, by their name below the root
}

// base is what every image has: what boots, what ironrail's own stages use on the
// node, and nothing of a driver stack.
var base = []string{
	"apt", "ca-certificates", "dbus", "e2fsprogs", "initramfs-tools", "iproute2", "kmod", "openssh-server",
	"systemd", "systemd-sysv", "systemd-timesyncd", "tzdata", "udev", "zstd",
}

// Name returns KIND.NAME, as the block is referred to.
func (r Recipe) Name() string { return "image." + r.Block }

// Check reports what cannot be built, before anything is done.
func (r Recipe) Check() error {
	if !isPlain(r.Release, ".-") {
		return errkind.New(errkind.Refused, "image %s: release %q is no codename", r.Block, r.Release).Do("Write a codename such as bookworm.")
	}
	if r.Key != "" {
		if err := signature.CheckKey(r.Key); err != nil {
			return errkind.New(errkind.Refused, "image %s: the key of its archive %w", r.Block, err).Do("Write key = file(\"archive.asc\") with the key of the archive, in ASCII armor.")
		}
	}
	for _, p := range append(slices.Clone(r.Packages), r.kernel()) {
		if len(p) < 2 || !isPlain(p, "+-.") {
			return errkind.New(errkind.Refused, "image %s: %q is no package name", r.Block, p).Do("A Debian package name has lower-case letters, digits and + - . only.")
		}
	}
	if r.SecureBoot && strings.HasSuffix(r.kernel(), unsigned) {
		return errkind.New(errkind.Refused, "image %s: nobody has signed the kernel of package %s, and its nodes boot with Secure Boot", r.Block, r.kernel()).
			Do("Take the package without " + unsigned + " behind its name, or set secure_boot = false in their hardware.")
	}
	for _, m := range r.Mirrors {
		if m == "" || m[0] == '-' || strings.ContainsAny(m, "\n\r\x00") {
			return errkind.New(errkind.Refused, "image %s: %q is no mirror", r.Block, m)
		}
	}
	return nil
}

// unsigned ends the names of Debian's packages of kernels that are not signed.
const unsigned = "-unsigned"

// isPlain reports whether s begins with a lower-case letter or digit and continues
// with those and the given signs. Names go into command lines, so nothing else
// may pass.
func isPlain(s, signs string) bool {
	for i, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && strings.ContainsRune(signs, c)) {
			return false
		}
	}
	return s != ""
}

func (r Recipe) kernel() string {
	if r.Kernel == "" {
		return r.family().Kernel[r.arch()]
	}
	return r.Kernel
}

// family is the distribution.
func (r Recipe) family() distribution.Family {
	f, _ := distribution.Find(cmp.Or(r.Of.Family, distribution.Debian))
	return f
}

// arch is the architecture of the programs.
func (r Recipe) arch() inventory.Arch { return cmp.Or(r.Arch, inventory.AMD64) }

// otherArch is the architecture where it is not amd64: digests from before there was
// another one stay as they are.
func (r Recipe) otherArch() inventory.Arch {
	if r.arch() == inventory.AMD64 {
		return ""
	}
	return r.Arch
}

// initrd is who makes the initrd, as manifest.Manifest has it.
func (r Recipe) initrd() string {
	if r.arch() == inventory.ARM64 {
		return manifest.InitrdOnNode
	}
	return ""
}

// include returns all packages, sorted, each once.
func (r Recipe) include() []string {
	all := slices.Concat(base, r.Of.Base, []string{r.kernel()}, r.Packages)
	release, _ := distribution.ParseRelease(r.family().Name, r.Release) // what is built is known
	for _, need := range r.Storage {
		packages, _ := r.family().StoragePackages(release, need)
		all = append(all, packages...)
	}
	if slices.Contains(all, "chrony") { // both provide time-daemon and exclude each other
		all = slices.DeleteFunc(all, func(p string) bool { return p == "systemd-timesyncd" })
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Digest covers everything that determines the image except what the mirrors
// offer on the day of the build. It does no I/O.
func (r Recipe) Digest() string {
	return images.DigestOf(struct {
		Kind, Block, Release, Epoch string
		Include, Mirrors            []string
		Builder, Ramdisk            int
		Files                       map[string]string
		Modules                     string
		Storage                     []string       `json:",omitempty"`
		Arch                        inventory.Arch `json:",omitempty"`
		Key                         []string       `json:",omitempty"`
		SecureBoot                  bool           `json:",omitempty"`
		InMemory                    bool           `json:",omitempty"`
		MOK                         bool           `json:",omitempty"` // MokManager comes with shim
		Tagged                      bool           `json:",omitempty"`
	}{r.family().Name, r.Block, r.Release, bootdisk.Epoch, r.include(), r.Mirrors, Version, ramdisk.Version, r.settings(), ramdisk.Selection(), r.Storage, r.otherArch(), r.keys(), r.SecureBoot, r.InMemory, r.SecureBoot, r.Tagged})
}

// keys are the fingerprints of the mirrors' keys: one that is published anew, such as with a
// longer time, is the same.
func (r Recipe) keys() []string {
	keys, err := signature.ReadKeys([]byte(r.Key))
	if err != nil {
		return []string{r.Key} // never built
	}
	return signature.Fingerprints(keys)
}

// Inputs is the digest of what the site declares of the image, and of nothing
// that this builder adds: a newer ironrail gives the same, so that an image that
// was locked stays the right one. It does no I/O.
func (r Recipe) Inputs() string {
	packages := slices.Clone(r.Packages)
	slices.Sort(packages)
	return images.DigestOf(struct {
		Kind, Release, Kernel string
		Packages, Mirrors     []string
		Storage               []string       `json:",omitempty"`
		Arch                  inventory.Arch `json:",omitempty"`
		Key                   []string       `json:",omitempty"`
		SecureBoot            bool           `json:",omitempty"`
		InMemory              bool           `json:",omitempty"`
		Tagged                bool           `json:",omitempty"`
	}{r.family().Name, r.Release, r.kernel(), slices.Compact(packages), r.Mirrors, r.Storage, r.otherArch(), r.keys(), r.SecureBoot, r.InMemory, r.Tagged})
}

// Build makes the image's files in dir, an empty folder of 4 GiB or more, and says
// in short lines how far it is. It leaves nothing mounted, also when ctx ends it.
func (r Recipe) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	disk := bootdisk.Maker{Root: filepath.Join(dir, "root"), Dir: dir, Seed: r.Digest(), Say: say, Family: r.family(), Arch: r.arch(), Storage: r.Storage, Files: r.Of.Files, SecureBoot: r.SecureBoot, InMemory: r.InMemory}
	if r.takesSigned() || r.Tagged {
		disk.Archives, disk.Keyring = r.loaders(), r.keyringFile()
	}
	b := builder{recipe: r, disk: disk}
	defer b.dropKeys()
	steps := []step{
		{"checking tools", b.checkTools},
		{"writing the keys of the archive", b.writeKeys},
		{"reading the package lists", b.readLists},
		{"fetching packages", b.fetchPackages},
		{"installing packages", b.bootstrap},
		{"settling the root file system", b.settle},
		{"packing the install ramdisk", disk.PackRamdisk},
	}
	src := store.Source{Name: r.Name(), Recipe: r.Digest(), Initrd: r.initrd()}
	if r.Tagged {
		steps = append(steps, step{"taking an iPXE that tags", disk.TakeIPXE})
	}
	if r.InMemory && r.takesSigned() {
		steps = append(steps, step{"taking the signed boot loaders", disk.TakeSigned})
	}
	if r.InMemory {
		steps = append(steps, step{"making the squashfs", disk.MakeSquashfs})
		src.Disk, src.Form = disk.Path(bootdisk.SquashfsFile), manifest.Squashfs
	} else {
		steps = append(steps, step{"making the boot loaders", disk.MakeLoaders}, step{"making the disk", disk.MakeDisk}, step{"packing the files for disk layouts", disk.PackTree})
		src.Disk = disk.Path(bootdisk.DiskFile)
	}
	for _, s := range steps {
		say(s.what)
		if err := s.do(ctx); err != nil {
			return store.Source{}, fmt.Errorf("image %s: %s: %w", r.Block, s.what, err)
		}
	}
	src.Files = disk.BootFiles()
	if r.Tagged {
		src.Files[images.IPXEFile] = disk.Path(images.IPXEFile)
	}
	for _, name := range append(disk.TreeFiles(), images.KernelFile, images.InitrdFile, images.DriversFile, images.StatusFile, images.SourcesFile, images.KeyringFile) {
		src.Files[name] = disk.Path(name)
	}
	release, _ := distribution.ParseRelease(r.family().Name, r.Release)
	src.Installed, src.System = b.installed, manifest.System{Distribution: release.Family, Release: release.Version, Arch: string(r.arch()), Kernel: disk.Kernel()}
	return src, nil
}

// step is one of a build.
type step struct {
	what string
	do   func(context.Context) error
}

// builder is one build in progress.
type builder struct {
	recipe    Recipe
	disk      bootdisk.Maker
	keyring   string // with the keys that the site gives, on this controller; "": none are given
	installed installed.List
}

// checkTools reports everything that is missing at once. Packages of another architecture
// run programs of their own while they are installed: the kernel must start them under
// emulation (binfmt_misc).
func (b *builder) checkTools(ctx context.Context) error {
	arch := b.recipe.arch()
	tools := append([]bootdisk.Tool{{Name: "mmdebstrap", Package: "mmdebstrap"}}, b.disk.Tools()...)
	foreign := string(arch) != runtime.GOARCH
	if foreign {
		tools = append(tools, bootdisk.Tool{Name: "arch-test", Package: "arch-test"}, bootdisk.Tool{Name: emulators[arch], Package: "qemu-user-static"})
	}
	if err := bootdisk.CheckTools(tools); err != nil || !foreign {
		return err
	}
	if err := b.disk.Run(ctx, nil, "arch-test", string(arch)); err != nil {
		return errkind.New(errkind.Unsupported, "this controller does not run programs of %s: %w", arch, err).
			Do("Let its kernel start them under emulation, as qemu-user-static sets it up: `systemctl restart systemd-binfmt`.")
	}
	return nil
}

// emulators are the programs that run others of an architecture.
var emulators = map[inventory.Arch]string{inventory.AMD64: "/usr/bin/qemu-x86_64-static", inventory.ARM64: "/usr/bin/qemu-aarch64-static"}
