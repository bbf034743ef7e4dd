// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// fewest is how many nodes of a role make a majority worth naming.
const fewest = 3

// mostMinority is how many nodes a note names.
const mostMinority = 8

// Majority names, role by role, the nodes that differ from most of their role, of
// which nobody knows how they were when they were accepted. It is a note: the
// majority may be the wrong half.
func Majority(seen []Snapshot, roleOf func(node string) string, judged func(node string) bool, sets Sets) (notes []Note) {
	roles := map[string][]Snapshot{}
	for _, s := range seen {
		if r := roleOf(s.Node); r != "" {
			roles[r] = append(roles[r], s)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		notes = append(notes, findMinority(role, roles[role], judged, sets)...)
	}
	return notes
}

// findMinority compares the nodes of one role.
func findMinority(role string, nodes []Snapshot, judged func(string) bool, sets Sets) (notes []Note) {
	have := map[key]map[string][]string{} // nodes by value
	put := func(k key, value, node string) {
		if have[k] == nil {
			have[k] = map[string][]string{}
		}
		have[k][value] = append(have[k][value], node)
	}
	for _, s := range nodes {
		for _, i := range s.Items {
			if isShared(i) {
				put(key{i.Kind, i.Part, i.Name}, i.Value, s.Node)
			}
		}
		for _, kind := range []string{BIOS, wire.ItemPackages} {
			for name, value := range sets(s.Sets[kind]) {
				put(key{kind, "", name}, value, s.Node)
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(have), func(a, b key) int {
		return strings.Compare(a.kind+"\x00"+a.part+"\x00"+a.name, b.kind+"\x00"+b.part+"\x00"+b.name)
	})
	for _, k := range keys {
		notes = append(notes, findOutliers(role, k, have[k], judged)...)
	}
	return notes
}

// isShared reports whether nodes of one role have an item in common.
func isShared(i wire.Item) bool {
	switch i.Kind {
	case wire.ItemFirmware:
		return !strings.HasPrefix(i.Part, "disk ")
	case wire.ItemKernel:
		return true
	case wire.ItemSecureBoot:
		return i.Part == "" // a certificate that a node does not have is no other value
	case wire.ItemDrivers, wire.ItemNetwork, wire.ItemLink:
		return true
	case wire.ItemImage:
		return i.Name == "digest"
	case wire.ItemHardware:
		return slices.Contains([]string{"product", "cores", "installed", "GPU"}, i.Name)
	}
	return false
}

// findOutliers says which nodes have another value than most.
func findOutliers(role string, k key, values map[string][]string, judged func(string) bool) (notes []Note) {
	total, most := 0, ""
	for v, nodes := range values {
		if total += len(nodes); len(nodes) > len(values[most]) || len(nodes) == len(values[most]) && v < most {
			most = v
		}
	}
	if total < fewest || 2*len(values[most]) <= total || len(values) == 1 {
		return nil
	}
	for _, v := range slices.Sorted(maps.Keys(values)) {
		nodes := slices.DeleteFunc(slices.Clone(values[v]), judged)
		if v == most || len(nodes) == 0 {
			continue
		}
		what := strings.Join(strings.Fields(k.kind+" "+k.part+" "+k.name), " ")
		n := Note{Text: fmt.Sprintf("%d of %d nodes of role %s have %s %s; %s %s", len(values[most]), total, role, what, most, nameNodes(nodes), v)}
		if len(nodes) == 1 {
			n.Node = nodes[0]
		}
		notes = append(notes, n)
	}
	return notes
}

// nameNodes lists nodes with their verb.
func nameNodes(nodes []string) string {
	if len(nodes) == 1 {
		return nodes[0] + " has"
	}
	if more := len(nodes) - mostMinority; more > 0 {
		return fmt.Sprintf("%s and %d more have", strings.Join(nodes[:mostMinority], ", "), more)
	}
	return strings.Join(nodes, ", ") + " have"
}
