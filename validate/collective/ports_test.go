// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"testing"

	"github.com/ironrail/ironrail/validate/rail/railtest"

	"github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/grouprun"
)

// TestEndsAreLinear: what it takes to list the ports of an all-reduce grows with its members,
// and not with their square.
func TestEndsAreLinear(t *testing.T) {
	took := func(nodes int) float64 {
		list, run := railtest.Site(t, nodes)
		return testing.AllocsPerRun(3, func() {
			c := &collective{Test: &verdict.Test{Runner: &grouprun.Runner{Rec: run}, Members: list}}
			if got := c.ends(); len(got) != 8*nodes || got[0].Fabric != "" {
				t.Fatalf("%d ports, the first on fabric %q", len(got), got[0].Fabric)
			}
		})
	}
	if few, many := took(64), took(256); many > 6*few {
		t.Errorf("%.0f allocations for 64 nodes, %.0f for 256", few, many)
	}
}
