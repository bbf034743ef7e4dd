// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/rail"
)

const (
	// cohortShare is the share of the median of its like that a transfer carries at least:
	// healthy ports of a fleet lie up to 4 % apart, and a rail that is a tenth slow is a
	// fault even where the limit of the site lets it pass. Belief; acceptance suites of
	// clouds take 0.9 to 0.95.
	cohortShare = 0.95
	// cohortLeast is how many transfers make a median.
	cohortLeast = 8
)

// cohort is what transfers have in common that should be as fast as each other: the
// fabric, the hardware of both nodes, and whether they stay on a leaf.
type cohort struct {
	fabric, hardware string
	path             string
}

func cohortOf(t *Transfer) cohort {
	blocks := []string{t.From.Node.Hardware.Name, t.To.Node.Hardware.Name}
	slices.Sort(blocks)
	c := cohort{fabric: t.From.Fabric, hardware: strings.Join(blocks, " and ")}
	switch {
	case t.FromLeaf == "" || t.ToLeaf == "":
	case t.FromLeaf == t.ToLeaf:
		c.path = " on one leaf"
	default:
		c.path = " across leaves"
	}
	return c
}

// Compare holds every transfer against the median of its like, beside its floor.
func Compare(all []*Transfer) {
	of := map[cohort][]float64{}
	for _, t := range all {
		if t.Bw > 0 {
			c := cohortOf(t)
			of[c] = append(of[c], t.Bw)
		}
	}
	usual := map[cohort]rail.Need{}
	for c, list := range of {
		if len(list) < cohortLeast {
			continue
		}
		slices.Sort(list)
		median := (list[(len(list)-1)/2] + list[len(list)/2]) / 2
		least := cohortShare * median
		usual[c] = rail.Need{Least: least, Limit: fmt.Sprintf(">= %s (%.0f%% of the median of %d transfers%s)", unit.ByteRate(least), 100*cohortShare, len(list), c.path)}
	}
	for _, t := range all {
		t.Usual = usual[cohortOf(t)]
	}
}
