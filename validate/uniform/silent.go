// SPDX-License-Identifier: Apache-2.0

package uniform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Silent is what a node tells of fewer parts than most nodes do.
type Silent struct {
	Node  string
	Key   string // one of Keys
	Told  int    // parts of the node that tell it
	Usual int    // of most nodes
}

// FindSilent finds what nodes of one cohort tell of fewer parts than two of three of them do:
// a driver or a program that leaves one out gives no value that could be odd. Versions and
// models are counted by their key, of whatever they are.
func FindSilent(nodes []Node) (list []Silent) {
	told, keys := map[string]map[string]int{}, map[string]bool{} // parts by node and key
	for _, n := range nodes {
		if !counted(n) {
			continue
		}
		told[n.Name] = map[string]int{}
		for _, t := range n.Traits {
			told[n.Name][t.Key] += t.Count
			keys[t.Key] = true
		}
	}
	if len(told) < Fewest {
		return nil
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Compare(rankKey(a), rankKey(b)) }) {
		usual := usualCount(told, key)
		for _, node := range slices.Sorted(maps.Keys(told)) {
			if n := told[node][key]; n < usual {
				list = append(list, Silent{node, key, n, usual})
			}
		}
	}
	return list
}

// counted reports whether the parts of a node were counted when it was read.
func counted(n Node) bool {
	return len(n.Traits) > 0 && !slices.ContainsFunc(n.Traits, func(t Trait) bool { return t.Count == 0 })
}

// usualCount is of how many parts two of three nodes tell a key; 0 where no majority agrees.
func usualCount(told map[string]map[string]int, key string) int {
	nodes := map[int]int{}
	for _, of := range told {
		nodes[of[key]]++
		if n := of[key]; shareOf*nodes[n] >= share*len(told) {
			return n
		}
	}
	return 0
}

// describeSilent puts what a node does not report into one sentence.
func describeSilent(node, role string, list []Silent) string {
	var words []string
	for _, s := range list {
		switch {
		case s.Node != node:
		case s.Told == 0:
			words = append(words, s.Key)
		default:
			words = append(words, fmt.Sprintf("%s of %d parts instead of %d", s.Key, s.Told, s.Usual))
		}
	}
	return fmt.Sprintf("%s does not report what most nodes of role %s do, and it was not compared: %s", node, role, strings.Join(words, ", "))
}

// silent notes what nodes that the step is about do not report.
func (u *uniformity) silent(cohort []Node, about map[string]bool) {
	list := FindSilent(cohort)
	noted := map[string]bool{}
	for _, s := range list {
		if about[s.Node] && !noted[s.Node] {
			noted[s.Node] = true
			u.notes = append(u.notes, describeSilent(s.Node, u.role, list))
		}
	}
}
