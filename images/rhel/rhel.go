// SPDX-License-Identifier: Apache-2.0

// Package rhel is the kind "rhel": images of RHEL and its rebuilds Rocky and Alma, made of their
// packages by dnf, from the repositories and with the keys that the site names. It runs as root on
// a Debian controller.
package rhel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is the kind "rhel". It implements images.Kind.
type Kind struct{}

// Name implements images.Kind.
func (Kind) Name() string { return distribution.RHEL }

// Supports implements images.Kind. The menu takes kernels from entries, which layouts of a
// disk have no loader for.
func (Kind) Supports(i *inventory.Image) error {
	unsupported := func(format string, args ...any) error {
		return errkind.New(errkind.Unsupported, "images of kind rhel "+format, args...)
	}
	if i.Arch == inventory.ARM64 {
		return unsupported("are made for %s; image %q is of %s, whose loaders and kernels (shim-aa64, grub2-efi-aa64, kernel-64k) were never looked at. Nodes of %[3]s take images of kind debian", inventory.AMD64, i.Name, i.Arch)
	}
	if len(i.Storage) > 0 {
		return unsupported("are one ext4 root on one disk; a disk_layout of the nodes of image %q asks for RAID, LVM, swap, other partitions or another file system", i.Name)
	}
	if r, ok := distribution.ParseRelease(distribution.RHEL, i.Release); !ok || dnf.Database(r.Version) == "" || !plainRelease.MatchString(i.Release) {
		return unsupported("are made of releases 9 and 10; image %q has release %q", i.Name, i.Release)
	}
	return nil
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, _ string) images.Recipe {
	return Recipe{Block: i.Name, Release: i.Release, Kernel: i.Kernel, Packages: i.Packages, Repositories: i.Repositories, CryptoPolicy: i.CryptoPolicy, SecureBoot: i.SecureBoot, InMemory: i.Diskless()}
}

// Version changes whenever the same recipe would give another disk. It is part of the recipe's
// digest.
const Version = 2

// defaultKernel leads to the newest kernel with its modules.
const defaultKernel = "kernel"

// base is what every image has: what boots, what ironrail's own stages use on the node, and
// nothing of a driver stack. Firmware is there since no driver of a NIC may be without it.
var base = []string{
	"NetworkManager", "ca-certificates", "chrony", "crypto-policies-scripts", "dnf", "dracut", "dracut-config-generic", "e2fsprogs", "glibc-minimal-langpack",
	"grub2-efi-x64", "grub2-pc", "grub2-tools", "iproute", "kmod", "linux-firmware", "openssh-server", "policycoreutils", "selinux-policy-targeted", "shim-x64",
	"sudo", "system-release", "systemd", "systemd-udev", "tzdata", "util-linux",
}

// Recipe says what an image is made of.
type Recipe struct {
	Block        string   // name of the HCL block
	Release      string   // a major release, or one with its minor; dnf's $releasever
	Kernel       string   // package; empty: kernel
	Packages     []string // besides those that every image has
	Repositories []inventory.PackageRepository
	CryptoPolicy string // of update-crypto-policies(8); empty: as the packages have it
	SecureBoot   bool   // its nodes boot with Secure Boot
	InMemory     bool   // its nodes keep it in memory: it is a squashfs and no disk

	downloads string // folder of WithDownloads
}

// Name implements images.Recipe.
func (r Recipe) Name() string { return "image." + r.Block }

// What may stand in a recipe: it goes into command lines and files of dnf.
var (
	plainRelease = lazyregexp.New(`^[0-9]+(\.[0-9]+)?$`)
	packageName  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+~^:-]+$`)
	repoName     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	repoURL      = lazyregexp.New(`^https?://[^@\s\[\]\\'"#;]+$`)
	policyName   = lazyregexp.New(`^[A-Z0-9][A-Z0-9-]*(:[A-Z0-9][A-Z0-9-]*)*$`)
)

// Check implements images.Recipe: nothing is built without the keys of its repositories.
func (r Recipe) Check() error {
	refused := func(do, format string, args ...any) error {
		return errkind.New(errkind.Refused, "image %s: "+format, append([]any{r.Block}, args...)...).Do(do)
	}
	const write = `Write repository "baseos" { url = "http://mirror.example/rocky/9/BaseOS/x86_64/os", key = file("keys/rocky9.asc") } in its block, and one such for AppStream: addresses of the site's mirror, and the public key that the packages are signed with, in ASCII armor.`
	if len(r.Repositories) == 0 {
		return refused(write, "nothing says where its packages come from, and whose signature they have")
	}
	for _, a := range r.Repositories {
		switch {
		case !repoName.MatchString(a.Name):
			return refused(write, "%q is no name of a repository", a.Name)
		case !repoURL.MatchString(a.URL):
			return refused(write, "repository %q: %q is no URL of a repository", a.Name, a.URL)
		}
		if err := signature.CheckKey(a.Key); err != nil {
			return refused(write, "repository %q: its key %w", a.Name, err)
		}
	}
	for _, p := range append(slices.Clone(r.Packages), r.kernel()) {
		if !packageName.MatchString(p) {
			return refused("A package is named as dnf takes it: its name, or with its version and release.", "%q is no package name", p)
		}
	}
	switch {
	case r.CryptoPolicy != "" && !policyName.MatchString(r.CryptoPolicy):
		return refused("Name one of update-crypto-policies(8), such as DEFAULT, FUTURE or DEFAULT:NO-SHA1.", "%q is no crypto policy", r.CryptoPolicy)
	case r.CryptoPolicy == "FIPS" || strings.HasPrefix(r.CryptoPolicy, "FIPS:"):
		return refused("Name another policy.", "the policy FIPS alone makes no system in FIPS mode: its kernel and its initrd would have to be in it too, which this version does not do")
	}
	return nil
}

