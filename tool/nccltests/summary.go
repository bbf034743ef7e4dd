// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"fmt"
	"slices"
	"strconv"
)

// Largest returns the row of the largest size; of several, the last.
func (t *Test) Largest() (Row, bool) {
	if len(t.Rows) == 0 {
		return Row{}, false
	}
	best := t.Rows[0]
	for _, r := range t.Rows {
		if r.Size >= best.Size {
			best = r
		}
	}
	return best, true
}

// Hosts returns the nodes that ranks ran on, each once, sorted.
func (t *Test) Hosts() []string {
	var hosts []string
	for _, r := range t.Ranks {
		hosts = append(hosts, r.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Summary says what each test measured at its largest size. The average over all
// sizes is left out on purpose.
func (c Content) Summary() []string {
	var lines []string
	for _, t := range c.Tests() {
		lines = append(lines, t.summary()...)
	}
	return lines
}

func (t *Test) summary() []string {
	name := t.Collective
	if name == "" {
		name = "collective that is not named"
	}
	line := name
	switch n := t.RankCount(); {
	case len(t.Ranks) > 0 && n > 0 && !t.partial && n < len(t.Ranks):
		line += fmt.Sprintf(", %d groups of %d ranks on %s", len(t.Ranks)/n, n, formatNodes(len(t.Hosts())))
	case len(t.Ranks) > 0 && !t.partial:
		line += fmt.Sprintf(", %d ranks on %s of %s", len(t.Ranks), formatNodes(len(t.Hosts())), t.Ranks[0].Name)
	case n > 0:
		line += fmt.Sprintf(", %d ranks", n)
	}
	if t.Library != "" {
		line += ", library " + t.Library
	}
	lines := []string{line}
	row, ok := t.Largest()
	if !ok {
		return append(lines, "no results")
	}
	line = fmt.Sprintf("%d sizes, the largest %d bytes (%s):", len(t.Rows), row.Size, row.Type)
	for i, p := range []*Placement{row.OutOfPlace, row.InPlace} {
		if p != nil && p.BusBW != nil && p.Time != nil {
			line += fmt.Sprintf(" %s %s GB/s busbw in %s us,", [2]string{"out of place", "in place"}[i], figureOf(*p.BusBW), figureOf(*p.Time))
		}
	}
	return append(lines, line+" wrong: "+t.wrong())
}

func formatNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return strconv.Itoa(n) + " nodes"
}

// wrong is how many elements of all rows were wrong, or that nobody looked.
func (t *Test) wrong() string {
	sum, checked := int64(0), false
	for _, r := range t.Rows {
		for _, p := range []*Placement{r.OutOfPlace, r.InPlace} {
			if p != nil && p.Wrong != nil {
				sum, checked = sum+*p.Wrong, true
			}
		}
	}
	if !checked {
		return "not checked"
	}
	return strconv.FormatInt(sum, 10)
}
