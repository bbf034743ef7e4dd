// SPDX-License-Identifier: Apache-2.0

package rounds

import "testing"

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
