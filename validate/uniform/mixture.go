// SPDX-License-Identifier: Apache-2.0

package uniform

import (
	"fmt"
	"slices"
	"strings"
)

// notThere is the value of a part that a node lacks.
const notThere = "not there"

// commonMixture returns a node whose parts differ among themselves in the way in which those
// of most nodes do, such as NICs of two models; 0 nodes where no majority has one.
func (v *votes) commonMixture() (common mixed, with int) {
	count := map[string]int{}
	for _, m := range v.mixed {
		text := m.text()
		if count[text]++; v.total >= Fewest && shareOf*count[text] >= share*v.total {
			common, with = m, count[text]
		}
	}
	return common, with
}

// oddMixtures lists who has something else than a mixture that most have, part by part; parts
// that are not there only where no other check finds them.
func (v *votes) oddMixtures(values []string, most mixed, elsewhere bool) (odd []Odd) {
	for _, value := range values {
		for _, n := range v.by[value] {
			odd = append(odd, Odd{Node: n.node, Value: value, Parts: n.parts})
		}
	}
	want, same := most.byPart(), most.text()
	for _, m := range v.mixed {
		if m.text() == same {
			continue
		}
		have := m.byPart()
		for _, t := range m.traits {
			parts := slices.DeleteFunc(slices.Clone(t.Parts), func(p string) bool { return want[p] == t.Value })
			if len(parts) > 0 {
				odd = append(odd, Odd{Node: m.node, Value: t.Value, Parts: parts})
			}
		}
		var missing []string
		for _, t := range most.traits {
			missing = append(missing, slices.DeleteFunc(slices.Clone(t.Parts), func(p string) bool { return have[p] != "" })...)
		}
		if len(missing) > 0 && !elsewhere {
			odd = append(odd, Odd{Node: m.node, Value: notThere, Parts: missing})
		}
	}
	slices.SortStableFunc(odd, func(a, b Odd) int { return strings.Compare(a.Node, b.Node) })
	return odd
}

// byPart is what each part has.
func (m mixed) byPart() map[string]string {
	of := map[string]string{}
	for _, t := range m.traits {
		for _, p := range t.Parts {
			of[p] = t.Value
		}
	}
	return of
}

// counts puts the values of a node whose parts differ into few words: 8 x A, 2 x B.
func (m mixed) counts() string {
	var list []string
	for _, t := range m.traits {
		list = append(list, fmt.Sprintf("%d x %s", len(t.Parts), t.Value))
	}
	return strings.Join(list, ", ")
}

// text puts the values of a node whose parts differ into words.
func (m mixed) text() string {
	var list []string
	for _, t := range m.traits {
		list = append(list, t.Value+" in "+strings.Join(t.Parts, ", "))
	}
	return strings.Join(list, ", ")
}
