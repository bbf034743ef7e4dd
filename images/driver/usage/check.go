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

// SecureBoot adds the error that the kernel refuses modules which are built on the node: they
// are signed by no key that shim, or the firmware of its chassis, knows.
func SecureBoot(to *diag.List, b inventory.Block, u *Usage, whose string) {
	to.Add("driver.secure-boot", b.Place("version"), "Module without a signature that counts", fmt.Sprintf(
		"Hardware %q boots with Secure Boot, and %s kernel modules are not signed by a key that its firmware or Debian's shim knows: the kernel refuses them. This version neither signs modules nor enrols keys. Set secure_boot = false in the hardware and switch Secure Boot off in the firmware, or take the driver off these nodes.", u.Hardware.Name, whose)).
		In(b.Decl).Also("the hardware", u.Hardware.Decl).Of(u.Nodes...)
}
