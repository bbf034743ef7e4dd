// SPDX-License-Identifier: Apache-2.0

// Package rounds says which nodes meet in a test of pairs, and when.
package rounds

import (
	"slices"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/target"
)

// AllPairsUpTo is the number of nodes up to which every pair is tested; above
// it, SampledRounds rounds give each node that many partners.
const (
	AllPairsUpTo  = 8
	SampledRounds = 4
)

// Tournament returns rounds of pairs of 0..n-1, such that no index is twice in a
// round: the circle method. Up to AllPairsUpTo every pair meets once; above it
// the first SampledRounds rounds are returned.
func Tournament(n int) [][][2]int {
	return circle(n, CountRounds(n))
}

// circle returns the first rounds of the circle method, as many as are asked for and as
// there are.
func circle(n, count int) [][][2]int {
	if n < 2 {
		return nil
	}
	m := n + n%2 // with a bye for an odd number
	count = min(count, m-1)
	at := func(round, i int) int { // who sits on chair i: 0 stays, the others move on
		if i == 0 {
			return 0
		}
		return (i-1+round)%(m-1) + 1
	}
	rounds := make([][][2]int, 0, count)
	for r := range count {
		var pairs [][2]int
		for i := range m / 2 {
			a, b := at(r, i), at(r, m-1-i)
			if a < n && b < n {
				pairs = append(pairs, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, pairs)
	}
	return rounds
}

// CountRounds returns how many rounds a Tournament of n has.
func CountRounds(n int) int {
	switch {
	case n < 2:
		return 0
	case n > AllPairsUpTo:
		return SampledRounds
	}
	return n + n%2 - 1
}

// FocusedRounds returns rounds of pairs: those in focus with one another as ever, each
// of them with its partners, and two partners with each other, which tells what
// all share from what is new. Indices count through focus and then with; none is
// twice in a round.
func FocusedRounds(focus, with []*inventory.Node) [][][2]int {
	rounds := Tournament(len(focus))
	var cross [][2]int
	for k := range target.PartnersOfOne {
		for i, n := range focus {
			if j, ok := choosePartner(n, with, i*len(with)/len(focus), k); ok {
				cross = append(cross, [2]int{i, len(focus) + j})
			}
		}
	}
	if len(with) > 1 {
		a, b := len(focus), len(focus)+1
		if j := slices.IndexFunc(with, func(n *inventory.Node) bool { return n.Rack != with[0].Rack }); j > 0 {
			b = len(focus) + j
		}
		cross = append(cross, [2]int{a, b})
	}
	return append(rounds, Spread(cross)...)
}

// choosePartner chooses the kth partner of a node in focus: the first in its own rack
// and the second elsewhere, where there are such; from a place on, so that all of
// them take part.
func choosePartner(n *inventory.Node, with []*inventory.Node, from, k int) (int, bool) {
	first := pickNode(with, from, -1, func(o *inventory.Node) bool { return o.Rack == n.Rack })
	if k == 0 {
		return first, true
	}
	if len(with) < 2 {
		return 0, false
	}
	return pickNode(with, from+len(with)/2, first, func(o *inventory.Node) bool { return o.Rack != n.Rack }), true
}

// pickNode returns the first node from a place on that is wanted, else the first that
// is not excluded.
func pickNode(with []*inventory.Node, from, except int, want func(*inventory.Node) bool) int {
	at := -1
	for k := range with {
		i := (from + k) % len(with)
		if i == except {
			continue
		}
		if want(with[i]) {
			return i
		}
		if at < 0 {
			at = i
		}
	}
	return at
}

// Spread puts pairs into as few rounds as a greedy choice finds, such that no index is
// twice in a round.
func Spread(pairs [][2]int) (rounds [][][2]int) {
	var busy []map[int]bool
	for _, p := range pairs {
		r := slices.IndexFunc(busy, func(b map[int]bool) bool { return !b[p[0]] && !b[p[1]] })
		if r < 0 {
			r = len(rounds)
			rounds, busy = append(rounds, nil), append(busy, map[int]bool{})
		}
		rounds[r] = append(rounds[r], p)
		busy[r][p[0]], busy[r][p[1]] = true, true
	}
	return rounds
}
