package provision

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// recipe is what an image block is built from.
func recipe(i *inventory.Image) debian.Recipe {
	return debian.Recipe{Block: i.Name, Release: i.Release, Kernel: i.Kernel, Packages: i.Packages}
}

// Recipe is the digest of what an image block is built from; "" for a kind that
// this ironrail does not build.
func Recipe(i *inventory.Image) string {
	if i.Kind != debian.Kind {
		return ""
	}
	return recipe(i).Digest()
}

// built finds the image that a block's recipe was built into; "" when there is none.
func (s *Site) built(i *inventory.Image) (string, error) {
	if i.Kind != debian.Kind || s.Images == nil {
		return "", nil
	}
	digest, _, err := s.Images.Find(recipe(i).Digest())
	return digest, err
}

// digest is the manifest digest that nodes are installed with: the pinned one,
// else the locked one, else that of the image that the recipe was built into; ""
// when there is none. What is locked holds while the block declares the same and
// the image is in the store, or while there is no other: then a plan can be made,
// and Verify refuses to erase anything for it.
func (s *Site) digest(i *inventory.Image) (string, error) {
	if i.Digest != "" {
		return i.Digest, nil
	}
	locked := s.lockedImage(i)
	if locked != "" && s.Images != nil && s.Images.Has(locked) {
		return locked, nil
	}
	built, err := s.built(i)
	if built == "" && err == nil {
		built = locked
	}
	return built, err
}

// lockedImage is the digest that the lock file has for an image block as it
// stands; "" when it has none.
func (s *Site) lockedImage(i *inventory.Image) string {
	if entry, ok := s.Inv.Lock.Image(i.Name); ok && i.Kind == debian.Kind && entry.Inputs == recipe(i).Inputs() {
		return entry.Digest
	}
	return ""
}

// digests are the manifest digests of the site's images by name.
func (s *Site) digests() (map[string]string, error) {
	out := map[string]string{}
	for _, i := range s.Inv.Images {
		digest, err := s.digest(i)
		if err != nil {
			return nil, err
		}
		out[i.Name] = digest
	}
	return out, nil
}

// library gives nodes their images. It implements install.Images.
type library struct {
	site *Site
	root string // URL of the HTTP root
}

// Image implements install.Images.
func (l library) Image(name string) (install.Image, error) {
	i, err := l.site.image(name)
	if err != nil {
		return install.Image{}, err
	}
	digest, err := l.site.digest(i)
	if err != nil {
		return install.Image{}, err
	}
	at := l.root + imagesPrefix
	return install.Image{Digest: digest, ManifestURL: at + store.Path(digest, store.ManifestFile), BlobURL: at + store.Path(digest, store.BlobFile),
		PublicKey: l.site.Images.PublicKey()}, nil
}

// Verify implements install.Images: the pin first, then every byte.
func (l library) Verify(ctx context.Context, name string) error {
	i, err := l.site.image(name)
	if err != nil {
		return err
	}
	built, err := l.site.built(i)
	if err != nil {
		return err
	}
	want, err := l.site.digest(i)
	if err != nil {
		return err
	}
	if _, err := l.site.Images.Manifest(want); err != nil {
		have := "nothing is built from its recipe"
		if built != "" {
			have = "its recipe was built into " + store.Short(built)
		}
		return errkind.New(errkind.Mismatch, "image %s must have digest %s, and the store has no whole image of that digest: %s", name, store.Short(want), have).
			Do(absent(i))
	}
	return l.site.Images.Verify(ctx, want)
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

// image finds an image block.
func (s *Site) image(name string) (*inventory.Image, error) {
	for _, i := range s.Inv.Images {
		if i.Name == name {
			return i, nil
		}
	}
	return nil, errkind.New(errkind.Mismatch, "image %q is not in the inventory", name)
}

// boot is the install ramdisk of each image, from the store, with this program's
// agent. It implements install.Ramdisk.
type boot struct {
	site  *Site
	agent []byte // the agent's segment
}

// ramdisk packs the agent; the rest is in the store.
func (s *Site) ramdisk() (boot, error) {
	program, err := os.ReadFile(s.agent)
	if err != nil {
		return boot{}, errkind.New(errkind.Mismatch, "the agent for the install ramdisk: %w", err).
			Do("Put the static ironrail-agent of the same build beside ironrail: `make build`.")
	}
	segment, err := ramdisk.Agent(program)
	return boot{s, segment}, err
}

// Open implements install.Ramdisk.
func (b boot) Open(node string) (kernel install.Segment, initrd []install.Segment, done func(), err error) {
	n, ok := b.site.Inv.Node(node)
	if !ok {
		return nil, nil, nil, errkind.New(errkind.Mismatch, "%s is not in the inventory", node)
	}
	digest, err := b.site.ramdiskOf(n)
	if err != nil {
		return nil, nil, nil, err
	}
	k, err := b.site.Images.Open(digest, debian.KernelFile)
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := b.site.Images.Open(digest, debian.InitrdFile)
	if err != nil {
		k.Close()
		return nil, nil, nil, err
	}
	done = func() { k.Close(); m.Close() }
	ks, err1 := section(k)
	ms, err2 := section(m)
	if err1 != nil || err2 != nil {
		done()
		return nil, nil, nil, fmt.Errorf("install ramdisk of image %s cannot be read", digest)
	}
	return ks, []install.Segment{ms, bytes.NewReader(b.agent)}, done, nil
}

// ramdiskOf is the digest of the image whose ramdisk a node boots: its own, or, for
// one that is being decommissioned and gets none, any that is there.
func (s *Site) ramdiskOf(n *inventory.Node) (string, error) {
	if n.Image != nil {
		return s.digest(n.Image)
	}
	if n.Retired && s.Images != nil {
		for _, i := range s.Inv.Images {
			if digest, err := s.digest(i); err == nil && digest != "" && s.Images.Has(digest) {
				return digest, nil
			}
		}
		return "", errkind.New(errkind.Mismatch, "no image is built whose ramdisk %s could be wiped from", n.Name).Do("`ironrail image build` builds one.")
	}
	return "", errkind.New(errkind.Mismatch, "%s has no image", n.Name)
}

// Own implements install.Ramdisk.
func (b boot) Own(w wire.Boot) ([]byte, error) { return ramdisk.NodeSegment(w) }

func section(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, info.Size()), nil
}
