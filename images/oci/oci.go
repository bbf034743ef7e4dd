// SPDX-License-Identifier: Apache-2.0

// Package oci makes whole-disk images of container images: the layers of an image of a
// registry, an OCI layout or an archive become a root file system, which must hold a
// kernel and an init, and package bootdisk makes the disk around it. It runs as root.
//
// What comes from outside is not believed: every blob is verified by its digest, from the
// one in the site's files down, and layers are unpacked below the root alone.
package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/aptsource"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

// kindName is the label of the kind's blocks.
const kindName = "oci"

// Version changes whenever the same recipe would give another disk. It is part of
// the recipe's digest.
const Version = 1

// Kind is the kind "oci": container images of Debian and Ubuntu for amd64. It implements
// images.Kind.
type Kind struct{}

// Name implements images.Kind.
func (Kind) Name() string { return kindName }

// Supports implements images.Kind.
func (Kind) Supports(i *inventory.Image) error {
	if i.Arch == inventory.ARM64 {
		return errkind.New(errkind.Unsupported, "images of kind %q are built for %s; image %q is of %s", kindName, inventory.AMD64, i.Name, i.Arch)
	}
	if i.Kernel != "" || len(i.Packages) > 0 {
		return errkind.New(errkind.Unsupported, "images of kind %q are installed with what is in them; image %q names packages to add. Add them where the image is built", kindName, i.Name)
	}
	return nil
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, site string) images.Recipe {
	r := Recipe{Block: i.Name, Source: i.Source, Arch: inventory.AMD64, OS: i.OS, Release: i.Release, Site: site,
		CA: i.Registry.CA, PlainHTTP: i.Registry.PlainHTTP, Username: i.Registry.Username, Password: i.Registry.Password, Storage: i.Storage}
	if i.Arch != "" {
		r.Arch = i.Arch
	}
	if at := i.Place("arch"); at.Filename != "" {
		r.Place = fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
	}
	r.source, r.wrong = parseSource(i.Source)
	return r
}

// Recipe says what an image is made of.
type Recipe struct {
	Block     string         // name of the HCL block
	Source    string         // as the site says it, with the digest
	Arch      inventory.Arch // that the image must have
	OS        string         // that the image must be, as os-release(5) has it; empty: any
	Release   string         // the same
	CA        string         // of the registry, PEM; empty: those that the controller trusts
	PlainHTTP bool
	Username  string
	Password  secret.Ref
	Storage   []string // what disk layouts need, of inventory.StorageTree and so on

	Place string // of the block, for messages
	Site  string // folder that paths are relative to

	source  source
	wrong   error // of Source
	secrets func(secret.Ref) (secret.Value, error)

	downloads string // folder of WithDownloads
}

// Name implements images.Recipe.
func (r Recipe) Name() string { return "image." + r.Block }

// Check implements images.Recipe.
func (r Recipe) Check() error {
	switch {
	case r.wrong != nil:
		return fmt.Errorf("image %s: %w", r.Block, r.wrong)
	case (r.Username == "") != (r.Password == ""):
		return errkind.New(errkind.Refused, "image %s: a username of the registry needs a password, and the reverse", r.Block).
			Do(`Write both: username = "reader" and password = secret("file:registry-password").`)
	case r.source.transport != registryPrefix && (r.CA != "" || r.PlainHTTP || r.Username != ""):
		return errkind.New(errkind.Refused, "image %s: ca, plain_http, username and password are for a registry; source %q is none", r.Block, r.Source).
			Do("Remove them, or write docker://REGISTRY/REPOSITORY@sha256:DIGEST.")
	case r.PlainHTTP && r.Username != "":
		return errkind.New(errkind.Refused, "image %s: a password would go over the network in clear (plain_http)", r.Block).
			Do("Use a registry with TLS; ca names the authority of a private one.")
	}
	return nil
}

// Digest implements images.Recipe. The digest in the source determines the image, from
// wherever it comes.
func (r Recipe) Digest() string {
	return images.DigestOf(struct {
		Kind, Block, Image string
		Arch               inventory.Arch
		Disk               string
		Builder, Ramdisk   int
		Modules            string
		Storage            []string `json:",omitempty"`
	}{kindName, r.Block, r.identity(), r.Arch, bootdisk.Epoch, Version, ramdisk.Version, ramdisk.Selection(), r.Storage})
}

// Inputs implements images.Recipe.
func (r Recipe) Inputs() string {
	return images.DigestOf(struct {
		Kind, Image string
		Arch        inventory.Arch
		Storage     []string `json:",omitempty"`
	}{kindName, r.identity(), r.Arch, r.Storage})
}

// identity is the digest of the image, or the source as it is written, where it is wrong.
func (r Recipe) identity() string {
	if r.wrong != nil {
		return r.Source
	}
	return r.source.digest
}

