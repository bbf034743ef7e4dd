// SPDX-License-Identifier: Apache-2.0

package rounds

import (
	"slices"
	"testing"
)

func TestTournament(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		met := map[[2]int]int{}
		rounds := Tournament(n)
		if CountRounds(n) != len(rounds) {
			t.Errorf("%d nodes: %d rounds, and the count says %d", n, len(rounds), CountRounds(n))
		}
		for _, r := range rounds {
			busy := map[int]bool{}
			for _, p := range r {
				if p[0] >= p[1] || p[1] >= n || busy[p[0]] || busy[p[1]] {
					t.Fatalf("%d nodes: round %v", n, r)
				}
				busy[p[0]], busy[p[1]] = true, true
				met[p]++
			}
		}
		for p, times := range met {
			if times != 1 {
				t.Errorf("%d nodes: %v met %d times", n, p, times)
			}
		}
		switch {
		case n <= AllPairsUpTo && len(met) != n*(n-1)/2:
			t.Errorf("%d nodes: %d pairs of %d", n, len(met), n*(n-1)/2)
		case n > AllPairsUpTo && len(rounds) != SampledRounds:
			t.Errorf("%d nodes: %d rounds", n, len(rounds))
		}
		for i := range n {
			partners := 0
			for p := range met {
				if p[0] == i || p[1] == i {
					partners++
				}
			}
			if n > AllPairsUpTo && partners < SampledRounds-1 {
				t.Errorf("%d nodes: %d has %d partners", n, i, partners)
			}
		}
	}
}

// TestByLeaf: no pair is twice, nobody is twice in a round, half of the rounds stay on
// leaves, the others cross, and everybody has partners of both kinds.
func TestByLeaf(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{{4, 4}, {9}, {16, 16}, {5, 4}, {3, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {32, 32, 32, 32}, {20, 3}, {7, 7, 7}, {2, 2, 2, 2, 2}} {
		var leaf []string
		for g, size := range sizes {
			for range size {
				leaf = append(leaf, string(rune('a'+g)))
			}
		}
		n, rounds := len(leaf), ByLeaf(leaf)
		if n > AllPairsUpTo && len(rounds) != SampledRounds || len(rounds) != CountRounds(n) {
			t.Errorf("%v: %d rounds", sizes, len(rounds))
		}
		met, on, across := map[[2]int]bool{}, make([]int, n), make([]int, n)
		for _, r := range rounds {
			busy := map[int]bool{}
			for _, p := range r {
				if p[0] >= p[1] || p[1] >= n || busy[p[0]] || busy[p[1]] || met[p] {
					t.Fatalf("%v: round %v", sizes, r)
				}
				busy[p[0]], busy[p[1]], met[p] = true, true, true
				for _, i := range p {
					if leaf[p[0]] == leaf[p[1]] {
						on[i]++
					} else {
						across[i]++
					}
				}
			}
		}
		even := !slices.ContainsFunc(sizes, func(s int) bool { return s != sizes[0] || s < 4 || s%2 == 1 })
		for i := range n {
			if on[i]+across[i] < min(n-1, SampledRounds)-1-n%2 { // of an odd number one stays alone in each round
				t.Errorf("%v: %d has %d partners", sizes, i, on[i]+across[i])
			}
			if even && len(sizes) > 1 && n > AllPairsUpTo && (on[i] < 1 || across[i] < 2) {
				t.Errorf("%v: %d has %d partners on its leaf and %d beyond", sizes, i, on[i], across[i])
			}
		}
	}
}
