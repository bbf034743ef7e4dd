// SPDX-License-Identifier: Apache-2.0

package rounds

import "slices"

// Of a sample, half of the rounds stay on leaves and half go across.
const onLeaves = SampledRounds / 2

// ByLeaf returns rounds of pairs of 0..n-1, no index twice in a round and no pair twice,
// of which leaf says on which leaves a node is. Of more than AllPairsUpTo nodes the first
// rounds are of pairs on the same leaves, and the last ones of pairs across them, so that
// a leaf and a node are distinguished. Where nothing says how the leaves are, it is a
// Tournament.
func ByLeaf(leaf []string) [][][2]int {
	n := len(leaf)
	on := groupByLeaf(leaf)
	if n <= AllPairsUpTo || len(on) < 2 {
		return Tournament(n)
	}
	d := draw{leaf: leaf, met: map[[2]int]bool{}, alone: make([]int, n)}
	rounds := make([][][2]int, SampledRounds)
	for r := range rounds {
		var free []int
		if r < onLeaves {
			rounds[r], free = d.onLeaves(on, r)
		} else {
			free = slices.Concat(on...)
		}
		rounds[r] = append(rounds[r], d.across(free, r)...)
	}
	return rounds
}

// groupByLeaf groups nodes by their leaves, in the order of the nodes.
func groupByLeaf(leaf []string) (groups [][]int) {
	at := map[string]int{}
	for i, l := range leaf {
		g, known := at[l]
		if !known {
			g = len(groups)
			at[l], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// draw is the drawing of rounds.
type draw struct {
	leaf  []string
	met   map[[2]int]bool
	alone []int // how often each had no partner
}

// onLeaves is one round of pairs on the same leaves, and who has no partner there.
func (d *draw) onLeaves(groups [][]int, round int) (pairs [][2]int, free []int) {
	for _, g := range groups {
		busy := map[int]bool{}
		if rounds := circle(len(g), onLeaves); round < len(rounds) {
			for _, p := range rounds[round] {
				pairs = append(pairs, d.meet(g[p[0]], g[p[1]]))
				busy[p[0]], busy[p[1]] = true, true
			}
		}
		for i, node := range g {
			if !busy[i] {
				free = append(free, node)
			}
		}
	}
	return pairs, free
}

// across pairs nodes, on different leaves as far as there are such: always one of the leaf
// that has most of them left, with one of the fullest other leaves, of which each leaf
// takes its turn. Who is left over stays alone in this round.
func (d *draw) across(free []int, round int) (pairs [][2]int) {
	slices.SortStableFunc(free, func(a, b int) int { return d.alone[b] - d.alone[a] })
	var leaves []string
	of := map[string][]int{}
	for _, i := range free {
		if of[d.leaf[i]] == nil {
			leaves = append(leaves, d.leaf[i])
		}
		of[d.leaf[i]] = append(of[d.leaf[i]], i)
	}
	turn := round
	for left := len(free); left > 0; turn++ {
		a := fullest(leaves, of, turn, nil)
		one := of[a][0]
		of[a] = of[a][1:]
		left--
		b, partner := d.partner(one, a, leaves, of, turn)
		if partner < 0 {
			d.alone[one]++
			continue
		}
		pairs = append(pairs, d.meet(one, of[b][partner]))
		of[b] = slices.Delete(of[b], partner, partner+1)
		left--
	}
	return pairs
}

// partner is one that a node has not met, with its leaf: of the fullest leaf that has such
// a one, and of its own leaf last; -1 when there is none.
func (d *draw) partner(one int, own string, leaves []string, of map[string][]int, turn int) (leaf string, at int) {
	tried := map[string]bool{own: true}
	for range leaves {
		leaf = own
		if len(tried) < len(leaves) {
			leaf = fullest(leaves, of, turn, tried)
		}
		if at = slices.IndexFunc(of[leaf], func(i int) bool { return !d.met[ordered(one, i)] }); at >= 0 {
			return leaf, at
		}
		tried[leaf] = true
	}
	return "", -1
}

// fullest is the leaf that has most nodes left, but for some; of those that are equally
// full another one at each turn.
func fullest(leaves []string, of map[string][]int, turn int, but map[string]bool) (name string) {
	for k := range leaves {
		l := leaves[(k+turn)%len(leaves)]
		if !but[l] && (name == "" || len(of[l]) > len(of[name])) {
			name = l
		}
	}
	return name
}

func (d *draw) meet(a, b int) [2]int {
	d.met[ordered(a, b)] = true
	return ordered(a, b)
}

func ordered(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }
