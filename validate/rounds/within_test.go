// SPDX-License-Identifier: Apache-2.0

package rounds

import (
	"fmt"
	"testing"
)

// TestWithinLeaves: each node meets two others, once, and on its own leaf where it can.
func TestWithinLeaves(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 4, 5, 8, 9, 33, 1024} {
		for _, perLeaf := range []int{1, 2, 3, 4, 5, 16, 2048} {
			leaf := make([]string, n)
			for i := range leaf {
				leaf[i] = fmt.Sprint(i / perLeaf)
			}
			rounds := WithinLeaves(leaf)
			partners, met, across := make([]int, n), map[[2]int]bool{}, 0
			for _, round := range rounds {
				busy := map[int]bool{}
				for _, p := range round {
					if busy[p[0]] || busy[p[1]] || p[0] >= p[1] || met[p] {
						t.Fatalf("%d nodes, %d a leaf: %v in %v", n, perLeaf, p, rounds)
					}
					busy[p[0]], busy[p[1]], met[p] = true, true, true
					partners[p[0]]++
					partners[p[1]]++
					if leaf[p[0]] != leaf[p[1]] {
						across++
					}
				}
			}
			for i, have := range partners {
				if have < min(2, n-1) || have > 4 {
					t.Errorf("%d nodes, %d a leaf: %d meets %d others", n, perLeaf, i, have)
				}
			}
			if len(rounds) > 4 {
				t.Errorf("%d nodes, %d a leaf: %d rounds", n, perLeaf, len(rounds))
			}
			if perLeaf >= 3 && n%perLeaf == 0 && across > 0 {
				t.Errorf("%d nodes, %d a leaf: %d pairs leave a leaf", n, perLeaf, across)
			}
		}
	}
}

func BenchmarkWithinLeaves(b *testing.B) {
	leaf := make([]string, 1024)
	for i := range leaf {
		leaf[i] = fmt.Sprint(i / 2)
	}
	for b.Loop() {
		WithinLeaves(leaf)
	}
}
