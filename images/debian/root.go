// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/manifest"
)

// dpkgOptions keep documentation and translations out, now and in later upgrades.
// Licences stay.
var dpkgOptions = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
	"path-exclude=/usr/share/lintian/*",
}

// settings are the files of every image, besides what packages bring.
func (r Recipe) settings() map[string]string {
	all := bootdisk.Settings(r.family(), r.arch())
	maps.Copy(all, r.Of.Files)
	return all
}

// early are the settings that packages, and what installs them, read meanwhile.
func (r Recipe) early() []string {
	return append(slices.Sorted(maps.Keys(r.Of.Files)), "etc/fstab", "etc/kernel-img.conf")
}

// customize runs in mmdebstrap's shell with the root as $1. It is the same for
// every recipe.
const customize = `chroot "$1" systemctl enable systemd-networkd.service`

// makeArchives runs in mmdebstrap's shell as well: apt's cache is not there yet.
const makeArchives = `mkdir -p "$1"/var/cache/apt/archives`

// withoutInitrd keeps the package of a kernel from making an initrd, by the hook of
// initramfs-tools (/etc/kernel/postinst.d/initramfs-tools).
const withoutInitrd = "INITRD=No"

// mmdebstrap is its command line for a variant, with options in front of what all have.
func (b *builder) mmdebstrap(root, variant string, options ...string) []string {
	argv := append([]string{"mmdebstrap", "--mode=root", "--variant=" + variant, "--architectures=" + string(b.recipe.arch()), "--format=directory"}, options...)
	if b.recipe.Key != "" {
		argv = append(argv, "--keyring="+b.keyring)
	}
	return append(append(argv, b.recipe.Release, root), b.recipe.Mirrors...)
}

// Links in the maker's folder to what was fetched: mmdebstrap's hooks name no folder of
// this controller.
const (
	listsLink    = "lists"
	archivesLink = "archives"
)

// bootstrap makes the root file system of the lists and packages that were fetched. What
// mmdebstrap takes beyond them it fetches itself.
func (b *builder) bootstrap(ctx context.Context) error {
	settings := b.recipe.settings()
	for _, name := range b.recipe.early() {
		to := filepath.Join(b.disk.Dir, "early", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(settings[name]), 0o644)); err != nil {
			return err
		}
	}
	downloads, err := filepath.Abs(b.downloads())
	if err != nil {
		return err
	}
	for link, to := range map[string]string{listsLink: filepath.Join(downloads, indexDir, listsDir), archivesLink: filepath.Join(downloads, archivesDir)} {
		if err := os.Symlink(to, filepath.Join(b.disk.Dir, link)); err != nil {
			return err
		}
	}
	options := []string{
		"--include=" + strings.Join(b.recipe.include(), ","), "--skip=update",
		"--setup-hook=" + makeArchives,
		"--setup-hook=sync-in " + listsLink + " /var/lib/apt/lists", "--setup-hook=sync-in " + archivesLink + " /var/cache/apt/archives",
		"--essential-hook=sync-in early /", "--customize-hook=" + customize,
	}
	for _, o := range dpkgOptions {
		options = append(options, "--dpkgopt="+o)
	}
	argv := b.mmdebstrap(b.disk.Root, "minbase", options...)
	if b.recipe.initrd() == manifest.InitrdOnNode || b.recipe.InMemory {
		argv = append([]string{"env", withoutInitrd}, argv...)
	}
	return b.disk.Run(ctx, tool.MmdebstrapPhases(b.disk.Say), argv...)
}

// settle makes the root that of any node, and copies out what later builds need.
func (b *builder) settle(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(b.disk.Settle(root), b.settleArchive(root), b.keep(root)); err != nil || b.recipe.initrd() == "" {
		return err
	}
	return b.recipe.linkInitrd(root)
}

// linkInitrd makes the link to the initrd that the node will make: without one, the package
// of a kernel leaves the link out (linux-update-symlinks of linux-base).
func (r Recipe) linkInitrd(root *os.Root) error {
	release, err := bootdisk.NewestKernel(root.FS())
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(r.family().Boot.InitrdLink, "/")
	return root.Symlink(r.family().Boot.Links(release)[name], name)
}

// keep copies out what a package repository for this image is resolved against, and lists
// its packages.
func (b *builder) keep(root *os.Root) error {
	for name, from := range map[string]string{
		images.StatusFile: dpkg.StatusFile, images.SourcesFile: sourcesList, images.KeyringFile: b.recipe.keyringFile(),
	} {
		if err := bootdisk.CopyOut(root, from, b.disk.Path(name)); err != nil {
			return err
		}
	}
	b.installed = installed.Read(root.FS())
	return nil
}
