// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/inbox"
	stacks "github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/tools"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// served reports whether this controller makes a repository of a stack for the
// nodes of an image.
func served(d *inventory.Driver, i *inventory.Image) bool {
	return d.Kind == inbox.Name || (d.Kind == tools.Name || stacks.Recipes()[d.Kind] != nil) && kinds.Supported(i)
}

// selector says what the repository of a stack for the nodes of an image is made of.
// kernel is the release of the image's kernel; "" when nobody knows it.
type selector func(inv *inventory.Inventory, d *inventory.Driver, i *inventory.Image, kernel string) (stack.Selection, error)

// selectorOf is that of a kind whose packages are computed; nil where a block lists them.
func (a Artifacts) selectorOf(kind string) selector {
	if kind == tools.Name {
		return func(inv *inventory.Inventory, d *inventory.Driver, i *inventory.Image, kernel string) (stack.Selection, error) {
			return tools.Select(stacks.Recipes(), inv, d, i, kernel)
		}
	}
	recipe := stacks.Recipes()[kind]
	if recipe == nil {
		return nil
	}
	return func(inv *inventory.Inventory, d *inventory.Driver, i *inventory.Image, kernel string) (stack.Selection, error) {
		return stack.Select(recipe, inv, d, i, kernel, a.signer)
	}
}

// selections remembers what repositories are made of, since every node asks. It is
// safe for concurrent use; the zero value is ready.
type selections struct {
	mu      sync.Mutex // guards what follows
	kernels map[string]string
	have    map[selected]stack.Selection
}

// selected is a stack for an image that was built.
type selected struct {
	inv    *inventory.Inventory
	driver *inventory.Driver
	image  string
	digest string
}

// selection is what the repository of a stack is made of.
func (s *selections) selection(choose selector, inv *inventory.Inventory, d *inventory.Driver, image string, built repo.Image) (stack.Selection, error) {
	kernel, err := s.kernel(built)
	if err != nil {
		return stack.Selection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := selected{inv, d, image, built.Digest}
	if have, ok := s.have[key]; ok {
		return have, nil
	}
	for _, i := range inv.Images {
		if i.Name != image {
			continue
		}
		got, err := choose(inv, d, i, kernel)
		if err != nil {
			return got, err
		}
		if s.have == nil {
			s.have = map[selected]stack.Selection{}
		}
		s.have[key] = got
		return got, nil
	}
	return stack.Selection{}, errkind.New(errkind.NotFound, "image %q is not in the inventory", image)
}

// kernel is the release of the newest kernel among the packages of an image; "" when
// none names one.
func (s *selections) kernel(image repo.Image) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.kernels[image.Digest]; ok {
		return have, nil
	}
	found, err := newestKernel(image)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // not built: whoever needs it says so
	}
	if err != nil {
		return "", err
	}
	if s.kernels == nil {
		s.kernels = map[string]string{}
	}
	s.kernels[image.Digest] = found
	return found, nil
}

// newestKernel reads the packages of an image.
func newestKernel(image repo.Image) (string, error) {
	if image.Database != "" {
		return image.Kernel()
	}
	f, err := os.Open(image.Status)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return distribution.NewestKernel(f)
}
