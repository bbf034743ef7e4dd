package validate

// allPairsUpTo is the number of nodes up to which every pair is tested; above
// it, sampledRounds rounds give each node that many partners.
const (
	allPairsUpTo  = 8
	sampledRounds = 4
)

// tournament returns rounds of pairs of 0..n-1, such that no index is twice in a
// round: the circle method. Up to allPairsUpTo every pair meets once; above it
// the first sampledRounds rounds are returned.
func tournament(n int) [][][2]int {
	if n < 2 {
		return nil
	}
	m := n + n%2 // with a bye for an odd number
	count := m - 1
	if n > allPairsUpTo {
		count = sampledRounds
	}
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
