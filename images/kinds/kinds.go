// SPDX-License-Identifier: Apache-2.0

// Package kinds lists the kinds of images that are built and installed.
package kinds

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/diskless"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/oci"
	"github.com/ironrail/ironrail/images/raw"
	"github.com/ironrail/ironrail/images/rhel"
	"github.com/ironrail/ironrail/images/ubuntu"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// All are the kinds, in the order in which they are named.
func All() []images.Kind {
	return []images.Kind{
		debian.Kind{},
		oci.Kind{},
		ubuntu.Kind{},
		raw.Kind{},
		diskless.Kind{},
		rhel.Kind{},
	}
}

// Names are the labels of the kinds.
func Names() (names []string) {
	for _, k := range All() {
		names = append(names, k.Name())
	}
	return names
}

// Of returns the kind of an image block. A block that nothing builds is Unsupported,
// with what would be built.
func Of(i *inventory.Image) (images.Kind, error) {
	all := All()
	n := slices.IndexFunc(all, func(k images.Kind) bool { return k.Name() == i.Kind })
	if n < 0 {
		return nil, errkind.New(errkind.Unsupported, "image %q is of kind %q; this version builds images of kind %s", i.Name, i.Kind, strings.Join(Names(), ", "))
	}
	if err := distribution.CheckEncryption(i); err != nil {
		return all[n], err
	}
	return all[n], all[n].Supports(i)
}

// LeavesInitrd reports whether the image of a block leaves it to the node to make its initrd.
func LeavesInitrd(i *inventory.Image) bool {
	k, err := Of(i)
	leaver, ok := k.(images.InitrdLeaver)
	return err == nil && ok && leaver.LeavesInitrd(i)
}

// Supported reports whether an image block is built and installed here.
func Supported(i *inventory.Image) bool {
	_, err := Of(i)
	return err == nil
}
