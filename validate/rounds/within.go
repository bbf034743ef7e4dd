// SPDX-License-Identifier: Apache-2.0

package rounds

// partners is how many others each node meets in rounds within leaves: with two, a slow node is
// distinguished from a slow partner.
const partners = 2

// WithinLeaves returns rounds of pairs of 0..n-1, no index twice in a round and no pair twice, in
// which each index meets two others, on its own leaf as far as there are such: leaf says where an
// index is. They are four rounds at most, however many indices there are.
func WithinLeaves(leaf []string) [][][2]int {
	d := draw{leaf: leaf, met: map[[2]int]bool{}}
	count := make([]int, len(leaf))
	var all [][2]int
	meet := func(a, b int) {
		all = append(all, d.meet(a, b))
		count[a]++
		count[b]++
	}
	groups := groupByLeaf(leaf)
	for r := range partners {
		for _, g := range groups {
			if rounds := circle(len(g), partners); r < len(rounds) {
				for _, p := range rounds[r] {
					meet(g[p[0]], g[p[1]])
				}
			}
		}
	}
	for _, onLeaf := range []bool{true, false} {
		for i := range leaf {
			for count[i] < partners {
				j := d.fewestMet(i, count, onLeaf)
				if j < 0 {
					break
				}
				meet(i, j)
			}
		}
	}
	return Spread(all)
}

// fewestMet is an index that another one has not met, on its leaf or on any, and that has met the
// fewest so far; -1 where there is none.
func (d *draw) fewestMet(i int, count []int, onLeaf bool) int {
	best := -1
	for j := range count {
		switch {
		case j == i, best >= 0 && count[j] >= count[best], onLeaf && d.leaf[j] != d.leaf[i], d.met[ordered(i, j)]:
		default:
			best = j
		}
	}
	return best
}
