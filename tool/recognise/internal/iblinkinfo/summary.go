// SPDX-License-Identifier: Apache-2.0

package iblinkinfo

import (
	"cmp"
	"fmt"
	"slices"
)

// Summary says how many ports there are in which state, and what could be faster.
func (i *Info) Summary() []string {
	lines := []string{fmt.Sprintf("%d ports", len(i.Ports))}
	count, slow := map[string]int{}, 0
	for _, p := range i.Ports {
		state := p.State + "/" + p.Physical
		if p.Width != "" {
			state += " at " + p.Width + " " + p.Speed
		}
		count[state]++
		if len(p.CouldBe) > 0 {
			slow++
		}
	}
	var states []string
	for s := range count {
		states = append(states, s)
	}
	slices.SortFunc(states, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	for _, s := range states {
		lines = append(lines, fmt.Sprintf("%d %s", count[s], s))
	}
	if slow > 0 {
		lines = append(lines, fmt.Sprintf("%d could be wider or faster", slow))
	}
	return lines
}
