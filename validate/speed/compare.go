// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/scatter"
)

// Node is a node with what was measured of it.
type Node struct {
	Name string
	Record
}

// Row is what parts that are alike came to.
type Row struct {
	Check  string  `json:"check"` // host.memory, ...
	Of     string  `json:"of"`    // what is alike, and where it is
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Floor  float64 `json:"floor,omitempty"` // the least that is good; 0: they scatter too much to tell
	Count  int     `json:"count"`           // of figures
	// Groups are the two that its nodes are in, where no majority of them is fast; nil: there are none.
	Groups *bimodal.Groups `json:"groups,omitempty"`
}

// Odd is a part of a node that is slow against those that are like it.
type Odd struct {
	Node string
	judge.Fault
}

// figure is one part's.
type figure struct {
	node, part, alike string
	value             float64
}

// kind is something that is compared.
type kind struct {
	check  string
	share  float64 // of the median that is reached at least
	action string
	says   func(figure, float64) string // of a value and its median
	of     func(Node) []figure
}

const (
	memoryPart = "memory"
	cpuPart    = "CPU"
)

// onNode names what is of a NUMA node.
func onNode(part string, node int) string { return fmt.Sprintf("%s of NUMA node %d", part, node) }

// kinds in the order in which they are compared: cores that are held down explain a memory that
// is slow.
var kinds = []kind{
	{floor.HostCPU, cpuShare, doCPU, func(f figure, usual float64) string {
		return fmt.Sprintf("its cores take %s for a billion operations while all of them work, those of other nodes %s", formatWork(f.value), formatWork(usual))
	}, func(n Node) (list []figure) {
		for _, c := range n.CPUs {
			list = append(list, figure{n.Name, onNode(cpuPart, c.Node), fmt.Sprintf("%s; NUMA node %d", n.CPU, c.Node), c.Rate})
		}
		return list
	}},
	{floor.HostMemory, memoryShare, doMemory, func(f figure, usual float64) string {
		return fmt.Sprintf("all cores together reach %s in it, %.0f%% of the median of other nodes", result.FormatRate(f.value), 100*f.value/usual)
	}, func(n Node) (list []figure) {
		for _, m := range n.Memory {
			list = append(list, figure{n.Name, onNode(memoryPart, m.Node), fmt.Sprintf("%s; %s; NUMA node %d", n.CPU, n.Modules, m.Node), m.Rate})
		}
		return list
	}},
	{floor.DiskRead, diskShare, doDisk, func(f figure, usual float64) string {
		return fmt.Sprintf("it is read at %s, %.0f%% of the median of disks of its model", result.FormatRate(f.value), 100*f.value/usual)
	}, func(n Node) (list []figure) {
		for _, d := range n.Disks {
			if d.Rate > 0 {
				list = append(list, figure{n.Name, d.Part, d.Model, d.Rate})
			}
		}
		return list
	}},
}

// CompareNodes holds parts against those of other nodes that are like them. Nodes whose CPUs or
// modules differ are not alike: what differs is found by the comparison of parts.
func CompareNodes(nodes []Node) (rows []Row, found []Odd, notes []string) {
	for _, k := range kinds {
		alike := map[string][]figure{}
		for _, n := range nodes {
			for _, f := range k.of(n) {
				alike[f.alike] = append(alike[f.alike], f)
			}
		}
		for _, key := range sortedKeys(alike) {
			all := alike[key]
			if len(all) < Fewest {
				notes = append(notes, fmt.Sprintf("%s of %s: %d are too few for a median", k.check, key, len(all)))
				continue
			}
			row, odd := k.compare(key, all)
			if len(odd) == 0 {
				row.Groups = k.groups(nodes, all)
			}
			if row.Floor == 0 && row.Groups == nil {
				notes = append(notes, fmt.Sprintf("%s of %s: %d figures from %s to %s scatter too much to be compared", k.check, key, len(all), format(k.check, row.Least), format(k.check, all[len(all)-1].value)))
			}
			rows, found = append(rows, row), append(found, odd...)
		}
	}
	return rows, explain(nodes, found), notes
}

