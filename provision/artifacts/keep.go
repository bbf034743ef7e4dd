package artifacts

import (
	"context"
	"strings"

	"github.com/ironrail/ironrail/images/repo"
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
		if _, err := a.KeepRepository(ctx, b, image, digest); err != nil {
			return err
		}
	}
	return nil
}

// KeepRepository keeps the packages of a driver stack for an image of a digest
// under a name of their own. It reports false when they are gone.
func (a Artifacts) KeepRepository(ctx context.Context, d *inventory.Driver, image, digest string) (bool, error) {
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
