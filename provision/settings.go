// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/oob"
)

// settingsFirst is a stage whose steps stand in the right order with those that
// set up a node's firmware.
type settingsFirst struct {
	stage.Stage
	inv *inventory.Inventory
}

// Plan implements stage.Stage.
func (s settingsFirst) Plan(v stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps, diags := s.Stage.Plan(v)
	return oob.Weave(s.inv, steps), diags
}

// withBIOS reports whether the site gives settings to any firmware.
func withBIOS(inv *inventory.Inventory) bool {
	for _, h := range inv.Hardware {
		if len(h.BIOS) > 0 {
			return true
		}
	}
	return false
}
