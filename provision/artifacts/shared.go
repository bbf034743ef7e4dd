// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// shimConflict is an image whose kernel is not started by the shim that its nodes are given, which is
// that of another image of the same distribution.
type shimConflict struct {
	image, by *inventory.Image
	why       error
}

// sharedShimAction is what is done about it.
const sharedShimAction = "Give all nodes with secure_boot images that one shim starts: all of Rocky, or all of Alma, and of one release where the maker has changed its key."

func (c *shimConflict) error() error {
	if c == nil {
		return nil
	}
	return errkind.New(errkind.Conflict, "nodes of image %s boot with Secure Boot by the shim of image %s, as both are of %s, and it does not start their kernel: %w", c.image.Name, c.by.Name, install.SignerOf(c.image), c.why).Do(sharedShimAction)
}

// checkAllShared returns what is wrong with images of one distribution, by the name that their shim is
// served by.
func (a Artifacts) checkAllShared(of map[string][]*inventory.Image) error {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if c, err := a.checkShared(of[name]); c != nil || err != nil {
			return cmp.Or(err, c.error())
		}
	}
	return nil
}

// checkShared looks whether one shim starts the kernels of all images that nodes get it for; that of
// the last one is its own, and was looked at when that was built. It returns the first that it does
// not start; nil: it starts all.
func (a Artifacts) checkShared(all []*inventory.Image) (*shimConflict, error) {
	if len(all) < 2 {
		return nil, nil
	}
	by := all[len(all)-1]
	shim, err := a.shimOf(by)
	if err != nil {
		return nil, err
	}
	for _, i := range all[:len(all)-1] {
		own, err := a.shimOf(i)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(own, shim) {
			continue
		}
		digest, err := a.Digest(i)
		if err != nil {
			return nil, err
		}
		kernel, err := a.readFile(digest, images.KernelFile, maxKernel)
		if err != nil {
			return nil, fmt.Errorf("image %s: kernel: %w", i.Name, err)
		}
		if err := bootdisk.Starts(shim, kernel); err != nil {
			return &shimConflict{i, by, err}, nil
		}
	}
	return nil, nil
}

// shimOf reads the shim that an image brings.
func (a Artifacts) shimOf(i *inventory.Image) ([]byte, error) {
	digest, err := a.Digest(i)
	if err != nil {
		return nil, err
	}
	shim, err := a.readFile(digest, images.SignedLoaders(i.Arch)[0], maxLoader)
	if err != nil {
		return nil, fmt.Errorf("image %s: shim: %w", i.Name, err)
	}
	return shim, nil
}

// Unshared are the errors of a plan about images in the store whose nodes would be given the shim of another
// maker, which does not start their kernel. Of images that are not built it is not known: `apply`
// then finds it before a node is powered. digests are those of images, by name.
func (a Artifacts) Unshared(digests map[string]string) (found hcl.Diagnostics) {
	of, order := map[string][]*inventory.Image{}, []string{} // by the name that a shim is served by
	for _, i := range a.inv.Images {
		digest, file := digests[i.Name], images.SignedLoaders(i.Arch)[0]
		if !i.SecureBoot || digest == "" || a.Images == nil || !a.Images.Has(digest) {
			continue
		}
		if _, err := a.Images.Where(digest, file); err != nil {
			continue // one without signed loaders is another error
		}
		name := loader.In(install.SignerOf(i), file)
		if len(of[name]) == 0 {
			order = append(order, name)
		}
		of[name] = append(of[name], i)
	}
	for _, name := range order {
		c, err := a.checkShared(of[name])
		switch {
		case err != nil: // apply reads the same files again, and verifies them
			found = append(found, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Signed loaders cannot be read", Subject: &of[name][0].Decl, Detail: fmt.Sprintf("Whether one shim starts the kernels of all images of %s is not known: %v.", install.SignerOf(of[name][0]), err)})
		case c != nil:
			found = append(found, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Shim does not start the kernel of another image", Subject: &c.image.Decl,
				Detail: fmt.Sprintf("Nodes of image %q boot with Secure Boot by the shim of image %q (%s:%d), as both are of %s, and it does not start their kernel: %v. %s", c.image.Name, c.by.Name, c.by.Decl.Filename, c.by.Decl.Start.Line, install.SignerOf(c.image), c.why, sharedShimAction)})
		}
	}
	return found
}
