// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// stacks are the kinds of drivers by the vendor of the GPUs that they are for.
var stacks = map[string]string{"nvidia": "cuda", "amd": "rocm"}

// Missing warns of nodes that have GPUs and no driver stack for them. It is a
// check of the whole site, for such nodes may have no driver block at all.
func Missing(inv *inventory.Inventory) diag.List {
	var found diag.List
	type place struct {
		h     *inventory.Hardware
		image *inventory.Image
	}
	var bare []*Usage
	for _, u := range All(inv) {
		for _, g := range u.Hardware.GPUs {
			if kind := stacks[g.Vendor]; kind != "" && len(u.Kind(kind)) == 0 {
				bare = append(bare, u)
				break
			}
		}
	}
	for _, u := range GroupBy(bare, func(u *Usage) place { return place{u.Hardware, u.Image} }) {
		if _, ok := distribution.OfImage(u.Image); !ok {
			continue // an image of the site's own may have the driver in it
		}
		if d := distribution.OfDisk(u.Image); d != nil && !d.Drivers {
			continue // it has to: none is installed on it
		}
		g := u.Hardware.GPUs[0]
		found.Add("driver.gpu", g.Decl, "GPUs without a driver", fmt.Sprintf(
			"Hardware %q has GPUs (%s), and %s list no driver of kind %q: nothing can use them. Add one to the drivers of the role.", u.Hardware.Name, g.Model, u.On(), stacks[g.Vendor])).
			In(u.Hardware.Decl).Of(u.Nodes...).Warn()
	}
	return found
}

// SecureBoot adds the warning that a module that is built on the node is signed
// by no key that the firmware of its chassis knows.
func SecureBoot(to *diag.List, b inventory.Block, u *Usage, whose string) {
	to.Add("driver.secure-boot", b.Place("version"), "Module without a signature that counts", fmt.Sprintf(
		"Hardware %q boots with Secure Boot, and %s kernel modules are built on the node: the kernel loads them only after their key is enrolled (MOK) at the console of each node. Turn secure_boot off, or take an image with signed modules.", u.Hardware.Name, whose)).
		In(b.Decl).Also("the hardware", u.Hardware.Decl).Of(u.Nodes...).Warn()
}