// compare holds figures that are alike against their median, and sorts them.
func (k kind) compare(key string, all []figure) (row Row, odd []Odd) {
	slices.SortStableFunc(all, func(a, b figure) int { return cmp.Compare(a.value, b.value) })
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = f.value
	}
	median, least, ok := scatter.Bound(values, k.share)
	row = Row{Check: k.check, Of: key, Median: median, Least: values[0], Floor: least, Count: len(all)}
	if !ok {
		row.Floor = 0
	}
	for _, f := range all {
		if f.value >= row.Floor {
			break
		}
		odd = append(odd, Odd{f.node, judge.Fault{Part: f.part, Cause: f.part + ": " + k.says(f, row.Median), Action: k.action,
			Evidence: []string{fmt.Sprintf("%s of %s: %d figures, median %s, %s to %s; this one: %s", k.check, key, len(all), format(k.check, row.Median), format(k.check, all[0].value), format(k.check, all[len(all)-1].value), format(k.check, f.value))}}})
	}
	return row, odd
}

// groups are the two that nodes are in by the slowest of their figures, of those in which nothing was
// found that is slow by itself; nil: they are not.
func (k kind) groups(nodes []Node, all []figure) *bimodal.Groups {
	var slowest []bimodal.Figure
	seen := map[string]bool{}
	for _, f := range all { // the slowest first
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == f.node })
		part, _, _ := strings.Cut(f.part, " of NUMA node")
		if !seen[f.node] && !nodes[i].hasFault(part) {
			seen[f.node], slowest = true, append(slowest, bimodal.Figure{Node: f.node, Value: f.value})
		}
	}
	if g, ok := bimodal.Find(slowest, k.share); ok {
		return &g
	}
	return nil
}

// explain leaves out what was found of a node by itself, makes one finding of all NUMA nodes of
// a host, and lets CPUs that are slow explain a slow memory.
func explain(nodes []Node, found []Odd) (list []Odd) {
	for _, n := range nodes {
		cpus := joinNUMA(n, cpuPart, len(n.CPUs), found)
		if n.hasFault(cpuPart) {
			cpus = nil
		}
		memory := joinNUMA(n, memoryPart, len(n.Memory), found)
		switch {
		case n.hasFault(memoryPart):
			memory = nil
		case len(cpus) > 0 && len(memory) > 0:
			cpus[0].Evidence = append(cpus[0].Evidence, memory[0].Cause)
			memory = nil
		}
		list = append(append(list, cpus...), memory...)
		for _, o := range found {
			if o.Node == n.Name && slices.ContainsFunc(n.Disks, func(d Disk) bool { return d.Part == o.Part }) && !n.hasFault(o.Part) {
				list = append(list, o)
			}
		}
	}
	return list
}

// joinNUMA returns what was found of the NUMA nodes of a node: one of all of them, where it is all.
func joinNUMA(n Node, part string, count int, found []Odd) (list []Odd) {
	for _, o := range found {
		for i := range count {
			at := i
			if part == cpuPart {
				at = n.CPUs[i].Node
			} else {
				at = n.Memory[i].Node
			}
			if o.Node == n.Name && o.Part == onNode(part, at) {
				list = append(list, o)
			}
		}
	}
	if len(list) < count || count == 0 {
		return list
	}
	one := Odd{n.Name, judge.Fault{Part: part, Cause: part + list[0].Cause[len(list[0].Part):], Action: list[0].Action}}
	for _, o := range list {
		one.Evidence = append(one.Evidence, o.Evidence...)
	}
	return []Odd{one}
}

func format(check string, v float64) string {
	if check == floor.HostCPU {
		return formatWork(v)
	}
	return result.FormatRate(v)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
