// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"fmt"
	"testing"
)

// onLeaves gives transfers between nodes that are on leaves, so many to a leaf,
// spoiled by faults: within each leaf, and each node with one of every other leaf.
func onLeaves(leaves, nodes, rails int, faults ...Part) (ms []Measurement) {
	of := func(l, n int) string { return fmt.Sprintf("l%d-n%d", l, n) }
	add := func(l, n, k, m int) {
		for r := range rails {
			x := Measurement{Rail: r, From: of(l, n), To: of(k, m), FromLeaf: fmt.Sprintf("leaf-%d-%d", l, r), ToLeaf: fmt.Sprintf("leaf-%d-%d", k, r)}
			for _, f := range faults {
				x.Bad = x.Bad || f.Explains(x)
			}
			ms = append(ms, x)
		}
	}
	for l := range leaves {
		for n := range nodes {
			if nodes > 1 {
				add(l, n, l, (n+1)%nodes)
			}
			for k := range l {
				add(l, n, k, n)
			}
		}
	}
	return ms
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	leaf := func(l, r int) Part { return Part{fmt.Sprintf("leaf-%d-%d", l, r), Leaf, "", 0} }
	for _, c := range []struct {
		name      string
		ms        []Measurement
		want      string
		ambiguous bool
	}{
		{"one of four leaves to a rail", onLeaves(4, 8, 4, leaf(2, 1)), "leaf-2-1 uplinks", false},
		{"one of three", onLeaves(3, 2, 1, leaf(0, 0)), "leaf-0-0 uplinks", false},
		{"two of four", onLeaves(4, 8, 2, leaf(0, 1), leaf(3, 1)), "leaf-0-1 uplinks; leaf-3-1 uplinks", false},
		{"of two leaves it is unknown which", onLeaves(2, 8, 1, leaf(1, 0)), "leaf-0-0 uplinks; leaf-1-0 uplinks", true},
		{"a leaf and a node of another", onLeaves(4, 8, 2, leaf(2, 1), Part{"l0-n3", Rail, "", 0}), "l0-n3 rail 0; leaf-2-1 uplinks", false},
		{"a node is no leaf", onLeaves(4, 8, 2, Part{"l2-n5", Rail, "", 1}), "l2-n5 rail 1", false},
		{"all nodes of a leaf are no leaf", onLeaves(3, 2, 1, Part{"l1-n0", Rail, "", 0}, Part{"l1-n1", Rail, "", 0}), "l1-n0 rail 0; l1-n1 rail 0", false},
		{"the only node of its leaf", onLeaves(4, 1, 1, Part{"l2-n0", Rail, "", 0}), "l2-n0 rail 0", false},
	} {
		got := FindSuspects(c.ms)
		if text(got.Suspects) != c.want || got.Ambiguous != c.ambiguous || len(got.Between) > 0 {
			t.Errorf("%s: %q ambiguous %v, between %v; want %q", c.name, text(got.Suspects), got.Ambiguous, got.Between, c.want)
		}
	}
}
