// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestExpectDomain: what was published is a limit, and no other number of trays has one.
func TestExpectDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model string
		trays int
		want  float64
	}{{"GB200", 2, 754.2e9}, {"GB200", 4, 793.8e9}, {"GB200", 18, 751.5e9}, {"GB200", 9, 0}, {"GB300", 8, 830.7e9}, {"GB300", 18, 0}, {"H100", 2, 0}} {
		h := &inventory.Hardware{GPUs: []inventory.GPU{{Model: c.model, Count: 4}}}
		if got := ExpectDomain(h, c.trays); got.Least != c.want || (got.Source == "") != (c.want == 0) || got.Wire != 0 {
			t.Errorf("%s, %d trays: %+v", c.model, c.trays, got)
		}
	}
}
