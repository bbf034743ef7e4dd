// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"strings"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/overrides"
)

// KeepPackages keeps the repositories of the driver stacks that a node was just
// accepted with, beside an image block and the digest that it had, so that a rollback
// finds them after the next build. One that is gone already is no error: a rollback to
// it is refused, and says why. over has the blocks of the stacks.
func (a Artifacts) KeepPackages(ctx context.Context, over *overrides.Desired, image, digest string, drivers []overrides.Driver) error {
	if a.Images == nil || !a.Images.Has(digest) {
		return nil
	}
	for _, d := range drivers {
		b, err := over.DriverBlock(d, overrides.Pin{})
		if err != nil {
			continue
		}
		if _, err := a.keepRepository(ctx, b, image, digest); err != nil {
			return err
		}
	}
	return nil
}

// CheckRestorable refuses a pin whose image or packages are not there any more: nothing
// is erased for what cannot be written again. Packages that are there are kept. over has
// the blocks of the stacks.
func (a Artifacts) CheckRestorable(ctx context.Context, over *overrides.Desired, p overrides.Pin) error {
	if a.Images == nil || !a.Images.Has(p.Digest) {
		return errkind.New(errkind.NotFound, "image %s, which %s was accepted with, is not in the image store any more", store.Short(p.Digest), p.Node).
			Do("Bring it back from a backup of the state folder, or choose another one: `ironrail rollback --list " + p.Node + "`. Nothing was erased.")
	}
	for _, d := range p.Drivers {
		b, err := over.DriverBlock(d, p)
		if err != nil {
			return err
		}
		kept, err := a.keepRepository(ctx, b, p.Image, p.Digest)
		if err != nil {
			return err
		}
		if !kept {
			return errkind.New(errkind.NotFound, "the packages of driver %s that %s was accepted with (for image %s) are not there any more: a later build took their place", d.Name, p.Node, store.Short(p.Digest)).
				Do("Bring the folder repo of the state folder back from a backup, or choose another acceptance: `ironrail rollback --list " + p.Node + "`. Nothing was erased.")
		}
	}
	return nil
}

// keepRepository keeps the packages of a driver stack for an image of a digest
// under a name of their own. It reports false when they are gone.
func (a Artifacts) keepRepository(ctx context.Context, d *inventory.Driver, image, digest string) (bool, error) {
	pin := overrides.Pin{Image: image, Digest: digest}
	o, err := a.repositoryOptions(d, image, digest)
	if err != nil {
		return false, err
	}
	return repo.Keep(ctx, o, repositoryName(d.Name, pin.ImageName()))
}

// repositoryName is what the repository of a driver stack for an image is called.
func repositoryName(driver, image string) string {
	return driver + "-" + strings.ReplaceAll(image, install.PinMark, "-at-")
}
