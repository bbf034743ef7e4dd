// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// foldFrom is how many nodes a plan has to have before those that are treated
// alike are shown once.
const foldFrom = 41

// nodeFold is how one node is shown: with those that are treated alike behind it, or
// not at all, being one of them.
type nodeFold struct {
	hidden bool
	alike  []string
	erases []string // what is erased of those, where that is not said alike
}

// foldNodes finds the nodes of a large plan that are treated alike: the same
// steps, for reasons that differ in nothing but the node's name.
func foldNodes(order []part, by map[part][]plan.Step) map[part]nodeFold {
	folds := map[part]nodeFold{}
	nodes := 0
	for _, at := range order {
		if at.Kind == subject.Node {
			nodes++
		}
	}
	if nodes < foldFrom {
		return folds
	}
	first := map[string]part{}
	for _, at := range order {
		if at.Kind != subject.Node {
			continue
		}
		like := plan.Treatment(at.Name, by[at])
		leader, seen := first[like]
		if !seen {
			first[like] = at
			continue
		}
		folds[at] = nodeFold{hidden: true}
		f := folds[leader]
		f.alike = append(f.alike, at.Name)
		f.erases = append(f.erases, ownErasures(by[at])...)
		folds[leader] = f
	}
	return folds
}

// ownErasures is what is erased by a node's steps, of those that say which very
// disks.
func ownErasures(steps []plan.Step) (list []string) {
	for _, s := range steps {
		if _, which, ok := strings.Cut(s.Erases, ": "); ok && strings.Contains(which, "serial ") {
			list = append(list, s.Erases)
		}
	}
	return list
}

// firstToLast names the first and the last of nodes.
func firstToLast(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return names[0] + " .. " + names[len(names)-1]
}
