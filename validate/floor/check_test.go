package floor

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{Check}})
}

// Every floor is of something that is measured, in bytes per second.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, f := range gpuFloors {
		if m, ok := measureOf(f.measure); !ok || m.AtMost {
			t.Errorf("%s has a floor of %q, which has none", f.model, f.measure)
		}
		if f.source == "" || f.least < gb {
			t.Errorf("%s %s: %v from %q", f.model, f.measure, f.least, f.source)
		}
	}
	if !slices.IsSortedFunc(Measures, func(a, b Measure) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("the measures are not sorted")
	}
}

// A chassis of which nothing is known has no floor, whatever is asked.
func TestNoFloor(t *testing.T) {
	t.Parallel()
	c := check{v: &inventory.Validation{AllReduce: &inventory.CollectiveTest{Scope: []string{"node", "all"}}}}
	for _, m := range Measures {
		if least, source := c.floorOf(m.Name, &inventory.Hardware{}); least != 0 || source != "" {
			t.Errorf("%s: %v from %q", m.Name, least, source)
		}
	}
}
