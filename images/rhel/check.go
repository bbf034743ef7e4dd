// SPDX-License-Identifier: Apache-2.0

package rhel

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/images/internal/undriven"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// checkName is the name of the check of signatures, of every kind of image.
const checkName = "image.signature"

// Check looks at what a block says of the repositories that its packages come from, and at what
// its nodes ask for that its system does not get. A block that names no repository is a warning:
// a site can be designed and rehearsed before it has a mirror, and no image is built until it
// names one.
func Check(inv *inventory.Inventory, b inventory.Block) (found diag.List) {
	for _, i := range inv.Images {
		if i.Name != b.Name || i.Kind != b.Kind || (Kind{}).Supports(i) != nil {
			continue
		}
		undriven.Check(inv, i, &found)
		err := Kind{}.Recipe(i, "").Check()
		if err == nil {
			continue
		}
		text := err.Error()
		d := found.Add(checkName, i.Place("repository"), "Image that cannot be built", fmt.Sprintf("%s%s. %s", strings.ToUpper(text[:1]), text[1:], errkind.Action(err))).In(i.Decl)
		if len(i.Repositories) == 0 {
			d.Warn()
		}
	}
	return found
}
