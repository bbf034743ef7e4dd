// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const (
	// Fewest is how many nodes make a median.
	Fewest = 4
	// Beyond is how many degrees a GPU may be warmer than the median of its slot:
	// GPUs at the rear of a chassis get the air of those before them, so that only
	// the same slot compares. Belief; published fleets spread by less.
	Beyond = 8.0
)

// Node is a burn-in of one node.
type Node struct {
	Name  string
	GPUs  []wire.BurnGPU
	Names map[string]string // what they are called, by address
}

// Slot is what the same slot of all nodes came to.
type Slot struct {
	Address string  `json:"address"`
	Median  float64 `json:"median_c"` // of the highest temperatures
	Most    float64 `json:"most_c"`
	Nodes   int     `json:"nodes"`
}

// Odd is a part of a node that got warmer than that of others.
type Odd struct {
	Node string
	judge.Fault
}

// CompareNodes holds each GPU against the median of its slot. A node of which most GPUs
// are too warm has one cause: its air or water.
func CompareNodes(nodes []Node) (slots []Slot, odd []Odd) {
	most := map[string][]float64{} // by address
	for _, n := range nodes {
		for _, g := range n.GPUs {
			if g.Core.Count > 0 {
				most[g.Address] = append(most[g.Address], g.Core.Most)
			}
		}
	}
	median := map[string]float64{}
	for _, at := range sortedKeys(most) {
		all := most[at]
		slices.Sort(all)
		if len(all) >= Fewest {
			median[at] = (all[(len(all)-1)/2] + all[len(all)/2]) / 2
			slots = append(slots, Slot{at, median[at], all[len(all)-1], len(all)})
		}
	}
	for _, n := range nodes {
		odd = append(odd, n.odd(median, most)...)
	}
	return slots, odd
}

// odd are the parts of one node that got too warm.
func (n Node) odd(median map[string]float64, all map[string][]float64) (list []Odd) {
	judged := 0
	for _, g := range n.GPUs {
		usual, ok := median[g.Address]
		if !ok || g.Core.Count == 0 {
			continue
		}
		judged++
		if g.Core.Most-usual <= Beyond {
			continue
		}
		part := n.Names[g.Address]
		if part == "" {
			part = "GPU at " + g.Address
		}
		list = append(list, Odd{n.Name, judge.Fault{Part: part, Action: doHeat,
			Cause:    fmt.Sprintf("%s: it got %.0f °C warm under load, %.0f more than the median of its slot", part, g.Core.Most, g.Core.Most-usual),
			Evidence: []string{fmt.Sprintf("%s, %d nodes: median %.0f °C, %.0f °C at most; this one: %s", g.Address, len(all[g.Address]), usual, all[g.Address][len(all[g.Address])-1], formatFigures(g))}}})
	}
	if len(list) < 2 || 2*len(list) <= judged {
		return list
	}
	var evidence []string
	for _, o := range list {
		evidence = append(evidence, strings.TrimPrefix(o.Cause, "GPU at "))
	}
	return []Odd{{n.Name, judge.Fault{Part: "cooling", Evidence: evidence,
		Cause:  fmt.Sprintf("%d of %d GPUs got more than %.0f °C warmer under load than those of other nodes in the same slots", len(list), judged, Beyond),
		Action: "Look at what cools the whole node: its fans, its air shroud or manifold, filters, blanking panels of the rack, and the air or water that comes in."}}}
}
