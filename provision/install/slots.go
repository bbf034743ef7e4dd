// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// nameSlots says which DIMM is missing where the same chassis had one in a slot
// that is empty now.
func nameSlots(faults []Fault, was, now wire.Hardware) {
	if was.Identity.Serial == "" || was.Identity.Serial != now.Identity.Serial {
		return
	}
	there := map[string]bool{}
	for _, m := range now.Memory.Modules {
		there[m.Slot] = true
	}
	var gone []string
	slot := ""
	for _, m := range was.Memory.Modules {
		if m.Slot != "" && !there[m.Slot] {
			slot = m.Slot
			gone = append(gone, strings.TrimSpace(fmt.Sprintf("slot %s had serial %s", m.Slot, m.Serial)))
		}
	}
	for i := range faults {
		if f := &faults[i]; f.Part == "DIMM" && len(gone) > 0 {
			f.Found += ": " + strings.Join(gone, ", ")
			if len(gone) == 1 {
				f.Part, f.Action = "DIMM "+slot, "Reseat or replace the DIMM in slot "+slot+"."
			}
		}
	}
}
