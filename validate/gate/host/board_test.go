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

// TestPageSize: a kernel with other pages than the hardware block says is a finding; one
// that does not report is not judged, and without page_size nothing is.
func TestPageSize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want, have int
		fault      string
		covered    judge.Coverage
	}{
		"not asked for": {0, 65536, "", judge.Coverage{}},
		"as declared":   {65536, 65536, "", judge.Covered("pages of 64K")},
		"another":       {65536, 4096, "kernel: the kernel has pages of 4K, and page_size of hardware grace says 64K", judge.Covered("pages of 4K")},
		"not reported":  {4096, 0, "", judge.Coverage{Missing: "the kernel did not report its page size"}},
	} {
		j := judge.New(&inventory.Hardware{Name: "grace", PageSize: c.want}, look.Seen{Health: wire.Health{PageSize: c.have}})
		CheckPageSize(j)
		found := ""
		for _, f := range j.Faults {
			found += f.Cause
		}
		if got := PageSizeCoverage(j); found != c.fault || got != c.covered {
			t.Errorf("%s: found %q, covered %+v", name, found, got)
		}
	}
}
