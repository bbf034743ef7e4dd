// SPDX-License-Identifier: Apache-2.0

// Package ubuntu is the kind "ubuntu": images of Ubuntu, made of its packages as those of
// Debian are, from the archive that the site names.
package ubuntu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is the kind "ubuntu". It implements images.Kind.
type Kind struct{}

// releases are those with long-term support that images are made of. None was ever built
// from Ubuntu's own archive; see TestSystem/ubuntu-like in examples/lab.
var releases = []string{"22.04", "24.04", "26.04"}

// components are those that packages come from where the site names none: what Ubuntu
// itself supports, the drivers of vendors, and what its community keeps, such as nvme-cli
// and Open MPI (help.ubuntu.com, Repositories).
var components = []string{"main", "restricted", "universe"}

// pockets are the suites of a release, each behind its codename: as it was released,
// updates, which have the newer kernels (HWE), and security (wiki.ubuntu.com, Pocket).
var pockets = []string{"", "-updates", "-security"}

// base are the packages of every image beside those of all distributions.
var base = []string{"netplan.io"}

// snapd is the package that keeps snaps up to date by itself.
const snapd = "snapd"

// withoutSnapd keeps it out, also where another package asks for it: some of Ubuntu's are
// only the way to a snap (apt_preferences(5)).
var withoutSnapd = map[string]string{
	"etc/apt/preferences.d/ironrail-snapd": "# Written by ironrail: snaps update themselves. Add snapd to the packages of the image to have them.\nPackage: snapd\nPin: release a=*\nPin-Priority: -10\n",
}

// Name implements images.Kind.
func (Kind) Name() string { return distribution.Ubuntu }

// Supports implements images.Kind. The signed loaders of arm64 are Debian's, under
// Debian's keys, which an image of Ubuntu does not have.
func (Kind) Supports(i *inventory.Image) error {
	if i.Arch == inventory.ARM64 {
		return errkind.New(errkind.Unsupported, "images of kind ubuntu are made for %s; image %q is of %s", inventory.AMD64, i.Name, i.Arch)
	}
	r, ok := distribution.ParseRelease(distribution.Ubuntu, i.Release)
	if !ok || !slices.Contains(releases, r.Version) {
		return errkind.New(errkind.Unsupported, "images of Ubuntu %s are built; image %q has release %q", strings.Join(releases, ", "), i.Name, i.Release)
	}
	return nil
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, _ string) images.Recipe {
	r := debian.Recipe{Block: i.Name, Arch: i.Arch, Kernel: i.Kernel, Packages: i.Packages, Storage: i.Storage, Key: i.Archive.Key, SecureBoot: i.SecureBoot, InMemory: i.Diskless(),
		Of: debian.Distribution{Family: distribution.Ubuntu, Base: base}}
	if release, ok := distribution.ParseRelease(distribution.Ubuntu, i.Release); ok {
		f, _ := distribution.Find(release.Family)
		r.Release = f.Codename(release)
	}
	if !slices.Contains(i.Packages, snapd) {
		r.Of.Files = withoutSnapd
	}
	if i.Archive.URL != "" {
		r.Mirrors = mirrors(i.Archive, r.Release)
	}
	return recipe{r, i.Archive}
}

// mirrors are the lines of sources.list(5) for a release.
func mirrors(a inventory.PackageArchive, codename string) (lines []string) {
	of := a.Components
	if len(of) == 0 {
		of = components
	}
	for _, p := range pockets {
		lines = append(lines, fmt.Sprintf("deb %s %s%s %s", a.URL, codename, p, strings.Join(of, " ")))
	}
	return lines
}

// recipe is that of Debian with an archive that has to be given.
type recipe struct {
	debian.Recipe
	archive inventory.PackageArchive
}

// Check implements images.Recipe: nothing is built without the key of its archive, since
// a controller of Debian has none of Ubuntu's.
func (r recipe) Check() error {
	refused := func(format string, args ...any) error {
		return errkind.New(errkind.Refused, "image %s: "+format, append([]any{r.Block}, args...)...).
			Do("Write repository { url = \"http://mirror.example/ubuntu\", key = file(\"keys/ubuntu.asc\") } in its block, with the address of the site's mirror and the public key that its archive is signed with, in ASCII armor.")
	}
	switch {
	case r.archive.URL == "" || strings.TrimSpace(r.archive.Key) == "":
		return refused("nothing says where its packages come from, and whose signature they have")
	case !strings.HasPrefix(r.archive.URL, "http://") && !strings.HasPrefix(r.archive.URL, "https://") || strings.ContainsAny(r.archive.URL, " \t\n[]@"):
		return refused("%q is no URL of an archive", r.archive.URL)
	}
	for _, c := range r.archive.Components {
		if c == "" || strings.Trim(c, "abcdefghijklmnopqrstuvwxyz0123456789-/") != "" {
			return refused("%q is no component of an archive", c)
		}
	}
	return r.Recipe.Check()
}
