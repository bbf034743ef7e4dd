// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"fmt"
	"slices"
	"testing"
)

// TestExplainers: the parts that are listed for a measurement are those that explain it.
func TestExplainers(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b"}
	var parts []Part
	for _, n := range append(names, "", "leaf-1", "leaf-2", "leaf-1/33", "spine-1") {
		for s := WholeNode; s <= Spine; s++ {
			for _, f := range []string{"", "storage"} {
				for rail := range 2 {
					if s == WholeNode || s >= Leaf {
						f, rail = "", 0
					}
					if (n == "") == (s == Shared) && !slices.Contains(parts, Part{n, s, f, rail}) {
						parts = append(parts, Part{n, s, f, rail})
					}
				}
			}
		}
	}
	parts = append(parts, Part{"", Everything, "", 0}, Part{"", Everything, "storage", 0})
	for _, m := range []Measurement{
		{From: "a", To: "b"}, {From: "b", To: "a", Rail: 1, Fabric: "storage"}, {From: "a", To: "a", Rail: 1},
		{From: "a", To: "b", FromLeaf: "leaf-1", ToLeaf: "leaf-1"}, {From: "a", To: "b", FromLeaf: "leaf-1", ToLeaf: "leaf-2"},
		{From: "a", To: "b", FromLeaf: "leaf-1", ToLeaf: "leaf-2", Via: []Crossing{{"leaf-1/33", "spine-1"}, {"leaf-2/33", "spine-1"}}},
	} {
		list := explainers(m)
		for _, p := range parts {
			if slices.Contains(list, p) != p.Explains(m) {
				t.Errorf("%+v and %+v: listed %v, and explains %v", m, p, slices.Contains(list, p), p.Explains(m))
			}
		}
	}
}

// TestGroups: faults that have nothing to do with each other are told for themselves. Of
// 1,024 nodes with four partners each 40 have a bad rail, and two nodes were tested with
// each other alone: their ambiguity is theirs, and the others are certain.
func TestGroups(t *testing.T) {
	t.Parallel()
	const nodes = 1024
	bad := func(i int) bool { return i%25 == 3 }
	var ms []Measurement
	for i := range nodes {
		for _, step := range []int{1, 2} {
			j := (i + step) % nodes
			for rail := range 8 {
				wrong := rail == i%8 && bad(i) || rail == j%8 && bad(j)
				ms = append(ms, Measurement{Rail: rail, From: name(i), To: name(j), Bad: wrong}, Measurement{Rail: rail, From: name(j), To: name(i), Bad: wrong})
			}
		}
	}
	ms = append(ms, Measurement{Rail: 1, From: "x", To: "y", Fabric: "storage", Bad: true}, Measurement{Rail: 1, From: "y", To: "x", Fabric: "storage", Bad: true},
		Measurement{Rail: 1, From: "w", To: "z", Fabric: "storage"})
	v := FindSuspects(ms)
	certain, doubt := 0, ""
	for _, g := range v.Groups {
		switch {
		case g.Ambiguous:
			doubt += NameParts(g.Suspects)
		case len(g.Suspects) == 1 && g.Suspects[0].Scope == Rail:
			certain++
		default:
			t.Errorf("%+v", g)
		}
	}
	if certain != nodes/25+1 || doubt != "x rail 1 of storage and y rail 1 of storage" || !v.Ambiguous || len(v.Between) > 0 || len(v.Suspects) != certain+2 {
		t.Errorf("%d are certain, in doubt is %q; %+v", certain, doubt, v.Between)
	}
}

// BenchmarkSuspects: everything is bad between so many nodes.
func BenchmarkSuspects(b *testing.B) {
	for _, nodes := range []int{128, 1024} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			var ms []Measurement
			for i := range nodes {
				for _, step := range []int{1, 2} {
					for rail := range 8 {
						ms = append(ms, Measurement{Rail: rail, From: name(i), To: name((i + step) % nodes), Bad: true})
					}
				}
			}
			for b.Loop() {
				FindSuspects(ms)
			}
		})
	}
}
