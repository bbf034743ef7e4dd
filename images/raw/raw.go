// SPDX-License-Identifier: Apache-2.0

// Package raw brings disk images of the customer's own into the store as they are, and,
// where disk layouts of their nodes need it, a second time as the files that are in them: of
// an URL or a file, raw or qcow2, packed with gzip, xz or zstd. What is in them is found
// by looking: the root file system by what lies on it, never by the number of a
// partition. It runs as root on the controller, whose kernel mounts the file systems,
// read-only. An image that could not be installed is refused here, before anything is
// erased anywhere.
//
// What an image has to have: a GUID partition table for sectors of 512 bytes with the
// root file system (ext4 or xfs) as its last partition; /boot in it, or on a partition
// that its fstab names by UUID or label; an EFI system partition with the loader at its
// removable path; nothing where the install marker goes, in the last 4 KiB before 1 MiB;
// a kernel with modules and an initrd for any machine, what sets addresses, an SSH server
// that lets root in by key, and GRUB with its menu where the distribution has it.
package raw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/inventory"
)

// kindName is the label of the kind's blocks.
const kindName = "raw"

// Kind is the kind "raw": disk images for amd64. It implements
// images.Kind.
type Kind struct{}

// Name implements images.Kind.
func (Kind) Name() string { return kindName }

// Supports implements images.Kind.
func (Kind) Supports(i *inventory.Image) error {
	switch {
	case i.Arch == inventory.ARM64:
		return errkind.New(errkind.Unsupported, "images of kind %q are installed for %s; image %q is of %s", kindName, inventory.AMD64, i.Name, i.Arch)
	case i.Kernel != "" || len(i.Packages) > 0:
		return errkind.New(errkind.Unsupported, "images of kind %q are installed with the packages that are in them; image %q names others. Put them into the image", kindName, i.Name)
	case i.OS != "" && !slices.ContainsFunc(distribution.OfDisks(), func(f distribution.Family) bool { return f.Name == i.OS }):
		return errkind.New(errkind.Unsupported, "images of kind %q of %s are installed; image %q is of %s", kindName, titles(), i.Name, i.OS)
	case len(i.Storage) > 0 && !takesLayouts(i.OS):
		return errkind.New(errkind.Unsupported, "images of kind %q of %s are written as they are, one root file system on one disk; a disk_layout of the nodes of image %q asks for RAID, swap, other partitions or another file system", kindName, i.OS, i.Name)
	}
	return nil
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, site string) images.Recipe {
	return Recipe{Block: i.Name, Source: i.Source, Checksum: i.Checksum, OS: i.OS, Release: i.Release, Site: site, Vendor: vendorOf(i), Storage: i.Storage}
}

// Version changes whenever the same source would give another image.
const Version = 1

// titles are the distributions whose images are taken.
func titles() string {
	var list []string
	for _, f := range distribution.OfDisks() {
		list = append(list, strings.TrimSpace(f.Title+" "+strings.Join(f.Disk.Releases, ", ")))
	}
	return strings.Join(list, ", ")
}

// Recipe says where an image comes from.
type Recipe struct {
	Block    string   // name of the HCL block
	Source   string   // URL or path
	Checksum string   // of that file: sha256:HEX
	OS       string   // that the image has to be of; "": any that can be installed
	Release  string   // of OS; "": any
	Site     string   // folder that a path is relative to; it changes no digest
	Vendor   Vendor   // who signed it
	Storage  []string // what disk layouts need, of inventory.StorageTree and so on; none: the disk is only written as it is

	downloads string // folder of WithDownloads
}

// Name implements images.Recipe.
func (r Recipe) Name() string { return "image." + r.Block }

// isURL reports whether a file is fetched.
func isURL(source string) bool { return strings.Contains(source, "://") }

// checkURL says what is wrong with a URL.
func checkURL(at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no URL of http or https", at)
	}
	if u.User != nil {
		return errors.New("has a password in it, which would stand in logs")
	}
	return nil
}

// Check implements images.Recipe.
func (r Recipe) Check() error {
	if isURL(r.Source) {
		if err := checkURL(r.Source); err != nil {
			return errkind.New(errkind.Refused, "image %s: its source %w", r.Block, err).Do("Serve the file without a password: its checksum says what it is.")
		}
	}
	digits, ok := strings.CutPrefix(r.Checksum, "sha256:")
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != sha256.Size {
		return errkind.New(errkind.Refused, "image %s: checksum %q is not sha256: and 64 hex digits", r.Block, r.Checksum).
			Do("Take it from the vendor's list of checksums, such as SHA256SUMS beside the image.")
	}
	if r.OS == "" && r.Release != "" {
		return errkind.New(errkind.Refused, "image %s: release %q says nothing without os", r.Block, r.Release).Do(`Write os = "ubuntu" or os = "debian" beside it.`)
	}
	if _, ok := distribution.ParseRelease(r.OS, r.Release); r.OS != "" && !ok {
		return errkind.New(errkind.Refused, "image %s: %q is no release of %s", r.Block, r.Release, r.OS).Do(`Write one such as release = "24.04" or "bookworm".`)
	}
	if problems := r.Vendor.problems(); len(problems) > 0 {
		p := problems[0]
		return errkind.New(errkind.Refused, "image %s: %s%s", r.Block, r.Vendor.Places[p.attribute], p.detail)
	}
	return nil
}

