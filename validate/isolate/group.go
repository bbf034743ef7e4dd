// SPDX-License-Identifier: Apache-2.0

package isolate

import "slices"

// group is bad measurements that share no candidate with those of any other group: what
// explains them is found for itself. Hundreds of nodes with faults far apart would be one
// search otherwise, and one ambiguity among them would be all of theirs.
type group struct {
	parts []Part
	of    [][]int // the parts that explain each bad measurement
}

// explainers lists the parts that would spoil a measurement: those for which Explains is
// true.
func explainers(m Measurement) (list []Part) {
	list = append(list, Part{m.From, WholeNode, "", 0}, Part{m.From, Rail, m.Fabric, m.Rail}, Part{m.From, Send, m.Fabric, m.Rail}, Part{m.To, Receive, m.Fabric, m.Rail})
	if m.From != m.To {
		list = append(list, Part{"", Everything, m.Fabric, 0}, Part{"", Shared, m.Fabric, m.Rail}, Part{m.To, WholeNode, "", 0}, Part{m.To, Rail, m.Fabric, m.Rail})
	}
	if m.Crosses() {
		list = append(list, Part{m.FromLeaf, Leaf, "", 0}, Part{m.ToLeaf, Leaf, "", 0})
	}
	for _, c := range m.Via {
		for _, p := range []Part{{Node: c.Trunk, Scope: Trunk}, {Node: c.Spine, Scope: Spine}} {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// splitGroups groups the bad measurements by the candidates that they share, in the order
// of the measurements, and lists those that none explains.
func splitGroups(bad []Measurement, parts []Part) (groups []group, without []Measurement) {
	at := make(map[Part]int, len(parts))
	for i, p := range parts {
		at[p] = i
	}
	in := newUnion(len(parts))
	var of [][]int
	for _, m := range bad {
		var list []int
		for _, p := range explainers(m) {
			if i, candidate := at[p]; candidate {
				list = append(list, i)
			}
		}
		if len(list) == 0 {
			without = append(without, m)
			continue
		}
		slices.Sort(list)
		for _, i := range list[1:] {
			in.join(list[0], i)
		}
		of = append(of, list)
	}
	number := map[int]int{} // of the group of each root
	local := map[int]int{}  // the place of a part within its group
	for _, list := range of {
		root := in.root(list[0])
		k, known := number[root]
		if !known {
			k = len(groups)
			number[root], groups = k, append(groups, group{})
		}
		g := &groups[k]
		mine := make([]int, len(list))
		for j, i := range list {
			if _, known := local[i]; !known {
				local[i] = len(g.parts)
				g.parts = append(g.parts, parts[i])
			}
			mine[j] = local[i]
		}
		g.of = append(g.of, mine)
	}
	return groups, without
}

// union is disjoint sets of numbers (union-find, with halved paths).
type union []int

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = i
	}
	return u
}

func (u union) root(i int) int {
	for u[i] != i {
		u[i] = u[u[i]]
		i = u[i]
	}
	return i
}

func (u union) join(a, b int) { u[u.root(b)] = u.root(a) }
