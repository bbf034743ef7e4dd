// SPDX-License-Identifier: Apache-2.0

package place

import "strings"

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

// compareNatural compares names with the numbers in them as numbers: su2 is before su10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x != "" && y != "" {
			a, b = a[len(x):], b[len(y):]
			n, m := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(n) != len(m) {
				return len(n) - len(m)
			}
			if c := strings.Compare(n, m); c != 0 {
				return c
			}
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// leadingDigits returns those at the start of a text.
func leadingDigits(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}
