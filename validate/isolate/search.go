// SPDX-License-Identifier: Apache-2.0

package isolate

import "slices"

// maxSets bounds the explanations that are compared; bad measurements with more faults
// than this bound allows get the greedy explanation, marked ambiguous.
const maxSets = 200_000

// search finds every smallest set of parts that explains all bad measurements of a group.
type search struct {
	parts  []Part
	of     [][]int // the parts that explain each bad measurement
	spoils [][]int // the bad measurements that each part explains
	budget int
	best   [][]int

	explained []int // by how many parts of the current set each bad measurement is
}

func newSearch(g group) *search {
	s := &search{parts: g.parts, of: g.of, spoils: make([][]int, len(g.parts)), budget: maxSets, explained: make([]int, len(g.of))}
	for m, list := range g.of {
		for _, p := range list {
			s.spoils[p] = append(s.spoils[p], m)
		}
	}
	return s
}

// run returns the parts of all smallest sets, and whether there are several.
func (s *search) run() (suspects []Part, ambiguous bool) {
	greedy := s.greedy()
	for size := 1; size <= len(greedy) && len(s.best) == 0 && s.budget > 0; size++ {
		s.cover(nil, 0, size)
	}
	if len(s.best) == 0 {
		s.best = [][]int{greedy}
	}
	for _, set := range s.best {
		for _, p := range set {
			suspects = append(suspects, s.parts[p])
		}
	}
	slices.SortFunc(suspects, compareParts)
	return slices.Compact(suspects), len(s.best) > 1 || s.budget <= 0
}

// greedy takes the part that explains most, until all is explained.
func (s *search) greedy() (set []int) {
	left, open := make([]int, len(s.parts)), len(s.of) // what each part would still explain
	for p, list := range s.spoils {
		left[p] = len(list)
	}
	done := make([]bool, len(s.of))
	for open > 0 {
		best := 0
		for p, n := range left {
			if n > left[best] {
				best = p
			}
		}
		set = append(set, best)
		for _, m := range s.spoils[best] {
			if done[m] {
				continue
			}
			done[m] = true
			open--
			for _, p := range s.of[m] {
				left[p]--
			}
		}
	}
	return set
}

// cover extends set by up to size parts: each time by those that explain the first
// measurement still open, from one on, so that no useless part ever enters.
func (s *search) cover(set []int, from, size int) {
	if s.budget--; s.budget <= 0 {
		return
	}
	for from < len(s.of) && s.explained[from] > 0 {
		from++
	}
	if from == len(s.of) {
		found := slices.Sorted(slices.Values(set))
		if !slices.ContainsFunc(s.best, func(b []int) bool { return slices.Equal(b, found) }) {
			s.best = append(s.best, found)
		}
		return
	}
	if size == 0 {
		return
	}
	for _, p := range s.of[from] {
		s.count(p, 1)
		s.cover(append(slices.Clone(set), p), from, size-1)
		s.count(p, -1)
	}
}

// count puts a part into the current set, or takes it out.
func (s *search) count(part, by int) {
	for _, m := range s.spoils[part] {
		s.explained[m] += by
	}
}
