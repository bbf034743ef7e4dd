// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

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

// kernelOf is the release that an image's kernel package names, as in
// linux-image-6.1.0-56-amd64; "" for packages such as linux-image-amd64, which
// mean the newest.
func kernelOf(i *inventory.Image) string {
	release, ok := strings.CutPrefix(i.Kernel, "linux-image-")
	if !ok || release == "" || release[0] < '0' || release[0] > '9' {
		return ""
	}
	return strings.TrimPrefix(release, "unsigned-")
}

// HeadersPackage returns the package with the headers that modules are built with for the
// kernel of an image. Where its release is not known yet they are those that come
// with the image's kernel package.
func HeadersPackage(i *inventory.Image, b Base) string {
	switch {
	case b.System.Family == "rhel" && b.Kernel != "":
		return "kernel-devel-" + b.Kernel
	case b.System.Family == "rhel":
		return "kernel-devel-matched"
	case b.Kernel != "":
		return "linux-headers-" + b.Kernel
	}
	if rest, ok := strings.CutPrefix(i.Kernel, "linux-image-"); ok {
		return "linux-headers-" + rest
	}
	if b.System.Family == "ubuntu" {
		return "linux-headers-generic"
	}
	return "linux-headers-amd64"
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
