// SPDX-License-Identifier: Apache-2.0

// Package diskless is the kind "diskless": root file systems that nodes keep in memory. They are made
// as images of their distribution are, and are a squashfs in the place of a disk.
package diskless

import (
	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/ubuntu"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Kind is the kind "diskless". It implements images.Kind.
type Kind struct{}

// Name implements images.Kind.
func (Kind) Name() string { return inventory.KindDiskless }

// of is the kind that makes the root file system.
func of(i *inventory.Image) images.Kind {
	if i.OS == distribution.Ubuntu {
		return ubuntu.Kind{}
	}
	return debian.Kind{}
}

// Supports implements images.Kind.
func (Kind) Supports(i *inventory.Image) error {
	switch {
	case i.Arch == inventory.ARM64:
		return errkind.New(errkind.Unsupported, "images of kind diskless are made for %s; image %q is of %s", inventory.AMD64, i.Name, i.Arch)
	case len(i.Storage) > 0:
		return errkind.New(errkind.Unsupported, "image %q is of kind diskless: it is kept in memory, and a disk layout takes another", i.Name)
	}
	return of(i).Supports(i)
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, site string) images.Recipe { return of(i).Recipe(i, site) }