// Digest implements images.Recipe. Where the file comes from does not matter: its
// checksum says what it is. One whose vendor's signature was verified is another image
// than one of which nobody asked for it.
func (r Recipe) Digest() string {
	return images.DigestOf(struct {
		Kind, Block, Checksum, OS, Release string
		Builder, Ramdisk                   int
		Modules                            string
		Signed                             []string `json:",omitempty"`
		Storage                            []string `json:",omitempty"`
	}{kindName, r.Block, r.Checksum, r.OS, r.Release, Version, ramdisk.Version, ramdisk.Selection(), r.Vendor.keys(), r.Storage})
}

// Inputs implements images.Recipe.
func (r Recipe) Inputs() string {
	return images.DigestOf(struct {
		Kind, Checksum, OS, Release string
		Signed                      []string `json:",omitempty"`
		Storage                     []string `json:",omitempty"`
	}{kindName, r.Checksum, r.OS, r.Release, r.Vendor.keys(), r.Storage})
}

// Archives implements images.Recipe: an image is taken as it is.
func (r Recipe) Archives() []images.Archive { return nil }

// WithDownloads implements images.Downloader.
func (r Recipe) WithDownloads(dir string) images.Recipe {
	r.downloads = dir
	return r
}

// Fetch implements images.Downloader.
func (r Recipe) Fetch(ctx context.Context, dir string, say func(string)) error {
	if !slices.ContainsFunc([]string{r.Source, r.Vendor.List, r.Vendor.Signature}, isURL) {
		return nil
	}
	r.downloads = dir
	b := builder{recipe: r, say: say}
	if err := b.fetch(ctx); err != nil {
		return fmt.Errorf("image %s (%s): %w", r.Block, r.Source, err)
	}
	return nil
}

// step is a part of a build.
type step struct {
	what string
	do   func(context.Context) error
}

// Build implements images.Recipe. dir needs room for the file and for what of its disk
// is not zeroes.
func (r Recipe) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	b := builder{recipe: r, dir: dir, say: say}
	steps := []step{
		{"checking tools", b.checkTools},
		{"reading the source", b.fetch},
		{"unpacking the disk", b.unpack},
		{"reading the partitions", b.partitions},
		{"reading the root file system", b.inspect},
	}
	if r.onto() {
		steps = append(steps, []step{
			{"making the boot loaders of disk layouts", b.packLoaders},
			{"packing the files for disk layouts", b.packTree},
		}...)
	}
	for _, s := range steps {
		say(s.what)
		if err := s.do(ctx); err != nil {
			return store.Source{}, fmt.Errorf("image %s (%s): %s: %w", r.Block, r.Source, s.what, err)
		}
	}
	files := map[string]string{images.KernelFile: b.path(images.KernelFile), images.InitrdFile: b.path(images.InitrdFile)}
	for _, name := range append([]string{images.DriversFile}, b.kept...) {
		files[name] = b.path(name)
	}
	if r.onto() {
		for _, name := range slices.Concat(b.maker().TreeFiles(), bootdisk.LoaderFiles()) {
			files[name] = b.path(name)
		}
	}
	maps.Copy(files, b.signed.files)
	return store.Source{Name: r.Name(), Recipe: r.Digest(), Disk: b.disk, Files: files, Vendor: b.signed.by, Installed: b.installed,
		System: manifest.System{Distribution: b.system.Family, Release: b.system.Version, Arch: string(inventory.AMD64), Kernel: b.kernel}}, nil
}

// builder is one build in progress.
type builder struct {
	recipe Recipe
	dir    string // everything that the build makes
	say    func(string)
	source string // path of the file, checked
	signed signed // what its vendor signed
	disk   string // path of the plain disk
	size   int64  // bytes of it
	parts  []sysdisk.Part
	root   sysdisk.Part // with the root file system
	fstab  []sysdisk.Mount
	system distribution.Release
	family distribution.Family // of system
	kept   []string            // files of it that later builds need
	kernel string              // release of the newest

	installed installed.List
}

func (b *builder) path(name string) string { return filepath.Join(b.dir, name) }
