// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const (
	// errorsPerHour is from where on a link is held against others of its slot. Source: the
	// node checks of GPUd, where fewer than ten correctable errors an hour are good.
	errorsPerHour = 10
	// manyTimes is by how much a link makes more errors than the median of its slot when
	// it is the link, and not what all of them have in common. Belief.
	manyTimes = 10
)

// oddLinks are the PCIe links of a node that correct far more errors than those in the same
// slot of others do, be it fewer than PCIe allows: most links correct none.
func (n Node) oddLinks(nodes []Node) (list []Odd) {
	for _, at := range slices.Sorted(maps.Keys(n.Links)) {
		e := n.Links[at]
		if e.Limit > 0 && e.PerMinute > e.Limit { // it was found by itself
			continue
		}
		var all []float64
		for _, o := range nodes {
			if o.LinksTold > 0 {
				all = append(all, o.Links[at].PerMinute)
			}
		}
		slices.Sort(all)
		if len(all) < Fewest || max(e.AER, e.Replays) < errorsPerHour || e.PerMinute < errorsPerHour/60.0 {
			continue
		}
		if usual := medianOf(all); e.PerMinute > manyTimes*usual {
			part := burnin.NameGPU(n.Names, at)
			list = append(list, Odd{Node: n.Name, Fault: judge.Fault{Part: part, Action: burnin.DoLink,
				Cause:    fmt.Sprintf("%s: its PCIe link corrected %.1f errors a minute under load, those in the same slot of other nodes %.1f", part, e.PerMinute, usual),
				Evidence: []string{fmt.Sprintf("%s; %d nodes: median %.1f a minute, %.1f at most", strings.TrimSpace(e.Describe(at)), len(all), usual, all[len(all)-1])}}})
		}
	}
	return list
}
