// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// OpenSite opens a site for a controller on a virtual rack, whose state is in dir.
// The first one makes the stand-ins of images and packages.
func OpenSite(ctx context.Context, inv *inventory.Inventory, w *virtual.World, seed uint64, dir string, first bool) (*provision.Site, error) {
	t := &Rehearsal{opt: Options{Seed: seed}, inv: inv, Planned: inv, dir: dir, World: w}
	if !first {
		return t.open()
	}
	err := t.Open(ctx)
	return t.Site, err
}