func (r Recipe) kernel() string { return cmp.Or(r.Kernel, defaultKernel) }

// family is the distribution.
func (r Recipe) family() distribution.Family {
	f, _ := distribution.Find(distribution.RHEL)
	return f
}

// release is the major release.
func (r Recipe) release() distribution.Release {
	release, _ := distribution.ParseRelease(distribution.RHEL, r.Release)
	return release
}

// include returns all packages, sorted, each once.
func (r Recipe) include() []string {
	all := slices.Concat(base, []string{r.kernel()}, r.Packages)
	slices.Sort(all)
	return slices.Compact(all)
}

// source is a repository in a digest: a key that is published anew, such as with a longer time,
// is the same.
type source struct {
	Name, URL string
	Keys      []string
}

func (r Recipe) sources() (list []source) {
	for _, a := range r.Repositories {
		fingerprints := []string{a.Key} // never built
		if keys, err := signature.ReadKeys([]byte(a.Key)); err == nil {
			fingerprints = signature.Fingerprints(keys)
		}
		list = append(list, source{a.Name, a.URL, fingerprints})
	}
	return list
}

// Digest implements images.Recipe.
func (r Recipe) Digest() string {
	return images.DigestOf(struct {
		Kind, Block, Release, Epoch string
		Include                     []string
		Repositories                []source
		CryptoPolicy                string
		Builder, Ramdisk            int
		Files                       map[string]string
		Modules                     string
		SecureBoot                  bool `json:",omitempty"`
		InMemory                    bool `json:",omitempty"`
	}{distribution.RHEL, r.Block, r.Release, bootdisk.Epoch, r.include(), r.sources(), r.CryptoPolicy, Version, ramdisk.Version, r.settings(), ramdisk.Selection(), r.SecureBoot, r.InMemory})
}

// Inputs implements images.Recipe.
func (r Recipe) Inputs() string {
	packages := slices.Clone(r.Packages)
	slices.Sort(packages)
	return images.DigestOf(struct {
		Kind, Release, Kernel string
		Packages              []string
		Repositories          []source
		CryptoPolicy          string
		SecureBoot            bool `json:",omitempty"`
		InMemory              bool `json:",omitempty"`
	}{distribution.RHEL, r.Release, r.kernel(), slices.Compact(packages), r.sources(), r.CryptoPolicy, r.SecureBoot, r.InMemory})
}

// Archives implements images.Recipe: none. They are those of apt, whose signed index is asked for;
// dnf's repositories have none that has to be there.
func (r Recipe) Archives() []images.Archive { return nil }

// WithDownloads implements images.Downloader.
func (r Recipe) WithDownloads(dir string) images.Recipe {
	r.downloads = dir
	return r
}

// Fetch implements images.Downloader: dnf's cache, with the packages of today.
func (r Recipe) Fetch(ctx context.Context, dir string, say func(string)) error {
	r.downloads = dir
	b := newBuilder(r, dir, say)
	return b.run(ctx, []step{{"checking tools", b.checkTools}, {"writing the configuration of dnf", b.configureDnf}, {"fetching packages", b.fetch}})
}

// Build implements images.Recipe. dir needs 8 GiB or more.
func (r Recipe) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	b := newBuilder(r, dir, say)
	err := b.run(ctx, append([]step{
		{"checking tools", b.checkTools},
		{"writing the configuration of dnf", b.configureDnf},
		{"preparing the root file system", b.prepare},
		{"installing packages", b.install},
		{"settling the root file system", b.settle},
		{"looking at the root file system", b.inspect},
		{"keeping what packages are resolved by", b.keep},
		{"packing the install ramdisk", b.disk.PackRamdisk},
	}, b.finish()...))
	if err != nil {
		return store.Source{}, err
	}
	return b.source(), nil
}

// finish are the steps that make a disk of the root, or what is kept in memory.
func (b *builder) finish() []step {
	label := step{"giving the files their labels of SELinux", b.label}
	if !b.recipe.InMemory {
		return []step{{"making the boot loaders", b.disk.MakeLoaders}, label, {"making the disk", b.disk.MakeDisk}}
	}
	return []step{{"taking the signed boot loaders", b.disk.TakeOwn}, {"settling the system in memory", b.settleMemory}, label, {"making the squashfs", b.disk.MakeSquashfs}}
}

// step is one of a build.
type step struct {
	what string
	do   func(context.Context) error
}

func (b *builder) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		b.disk.Say(s.what)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("image %s: %s: %w", b.recipe.Block, s.what, err)
		}
	}
	return nil
}
