// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// TestClocksource: the counters of the processor are as they must be, on x86 and arm64.
func TestClocksource(t *testing.T) {
	t.Parallel()
	for clock, notes := range map[string]int{"tsc": 0, "arch_sys_counter": 0, "": 0, "hpet": 1, "acpi_pm": 1} {
		j := judge.New(&inventory.Hardware{}, look.Seen{Health: wire.Health{Clock: clock}})
		CheckSettings(j)
		if len(j.Notes) != notes {
			t.Errorf("%q: got %q, want %d notes", clock, j.Notes, notes)
		}
	}
}
