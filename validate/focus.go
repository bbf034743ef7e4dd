package validate

import (
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// A test may be about a few nodes of its group: they are new, were repaired, or
// were changed. The others are in service. A few of them are partners: with two,
// whatever is bad with both speaks against the new node, and what is bad with one
// against that one.

// partnersOfOne is how many nodes in service a new node is tested with.
const partnersOfOne = 2

// inFocus splits nodes by whether the step is about them.
func inFocus(st plan.Step, nodes []*inventory.Node) (focus, with []*inventory.Node) {
	if st.Group == nil || len(st.Group.Focus) == 0 {
		return nodes, nil
	}
	about := make(map[subject.ID]bool, len(st.Group.Focus))
	for _, m := range st.Group.Focus {
		about[m] = true
	}
	for _, n := range nodes {
		if about[subject.OfNode(n.Name)] {
			focus = append(focus, n)
		} else {
			with = append(with, n)
		}
	}
	return focus, with
}

// reportOf returns what the report of a test belongs to. That of a test in focus
// has a name of its own, so that what the others were accepted on stands.
func reportOf(st plan.Step, name fact.Name[Report], set string) subject.ID {
	for _, k := range st.Yields {
		if k.Name == string(name) {
			return k.Subject
		}
	}
	return OfGroup(set)
}

// focused returns rounds of pairs: those in focus with one another as ever, each
// of them with its partners, and two partners with each other, which tells what
// all share from what is new. Indices count through focus and then with; none is
// twice in a round.
func focused(focus, with []*inventory.Node) [][][2]int {
	rounds := tournament(len(focus))
	var cross [][2]int
	for k := range partnersOfOne {
		for i, n := range focus {
			if j, ok := partner(n, with, i*len(with)/len(focus), k); ok {
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
	return append(rounds, spread(cross)...)
}

// partner chooses the kth partner of a node in focus: the first in its own rack
// and the second elsewhere, where there are such; from a place on, so that all of
// them take part.
func partner(n *inventory.Node, with []*inventory.Node, from, k int) (int, bool) {
	first := pick(with, from, -1, func(o *inventory.Node) bool { return o.Rack == n.Rack })
	if k == 0 {
		return first, true
	}
	if len(with) < 2 {
		return 0, false
	}
	return pick(with, from+len(with)/2, first, func(o *inventory.Node) bool { return o.Rack != n.Rack }), true
}

// pick returns the first node from a place on that is wanted, else the first that
// is not excluded.
func pick(with []*inventory.Node, from, except int, want func(*inventory.Node) bool) int {
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

// spread puts pairs into as few rounds as a greedy choice finds, such that no
// index is twice in a round.
func spread(pairs [][2]int) (rounds [][][2]int) {
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
