// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
)

// HasRepository reports whether a block names a repository of its own: the packages
// are then the vendor's, else those of the distribution.
func HasRepository(d *inventory.Driver) bool { return len(ListSources(d)) > 0 }

// ListSources returns the `repository` of a block: a flat one (a folder with a Packages
// file), or one with a suite and its components.
func ListSources(d *inventory.Driver) []repo.Source {
	block, ok := inventory.Attribute(d.Value, "repository")
	if !ok {
		return nil
	}
	text := func(name string) string {
		v, ok := inventory.Attribute(block, name)
		if !ok || v.Type() != cty.String {
			return ""
		}
		return v.AsString()
	}
	s := repo.Source{URL: text("url"), Suite: text("suite"), Components: inventory.Block{Value: block}.Texts("components"), Key: []byte(text("key"))}
	if s.URL == "" {
		return nil
	}
	if s.Suite == "" {
		s.Suite = "./"
	}
	return []repo.Source{s}
}

// kernelOf is the release that an image's kernel package names; "" for packages that
// mean the newest.
func kernelOf(i *inventory.Image) string {
	f, _ := distribution.FamilyOf(i)
	return f.KernelRelease(i.Kernel)
}

// HasOwnArchive reports whether the archive of an image's distribution has drivers.
func HasOwnArchive(i *inventory.Image) bool {
	f, ok := distribution.FamilyOf(i)
	return ok && f.OwnArchive
}

// FromOwnArchive reports whether a driver comes from the archive of the image's
// distribution: it has drivers, and the block names no repository.
func FromOwnArchive(i *inventory.Image, d *inventory.Driver) bool {
	return HasOwnArchive(i) && !HasRepository(d)
}

// packagesServed reports whether package repositories are built for an image. Of a disk image
// with RPM packages it is not known where these came from.
func packagesServed(i *inventory.Image) bool {
	f, ok := distribution.FamilyOf(i)
	return ok && (f.Manager == distribution.Apt || i.Source == "")
}

// HeadersPackage is the name of the package with the headers that modules are built with for
// the kernel of an image.
func HeadersPackage(i *inventory.Image, b Base) string {
	f, _ := distribution.Find(b.System.Family)
	name, _ := f.HeadersPackage(b.Kernel, i.Kernel)
	return name
}

// AddHeaders adds the package with the headers that modules are built with for the kernel of
// an image.
func AddHeaders(i *inventory.Image, b Base, s *Set) {
	f, _ := distribution.Find(b.System.Family)
	name, version := f.HeadersPackage(b.Kernel, i.Kernel)
	s.Packages = append(s.Packages, name)
	if version != "" {
		s.Pins = append(s.Pins, repo.Pin{Packages: []string{name}, Version: version})
	}
}

// AddExtra adds the packages that a block names by itself, as NAME or NAME=VERSION.
func AddExtra(d *inventory.Driver, s *Set) {
	for _, p := range d.Packages {
		name, version, pinned := strings.Cut(p, "=")
		s.Packages = append(s.Packages, name)
		if pinned {
			s.Pins = append(s.Pins, repo.Pin{Packages: []string{name}, Version: version})
		}
	}
}
