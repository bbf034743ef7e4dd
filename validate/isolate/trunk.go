// SPDX-License-Identifier: Apache-2.0

package isolate

import "slices"

// Crossing is a cable between two switches that a transfer went over: its lower end,
// such as net/leaf-1/33, and the switch at its upper end.
type Crossing struct{ Trunk, Spine string }

// FindTrunks finds the cables between switches, and the switches above them, that
// explain the bad ones among measurements whose way is known. A good one acquits all
// that it went over. Bad ones that nothing explains are in Between: a part of their way
// is good now and then, or is no cable and no switch above one.
func FindTrunks(ms []Measurement) Verdict { return findAbove(ms, false) }

// FindTrunksAndLeaves is FindTrunks where a leaf may be at fault as well, for all that
// crosses it. Measurements whose way is not known acquit the leaves that they are between.
func FindTrunksAndLeaves(ms []Measurement) Verdict { return findAbove(ms, true) }

func findAbove(ms []Measurement, leaves bool) Verdict {
	bad, good := map[Part]bool{}, map[Part]bool{}
	var all []Measurement
	for _, m := range ms {
		of := good
		if m.Bad {
			of, all = bad, append(all, m)
		}
		for _, c := range m.Via {
			of[Part{Node: c.Trunk, Scope: Trunk}], of[Part{Node: c.Spine, Scope: Spine}] = true, true
		}
		if leaves && m.Crosses() {
			of[Part{Node: m.FromLeaf, Scope: Leaf}], of[Part{Node: m.ToLeaf, Scope: Leaf}] = true, true
		}
	}
	var parts []Part
	for p := range bad {
		if !good[p] {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, compareParts)
	return explainAll(all, parts)
}

// fewestUnexplained is how many bad transfers between leaves speak against what lies
// between them, where their ways are not known: one or two are a path that was bad once.
const fewestUnexplained = 3

// FindBetweenLeaves says what explains bad transfers between leaves whose ways are not
// known, while the nodes are good with others: something above the leaf that all of them
// share, above either of two, or where they share none, what all leaves share: a Spine
// without a name. It is empty when there are too few of them.
func FindBetweenLeaves(bad []Measurement) Verdict {
	var shared []string
	pairs, first := map[[2]string]bool{}, true
	for _, m := range bad {
		if !m.Crosses() {
			continue
		}
		pairs[[2]string{min(m.From, m.To), max(m.From, m.To)}] = true
		ends := []string{m.FromLeaf, m.ToLeaf}
		if first {
			shared, first = ends, false
		}
		shared = slices.DeleteFunc(shared, func(leaf string) bool { return !slices.Contains(ends, leaf) })
	}
	if len(bad) < fewestUnexplained || len(pairs) < 2 {
		return Verdict{}
	}
	v := Verdict{Ambiguous: len(shared) > 1}
	for _, leaf := range shared {
		v.Suspects = append(v.Suspects, Part{Node: leaf, Scope: Leaf})
	}
	if len(shared) == 0 {
		v.Suspects = []Part{{Scope: Spine}}
	}
	slices.SortFunc(v.Suspects, compareParts)
	return v
}

// fewestLeaves is of how many leaves all have to be bad with one another before what
// they share is blamed: of two either may be bad.
const fewestLeaves = 3

// AllCrossings returns the transfers between leaves when every one is bad, of three
// leaves or more, and one at least that stays on a leaf is good; nil: some are good.
func AllCrossings(ms []Measurement) (bad []Measurement) {
	leaves, onLeaf := map[string]bool{}, false
	for _, m := range ms {
		switch {
		case !m.Crosses():
			onLeaf = onLeaf || !m.Bad
		case !m.Bad:
			return nil
		default:
			leaves[m.FromLeaf], leaves[m.ToLeaf] = true, true
			bad = append(bad, m)
		}
	}
	if len(leaves) < fewestLeaves || !onLeaf {
		return nil
	}
	return bad
}
