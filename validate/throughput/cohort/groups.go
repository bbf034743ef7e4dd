// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
)

// findGroups finds a direction in which the cohort is in two groups, where nothing else is wrong with
// it. Single measurements have to be what the figures of both ends let expect: where neighbours load
// the same cores, two groups are chance.
func (v *Verdict) findGroups(d direction, usual []bimodal.Figure) {
	if v.shared[d] != "" || len(v.bad[d]) > 0 {
		return
	}
	list := slices.Clone(usual)
	for i, f := range v.figures[d] {
		if len(f.partners) > 0 {
			list = append(list, bimodal.Figure{Node: v.c.Members[i].Name(), Value: f.best})
		}
	}
	if g, ok := bimodal.Find(list, shareOfMedian); ok && v.isSteady() {
		v.Rows[d].Groups = &g
	}
}

// isSteady reports whether each measurement gave what the slower of its two ends reaches at best.
func (v *Verdict) isSteady() bool {
	return !slices.ContainsFunc(v.flows, func(f flow) bool {
		return f.rate < shareOfMedian*min(v.figures[sends][f.from].best, v.figures[receives][f.to].best)
	})
}

// withinGroups pairs the members of each group among themselves: one that is fast may have met
// slow ones alone, and looks slow in the other direction.
func (v *Verdict) withinGroups() (pairs [][2]int) {
	busy := map[int]bool{}
	for d := range v.Rows {
		g := v.Rows[d].Groups
		if g == nil {
			continue
		}
		for _, group := range []bimodal.Group{g.High, g.Low} {
			last := -1
			for i, m := range v.c.Members {
				switch {
				case busy[i] || !slices.Contains(group.Nodes, m.Name()):
				case last < 0:
					last = i
				default:
					busy[last], busy[i] = true, true
					pairs, last = append(pairs, [2]int{last, i}), -1
				}
			}
		}
	}
	return pairs
}

// IsSplit reports whether the cohort is in two groups, in a direction or both.
func (v *Verdict) IsSplit() bool {
	return slices.ContainsFunc(v.Rows[:], func(r Row) bool { return r.Groups != nil })
}

// wordsOf are the words for a direction in which the cohort is in two groups.
func (v *Verdict) wordsOf(role string, d direction) bimodal.Of {
	return bimodal.Of{Role: role, Part: v.c.String(), Does: map[direction]string{sends: "send", receives: "receive"}[d], Limit: floor.NetworkTCP, Format: result.FormatRate}
}

// Undecided is two groups that a cohort is in.
type Undecided struct {
	stage.Finding
	groups bimodal.Groups
	// Text says who is in them. Why is why a node of them is not accepted.
	Text, Why string
	// Decided: the site has a limit for each of them, which decides instead.
	Decided bool
}

// Has reports whether a node is in one of the groups.
func (u Undecided) Has(node string) bool { return u.groups.Has(node) }

// Undecided are the two groups that the cohort is in, of each direction unless both are the same. Traits
// are what is known of its nodes; the ends of their cables are added. about are those that may be kept out.
func (v *Verdict) Undecided(role string, traits bimodal.Traits, about []*inventory.Node) (list []Undecided) {
	for _, m := range v.c.Members {
		if m.Leaf != "" && m.far != "" {
			traits[m.Name()] = append([]bimodal.Trait{{Name: "switch", Value: m.Leaf}}, traits[m.Name()]...)
		}
	}
	for d := range v.Rows {
		g := v.Rows[d].Groups
		if g == nil || len(list) > 0 && list[0].groups.Same(*g) {
			continue
		}
		of := v.wordsOf(role, direction(d))
		u := Undecided{Finding: g.Finding(of, traits, about), groups: *g, Text: g.Text(of), Why: g.Why(of), Decided: true}
		for _, m := range v.c.Members {
			u.Decided = u.Decided && (m.Limit > 0 || !g.Has(m.Name()))
		}
		list = append(list, u)
	}
	return list
}
