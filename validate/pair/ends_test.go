// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/rail/railtest"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/transfer"
)

// TestEndsAreLinear: what it takes to list the ports of the pairs grows with its members,
// and not with their square.
func TestEndsAreLinear(t *testing.T) {
	took := func(nodes int) float64 {
		list, run := railtest.Site(t, nodes)
		return testing.AllocsPerRun(3, func() {
			p := &pairTest{Runner: &transfer.Runner{Rec: run}, nodeOf: list, g: target.Group{Validation: &inventory.Validation{}}}
			if got, _, err := p.ends(); err != nil || len(got) != 8 {
				t.Fatalf("%d rails, %v", len(got), err)
			}
		})
	}
	if few, many := took(64), took(256); many > 6*few {
		t.Errorf("%.0f allocations for 64 nodes, %.0f for 256", few, many)
	}
}
