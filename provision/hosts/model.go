// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// uncompared are the words of a hardware block that nothing is held against, in words.
func uncompared(h *inventory.Hardware) string {
	var list []string
	for _, w := range []struct {
		word  string
		given bool
	}{
		{"bios", len(h.BIOS) > 0}, {"power", h.Power.Supplies > 0}, {"dpu", len(h.DPUs) > 0},
		{"bmc of firmware", !h.Versions.BMC.IsZero()},
	} {
		if w.given {
			list = append(list, w.word)
		}
	}
	return strings.Join(list, ", ")
}
