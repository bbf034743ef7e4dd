// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/gaps"
)

// Unmirrored are the driver stacks whose packages are not on this controller, by the
// digests of images.
func (a Artifacts) Unmirrored(digests map[string]string) (list []gaps.Gap) {
	type pair struct {
		d *inventory.Driver
		i *inventory.Image
	}
	users := map[pair]int{}
	var order []pair
	for _, n := range a.inv.Nodes {
		for _, d := range n.Drivers {
			p := pair{d, n.Image}
			if n.Image == nil || !served(d, n.Image) {
				continue
			}
			if users[p]++; users[p] == 1 {
				order = append(order, p)
			}
		}
	}
	for _, p := range order {
		if a.mirrored(p.d, p.i.Name, digests[p.i.Name]) {
			continue
		}
		setting := ""
		if stack.HasRepository(p.d) {
			setting = "repository"
		}
		list = append(list, gaps.New(gaps.NotMirrored, "driver", p.d.Name, setting, p.d.Decl, users[p], "Packages are not on the controller",
			fmt.Sprintf("The packages of driver %q for image %q are not mirrored yet. `ironrail image build %s` fetches them; else apply does, before it installs a node.", p.d.Name, p.i.Name, p.i.Name)))
	}
	return list
}

// mirrored reports whether the packages of a stack for an image of that digest are on
// this controller. Whether they are whole is for those to look at who use them.
func (a Artifacts) mirrored(d *inventory.Driver, image, digest string) bool {
	if a.Images == nil || !a.Images.Has(digest) {
		return false
	}
	if _, err := os.Stat(a.path("keys", "repo.asc")); errors.Is(err, fs.ErrNotExist) {
		return false // reading it would make it
	}
	o, err := a.repositoryOptions(d, image, digest)
	if err != nil {
		return false
	}
	_, found, err := repo.Find(o)
	return err == nil && found
}
