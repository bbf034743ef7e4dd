// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"cmp"
	"fmt"
	"slices"
)

// Summary says how many nodes and cables there are, and what cables run at.
func (t *Topology) Summary() []string {
	lines := []string{fmt.Sprintf("%d switches, %d HCAs, %d routers, %d cables", len(t.Switches), len(t.HCAs), len(t.Routers), len(t.Links))}
	count := map[string]int{}
	for _, l := range t.Links {
		count[l.Width+" "+l.Speed]++
	}
	var speeds []string
	for s := range count {
		speeds = append(speeds, s)
	}
	slices.SortFunc(speeds, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	for _, s := range speeds {
		lines = append(lines, fmt.Sprintf("%d cables run at %s", count[s], s))
	}
	return lines
}