// Archives implements images.Recipe: none.
func (r Recipe) Archives() []images.Archive { return nil }

// WithSecrets implements images.SecretReader.
func (r Recipe) WithSecrets(resolve func(secret.Ref) (secret.Value, error)) images.Recipe {
	r.secrets = resolve
	return r
}

// WithDownloads implements images.Downloader.
func (r Recipe) WithDownloads(dir string) images.Recipe {
	r.downloads = dir
	return r
}

// Fetch implements images.Downloader: of a registry an OCI layout comes to be there.
func (r Recipe) Fetch(ctx context.Context, dir string, say func(string)) error {
	if r.source.transport != registryPrefix {
		return nil
	}
	b := &builder{recipe: r, disk: bootdisk.Maker{Say: say}}
	if err := b.fetchLayout(ctx, dir); err != nil {
		return fmt.Errorf("image %s: %s: %w", r.Block, r.Source, err)
	}
	return nil
}

// Build implements images.Recipe.
func (r Recipe) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	b := &builder{recipe: r, disk: bootdisk.Maker{Root: filepath.Join(dir, "root"), Dir: dir, Seed: r.Digest(), Say: say, Arch: r.Arch, Storage: r.Storage}}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"checking tools", func(context.Context) error { return bootdisk.CheckTools(bootdisk.Tools(r.Arch)) }},
		{"fetching the image", b.fetch},
		{"unpacking its layers", b.unpack},
		{"looking at the root file system", b.inspect},
		{"making the initrd", b.initrd},
		{"settling the root file system", b.settle},
		{"packing the install ramdisk", func(ctx context.Context) error { return b.disk.PackRamdisk(ctx) }},
		{"making the boot loaders", func(ctx context.Context) error { return b.disk.MakeLoaders(ctx) }},
		{"making the disk", func(ctx context.Context) error { return b.disk.MakeDisk(ctx) }},
		{"packing the files for disk layouts", func(ctx context.Context) error { return b.disk.PackTree(ctx) }},
	}
	for _, s := range steps {
		say(s.what)
		if err := s.do(ctx); err != nil {
			return store.Source{}, fmt.Errorf("image %s: %s: %s: %w", r.Block, r.Source, s.what, err)
		}
	}
	out := store.Source{Name: r.Name(), Recipe: r.Digest(), Disk: b.disk.Path(bootdisk.DiskFile), Files: map[string]string{}, Installed: b.installed,
		System: manifest.System{Distribution: b.system.release.Family, Release: b.system.release.Version, Arch: string(r.Arch), Kernel: b.system.kernel}}
	for _, name := range slices.Concat([]string{images.KernelFile, images.InitrdFile, images.DriversFile}, b.kept, b.disk.TreeFiles()) {
		out.Files[name] = b.disk.Path(name)
	}
	return out, nil
}

// builder is one build in progress.
type builder struct {
	recipe Recipe
	disk   bootdisk.Maker
	image  opened
	system system
	waits  waits    // for a registry
	kept   []string // names of files that travel with the image, besides the ramdisk's

	installed installed.List
}

func (b *builder) layer(n int) string { return b.disk.Path(fmt.Sprintf("layer-%d", n)) }

// fetch brings the layers into the build's folder, verified.
func (b *builder) fetch(ctx context.Context) (err error) {
	if b.image, err = b.open(ctx); err != nil {
		return err
	}
	for n, d := range b.image.layers {
		if err := b.image.blob(ctx, d, b.layer(n)); err != nil {
			if errkind.Of(err) == errkind.Corrupt {
				err = errors.Join(err, b.forget(d))
			}
			return fmt.Errorf("layer %d (%s): %w", n+1, d.Digest, err)
		}
	}
	return nil
}

// forget has a layer fetched again by the next build, where it came from a registry: it
// was damaged here.
func (b *builder) forget(d v1.Descriptor) error {
	if b.recipe.source.transport != registryPrefix {
		return nil
	}
	dir := b.downloads()
	return errors.Join(os.Remove(filepath.Join(dir, indexFile)), os.Remove(filepath.Join(dir, "blobs", d.Digest.Algorithm, d.Digest.Hex)))
}

// downloads is where the image of a registry is fetched to.
func (b *builder) downloads() string {
	return cmp.Or(b.recipe.downloads, filepath.Join(b.disk.Dir, "downloads"))
}

