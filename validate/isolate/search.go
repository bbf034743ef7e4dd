// SPDX-License-Identifier: Apache-2.0

package isolate

import "slices"

// maxSets bounds the explanations that are compared; sites with more faults
// than this bound allows get the greedy explanation, marked ambiguous.
const maxSets = 200_000

// search finds every smallest set of parts that explains all bad measurements.
type search struct {
	bad    []Measurement
	parts  []Part
	budget int
	best   [][]Part
}

func (s *search) run() {
	greedy := s.greedy()
	for size := 1; size < len(greedy); size++ {
		s.cover(nil, size)
		if len(s.best) > 0 {
			return
		}
		if s.budget <= 0 {
			break
		}
	}
	if s.budget > 0 {
		s.cover(nil, len(greedy))
	}
	if len(s.best) == 0 {
		s.best = [][]Part{greedy}
	}
}

// greedy takes the part that explains most, until all is explained.
func (s *search) greedy() []Part {
	var set []Part
	left := s.bad
	for len(left) > 0 {
		best, most := Part{}, 0
		for _, p := range s.parts {
			n := 0
			for _, m := range left {
				if p.Explains(m) {
					n++
				}
			}
			if n > most {
				best, most = p, n
			}
		}
		set = append(set, best)
		left = slices.DeleteFunc(slices.Clone(left), best.Explains)
	}
	return set
}

// cover extends set by up to size parts: each time by those that explain the
// first measurement still open, so that no useless part ever enters.
func (s *search) cover(set []Part, size int) {
	if s.budget--; s.budget <= 0 {
		return
	}
	i := slices.IndexFunc(s.bad, func(m Measurement) bool {
		return !slices.ContainsFunc(set, func(p Part) bool { return p.Explains(m) })
	})
	if i < 0 {
		found := slices.Clone(set)
		slices.SortFunc(found, compareParts)
		if !slices.ContainsFunc(s.best, func(b []Part) bool { return slices.Equal(b, found) }) {
			s.best = append(s.best, found)
		}
		return
	}
	if size == 0 {
		return
	}
	for _, p := range s.parts {
		if p.Explains(s.bad[i]) {
			s.cover(append(slices.Clone(set), p), size-1)
		}
	}
}
