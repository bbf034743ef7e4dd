// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/predict"
)

// recipe is what an image block is built from.
func (a Artifacts) recipe(i *inventory.Image) (images.Recipe, error) { return recipe(i, a.inv.Dir) }

func recipe(i *inventory.Image, site string) (images.Recipe, error) {
	k, err := kinds.Of(i)
	if err != nil {
		return nil, err
	}
	return k.Recipe(i, site), nil
}

// Recipe is the digest of what an image block is built from; "" for one that
// this version does not build.
func Recipe(i *inventory.Image) string {
	r, err := recipe(i, "")
	if err != nil {
		return ""
	}
	return r.Digest()
}

// built finds the image that a block's recipe was built into; "" when there is none.
func (a Artifacts) built(i *inventory.Image) (string, error) {
	r, err := a.recipe(i)
	if err != nil || a.Images == nil {
		return "", nil
	}
	digest, _, err := a.Images.Find(r.Digest())
	return digest, err
}

// Digest is the manifest digest that nodes are installed with: the pinned one,
// else the locked one, else that of the image that the recipe was built into; ""
// when there is none. What is locked holds while the block declares the same and
// the image is in the store, or while there is no other: then a plan can be made,
// and Verify refuses to erase anything for it.
func (a Artifacts) Digest(i *inventory.Image) (string, error) {
	if i.Digest != "" {
		return i.Digest, nil
	}
	locked := a.lockedImage(i)
	if locked != "" && a.Images != nil && a.Images.Has(locked) {
		return locked, nil
	}
	built, err := a.built(i)
	if built == "" && err == nil {
		built = locked
	}
	return built, err
}

// lockedImage is the digest that the lock file has for an image block as it
// stands; "" when it has none.
func (a Artifacts) lockedImage(i *inventory.Image) string {
	r, err := a.recipe(i)
	if entry, ok := a.inv.Lock.Image(i.Name); ok && err == nil && entry.Inputs == r.Inputs() {
		return entry.Digest
	}
	return ""
}

// Digests are the manifest digests of the site's images by name.
func (a Artifacts) Digests() (map[string]string, error) {
	out := map[string]string{}
	for _, i := range a.inv.Images {
		digest, err := a.Digest(i)
		if err != nil {
			return nil, err
		}
		out[i.Name] = digest
	}
	return out, nil
}

// Library gives nodes their images. It implements install.Images.
type Library struct {
	of   Artifacts
	root string // URL of the HTTP root
}

// Library gives nodes the images, over the HTTP root of that URL.
func (a Artifacts) Library(root string) Library { return Library{a, root} }

// Image implements install.Images.
func (l Library) Image(name string) (install.Image, error) {
	i, err := l.of.image(name)
	if err != nil {
		return install.Image{}, err
	}
	digest, err := l.of.Digest(i)
	if err != nil {
		return install.Image{}, err
	}
	at := l.root + imagesPrefix
	return install.Image{Digest: digest, Drivers: l.drivers(digest), ManifestURL: at + store.Path(digest, store.ManifestFile), BlobURL: at + store.Path(digest, store.BlobFile),
		PublicKey: l.of.Images.PublicKey(), Initrd: func() (string, error) {
			m, err := l.of.Images.Manifest(digest)
			return m.Initrd, err
		}}, nil
}

// drivers reads what an image has drivers for; nil where it does not say.
func (l Library) drivers(digest string) func() (*modalias.List, error) {
	path, err := l.of.Images.Where(digest, images.DriversFile)
	if err != nil {
		return nil // built by an older version; what is damaged is refused by Verify
	}
	return func() (*modalias.List, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return modalias.Parse(f)
	}
}

// Verify implements install.Images: the pin first, then every byte.
func (l Library) Verify(ctx context.Context, name string) error {
	i, err := l.of.image(name)
	if err != nil {
		return err
	}
	built, err := l.of.built(i)
	if err != nil {
		return err
	}
	want, err := l.of.Digest(i)
	if err != nil {
		return err
	}
	if _, err := l.of.Images.Manifest(want); err != nil {
		have := "nothing is built from its recipe"
		if built != "" {
			have = "its recipe was built into " + store.Short(built)
		}
		return errkind.New(errkind.NotFound, "image %s must have digest %s, and the store has no whole image of that digest: %s", name, store.Short(want), have).
			Do(absent(i))
	}
	return l.of.Images.Verify(ctx, want)
}

// absent is what to do about an image that is not in the store.
func absent(i *inventory.Image) string {
	if block, _, pinned := strings.Cut(i.Name, install.PinMark); pinned {
		return fmt.Sprintf("Bring the image back into the store, or let the node follow image %q of the site again: `ironrail rollback --release NODE`. Nothing was erased.", block)
	}
	if i.Digest != "" {
		return fmt.Sprintf("Correct the digest of image %q, or build it: `ironrail image build %s`. Nothing was erased.", i.Name, i.Name)
	}
	return fmt.Sprintf("Bring the image back into the store, or build it (`ironrail image build %s`) and take what was built (`ironrail lock --upgrade %s`). Nothing was erased.", i.Name, i.Name)
}

// ImageSizes is what the images of the store move; those that are not built are
// left out.
func (a Artifacts) ImageSizes() map[string]predict.Image {
	sizes := map[string]predict.Image{}
	for _, i := range a.inv.Images {
		digest, err := a.Digest(i)
		if err != nil || digest == "" || a.Images == nil {
			continue
		}
		m, err := a.Images.Manifest(digest)
		if err != nil {
			continue // a plan says it, and what to do
		}
		sizes[i.Name] = predict.ImageOf(m)
	}
	return sizes
}
