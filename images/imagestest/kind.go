// SPDX-License-Identifier: Apache-2.0

// Package imagestest is the conformance suite of kinds of images.
package imagestest

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// Case is a kind with the blocks that it is tried on.
type Case struct {
	Kind images.Kind
	// Built are blocks that an image can be made of.
	Built []inventory.Image
	// Whole are the names of those of which no disk layout but the image's own disk is
	// made: for another one they are not supported.
	Whole []string
	// Unsupported are blocks of the kind that nothing is built from, by what the
	// error says.
	Unsupported map[string]inventory.Image
	// Wrong are blocks that can never be built as they are written, by what the error
	// says: what is in them would reach a command line, or is not there.
	Wrong map[string]inventory.Image
	// Same are pairs of blocks that make one image.
	Same [][2]inventory.Image
}

var digest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// Run tries a kind.
func Run(t *testing.T, c Case) {
	if c.Kind.Name() == "" || len(c.Built) == 0 || len(c.Unsupported) == 0 || len(c.Wrong) == 0 {
		t.Fatal("the case tries nothing")
	}
	if _, ok := inventory.DefaultKinds().Image[c.Kind.Name()]; !ok {
		t.Errorf("the language has no image kind %q", c.Kind.Name())
	}
	seen := map[string]string{}
	for _, i := range c.blocks(c.Built) {
		tryBuilt(t, c.Kind, &i, seen)
		tryLayouts(t, c.Kind, &i, slices.Contains(c.Whole, i.Name))
	}
	for want, i := range c.Unsupported {
		c.tryUnsupported(t, i, want)
	}
	for want, i := range c.Wrong {
		c.tryWrong(t, i, want)
	}
	for _, pair := range c.Same {
		two := c.blocks(pair[:])
		if a, b := c.Kind.Recipe(&two[0], t.TempDir()), c.Kind.Recipe(&two[1], t.TempDir()); a.Digest() != b.Digest() || a.Inputs() != b.Inputs() {
			t.Errorf("%+v and %+v are one image, and have other digests", two[0], two[1])
		}
	}
}

// tryUnsupported tries a block that nothing is built from.
func (c Case) tryUnsupported(t *testing.T, i inventory.Image, want string) {
	t.Helper()
	i.Kind = c.Kind.Name()
	err := c.Kind.Supports(&i)
	if errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+i.Name+`"`) {
		t.Errorf("%+v: %v; want one that is Unsupported and says %q and the image", i, err, want)
	}
}

// tryWrong tries a block that can never be built as it is written.
func (c Case) tryWrong(t *testing.T, i inventory.Image, want string) {
	t.Helper()
	i.Kind = c.Kind.Name()
	if err := c.Kind.Supports(&i); err != nil {
		t.Errorf("%s: the kind does not support it, so that Check is not asked: %v", want, err)
		return
	}
	err := c.Kind.Recipe(&i, t.TempDir()).Check()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), i.Name) {
		t.Errorf("%+v: %v; want one that says %q and the image", i, err, want)
	}
}

// tryLayouts tries a block of an image whose nodes have disk layouts: it has its files
// beside its disk, and is another image than one without them. One that is whole is refused.
func tryLayouts(t *testing.T, k images.Kind, i *inventory.Image, whole bool) {
	t.Helper()
	plain, tree := k.Recipe(i, t.TempDir()), *i
	for _, storage := range [][]string{{inventory.StorageTree}, {inventory.StorageRAID, inventory.StorageTree, inventory.StorageXFS}, {inventory.StorageLVM, inventory.StorageTree}} {
		tree.Storage = storage
		err := k.Supports(&tree)
		if whole {
			if errkind.Of(err) != errkind.Unsupported {
				t.Errorf("%+v for layouts of %v: %v", i, storage, err)
			}
			continue
		}
		r := k.Recipe(&tree, t.TempDir())
		if err == nil {
			err = r.Check()
		}
		if err != nil || r.Digest() == plain.Digest() || r.Inputs() == plain.Inputs() {
			t.Errorf("%+v for layouts of %v: %v, digest %s, inputs %s", i, storage, err, r.Digest(), r.Inputs())
		}
	}
}

// blocks are copies of blocks, of the kind.
func (c Case) blocks(of []inventory.Image) []inventory.Image {
	of = slices.Clone(of)
	for n := range of {
		of[n].Kind = c.Kind.Name()
	}
	return of
}

// tryBuilt tries a block that an image can be made of. seen has the digests of the
// others.
func tryBuilt(t *testing.T, k images.Kind, i *inventory.Image, seen map[string]string) {
	t.Helper()
	if err := k.Supports(i); err != nil {
		t.Errorf("%+v: %v", i, err)
		return
	}
	before := *i
	r := k.Recipe(i, t.TempDir())
	if err := r.Check(); err != nil {
		t.Errorf("%+v: %v", i, err)
	}
	if r.Name() != "image."+i.Name {
		t.Errorf("%q is called %q", i.Name, r.Name())
	}
	for what, got := range map[string]string{"digest": r.Digest(), "inputs": r.Inputs()} {
		if !digest.MatchString(got) {
			t.Errorf("%s: %s is %q", i.Name, what, got)
		}
		if other, ok := seen[what+got]; ok {
			t.Errorf("%+v has the %s of %s", i, what, other)
		}
		seen[what+got] = i.Name
	}
	again := k.Recipe(i, t.TempDir())
	if again.Digest() != r.Digest() || again.Inputs() != r.Inputs() {
		t.Errorf("%s: another digest each time", i.Name)
	}
	if !slices.Equal(before.Packages, i.Packages) || before.Release != i.Release || before.Source != i.Source {
		t.Errorf("%s: the block was changed", i.Name)
	}
	for _, a := range r.Archives() {
		if a.URL == "" {
			t.Errorf("%s: an archive without a URL", i.Name)
		}
	}
}
