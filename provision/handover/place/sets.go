// SPDX-License-Identifier: Apache-2.0

package place

// sets are disjoint sets of comparable things (union-find with path halving).
type sets map[any]any

func newSets() sets { return sets{} }

// root is the thing that stands for the set of x.
func (s sets) root(x any) any {
	for {
		up, ok := s[x]
		if !ok || up == x {
			return x
		}
		if next, ok := s[up]; ok {
			s[x] = next
		}
		x = up
	}
}

// join makes the sets of two things one.
func (s sets) join(x, y any) {
	if a, b := s.root(x), s.root(y); a != b {
		s[a] = b
	}
}