// unpack makes the root file system of the layers, which are removed one by one.
func (b *builder) unpack(ctx context.Context) error {
	if err := os.Mkdir(b.disk.Root, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root}
	for n, d := range b.image.layers {
		if err := b.unpackOne(ctx, u, n); err != nil {
			return fmt.Errorf("layer %d (%s): %w", n+1, d.Digest, err)
		}
	}
	b.disk.Say(fmt.Sprintf("%d entries, %d MiB", u.entries, u.bytes>>20))
	if u.devices > 0 {
		b.disk.Say(fmt.Sprintf("%d device nodes of the layers were left out: the kernel of the node makes its own", u.devices))
	}
	return nil
}

func (b *builder) unpackOne(ctx context.Context, u *unpacker, n int) error {
	f, err := os.Open(b.layer(n))
	if err != nil {
		return err
	}
	defer f.Close()
	if h := b.image.diffs[n]; h.Algorithm != "sha256" {
		return errkind.New(errkind.Unsupported, "its digest is of %q", h.Algorithm)
	}
	return errors.Join(u.apply(ctx, f, b.image.diffs[n].Hex), os.Remove(f.Name()))
}

// inspect refuses a root that does not boot by itself.
func (b *builder) inspect(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if b.system, err = b.recipe.inspect(root); err != nil {
		return err
	}
	b.disk.Family = b.system.family
	b.disk.Say(fmt.Sprintf("%s, kernel %s", b.system.release, b.system.kernel))
	return nil
}

// initrd makes the initrd of the kernel by the image's own program, where there is none.
func (b *builder) initrd(ctx context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	files, boot := linkFS{root}, b.system.family.Boot
	name := boot.InitrdFile(b.system.kernel)
	if files.exists(name) {
		return nil
	}
	argv := boot.InitrdCommand(b.system.kernel)
	if !anyExists(files, []string{"usr/sbin/" + argv[0], "usr/bin/" + argv[0]}) {
		return errkind.New(errkind.Refused, "the image has no initrd /%s, and no %s that would make it", name, argv[0]).
			Do("Install in it: initramfs-tools. Nothing was erased.")
	}
	b.disk.Say("the image has no initrd: running " + strings.Join(argv, " ") + " in it")
	if err := inRoot(ctx, b.disk.Root, nil, argv); err != nil {
		return err
	}
	if !files.exists(name) {
		return errkind.New(errkind.Refused, "%s made no /%s", argv[0], name).Do("Make the initrd in the image itself.")
	}
	return nil
}

// builderFiles are what builders of images leave in them for themselves: programs may
// not start services there, and packages are written without being made durable.
var builderFiles = []string{
	".dockerenv", "run/.containerenv", "usr/sbin/policy-rc.d", "etc/dpkg/dpkg.cfg.d/docker-apt-speedup",
	"etc/apt/apt.conf.d/docker-autoremove-suggests", "etc/apt/apt.conf.d/docker-clean", "etc/apt/apt.conf.d/docker-gzip-indexes", "etc/apt/apt.conf.d/docker-no-languages",
}

// settle makes the root that of any node, and copies out what package repositories for
// it are resolved against.
func (b *builder) settle(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range builderFiles {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	for _, dir := range []string{"dev", "proc", "sys", "run", "tmp", "var/tmp"} {
		if err := emptyFolder(root, dir); err != nil {
			return err
		}
	}
	if err := b.disk.Settle(root); err != nil {
		return err
	}
	for name, to := range b.system.family.Boot.Links(b.system.kernel) {
		if err := errors.Join(root.RemoveAll(name), root.Symlink(to, name)); err != nil {
			return err
		}
	}
	return b.keepPackages(root)
}

// emptyFolder empties a folder that a running system mounts over or clears at boot, and
// makes it where it is missing.
func emptyFolder(root *os.Root, name string) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	if err := root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	if strings.HasSuffix(name, "tmp") {
		return root.Chmod(name, 0o777|os.ModeSticky)
	}
	return nil
}

// keepPackages lists what is installed, and copies out dpkg's own list and where it came from.
func (b *builder) keepPackages(root *os.Root) error {
	b.installed = installed.Read(root.FS())
	files := linkFS{root}
	if b.system.family.Manager != distribution.Apt || !files.exists(dpkg.StatusFile) || !files.exists(b.system.family.Keyring) {
		b.disk.Say("the image does not say which packages it has, or whom it trusts for more: no driver stack can be added to it")
		return nil
	}
	sources, err := aptsource.Read(root.FS(), files.read)
	if err != nil {
		return err
	}
	err = errors.Join(
		bootdisk.CopyOut(root, dpkg.StatusFile, b.disk.Path(images.StatusFile)),
		bootdisk.CopyOut(root, b.system.family.Keyring, b.disk.Path(images.KeyringFile)),
		os.WriteFile(b.disk.Path(images.SourcesFile), []byte(sources), 0o644))
	b.kept = slices.Sorted(slices.Values([]string{images.StatusFile, images.KeyringFile, images.SourcesFile}))
	return err
}
