// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/validate/uniform"
)

// fewest is how many hosts that are alike make a reference, as the comparison of a
// role's nodes has it.
const fewest = 3

// cohort is the hosts that are held against the same hardware block.
type cohort struct {
	name    string // of its role and its hardware block
	members []survey
	rows    []uniform.Row // what they are made of, compared
	// why is why the hosts are no reference for one another; empty: they are, or a file
	// says what is expected.
	why string
}

// splitCohorts sorts hosts by their chassis. Of fewer than three, or where no majority
// has the same GPUs, each is a cohort of its own, without a reference.
func splitCohorts(all []survey) []cohort {
	by := map[string][]survey{}
	for _, s := range all {
		key := strings.Join([]string{string(s.arch), s.hw.Identity.Vendor, cmp.Or(s.hw.Identity.Product, s.hw.CPU.Model)}, "\n")
		by[key] = append(by[key], s)
	}
	var list []cohort
	taken := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		members := by[key]
		c := cohort{name: "nodes", members: members, rows: compareParts(members)}
		if len(by) > 1 {
			c.name = cohortName(members[0])
		}
		c.name = uniqueName(c.name, taken)
		if why := noReference(c); why != "" {
			list = append(list, alone(members, why, taken)...)
			continue
		}
		list = append(list, c)
	}
	return list
}

// noReference is why hosts of one chassis are no reference for one another.
func noReference(c cohort) string {
	if n := len(c.members); n < fewest {
		what := "this host is"
		if n > 1 {
			what = fmt.Sprintf("%d hosts are", n)
		}
		return fmt.Sprintf("%s alike (%s), and a majority is of %d at least", what, describeChassis(c.members[0]), fewest)
	}
	if r, ok := c.row(partGPUs); ok && r.Value == "" {
		return "no majority of the hosts of this chassis has the same GPUs: " + describeGroups(r.Groups)
	}
	return ""
}

// alone makes of each host a cohort of its own.
func alone(members []survey, why string, taken map[string]bool) (list []cohort) {
	for _, s := range members {
		one := []survey{s}
		list = append(list, cohort{name: uniqueName(slug(s.name), taken), members: one, rows: compareParts(one), why: why})
	}
	return list
}

// compareParts compares what hosts are made of.
func compareParts(members []survey) []uniform.Row {
	var nodes []uniform.Node
	for _, s := range members {
		nodes = append(nodes, uniform.Node{Name: s.name, Record: uniform.Record{Traits: s.traits()}})
	}
	return uniform.CompareNodes(nodes)
}

// row is the comparison of one part.
func (c cohort) row(key string) (uniform.Row, bool) {
	i := slices.IndexFunc(c.rows, func(r uniform.Row) bool { return r.Key == key })
	if i < 0 {
		return uniform.Row{}, false
	}
	return c.rows[i], true
}

// typical is a host that has what most have of a part; false where nothing is known of
// it, or no majority has the same.
func (c cohort) typical(key string) (survey, bool) {
	r, ok := c.row(key)
	if !ok || r.Value == "" {
		return survey{}, false
	}
	for _, s := range c.members {
		if slices.ContainsFunc(s.traits(), func(t uniform.Trait) bool { return t.Key == key && t.Value == r.Value }) {
			return s, true
		}
	}
	return survey{}, false
}

// most reports whether what so many hosts have is what most have.
func (c cohort) most(n int) bool { return 3*n >= 2*len(c.members) }

func describeChassis(s survey) string {
	return cmp.Or(strings.TrimSpace(s.hw.Identity.Vendor+" "+s.hw.Identity.Product), s.hw.CPU.Model, "a chassis that does not say what it is")
}

func describeGroups(groups []uniform.Group) string {
	var list []string
	for _, g := range groups {
		list = append(list, fmt.Sprintf("%s (%s)", g.Value, strings.Join(g.Nodes, ", ")))
	}
	return strings.Join(list, "; ")
}

// unnamed are characters that names of blocks do not have.
var unnamed = lazyregexp.New(`[^a-z0-9]+`)

// slug makes the name of a block of text from outside.
func slug(text string) string {
	s := strings.Trim(unnamed.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "nodes-" + s
	}
	return strings.Trim(s[:min(len(s), 40)], "-")
}

func cohortName(s survey) string {
	return slug(cmp.Or(s.hw.Identity.Product, s.hw.CPU.Model, string(s.arch)))
}

// uniqueName gives a name that is taken a number.
func uniqueName(name string, taken map[string]bool) string {
	for n, try := 2, name; ; n++ {
		if !taken[try] {
			taken[try] = true
			return try
		}
		try = fmt.Sprintf("%s-%d", name, n)
	}
}
