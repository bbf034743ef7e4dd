// SPDX-License-Identifier: Apache-2.0

// Package cohort compares burn-ins of nodes that are alike, slot by slot: how warm GPUs got, how
// fast they computed, what they drew, and what their PCIe links corrected. It is pure.
package cohort

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const (
	// Fewest is how many nodes make a median.
	Fewest = 4
	// Beyond is how many degrees a GPU may be warmer than the median of its slot:
	// GPUs at the rear of a chassis get the air of those before them, so that only
	// the same slot compares. Belief; published fleets spread by less.
	Beyond = 8.0
	// Slower is the share of the median of its slot that a GPU makes at least, of the mean clock
	// and of what it computes. Chips that draw the same differ by some percent in the clock that
	// they make of it. Belief: twice what published fleets spread by.
	Slower = 0.9
)

// Node is a burn-in of one node.
type Node struct {
	Name  string
	GPUs  []wire.BurnGPU
	Names map[string]string      // what they are called, by address
	Rates map[string]burnin.Rate // what they computed, by address, where the program said it
	// Links are the errors of PCIe links that corrected some, by address, and LinksTold how many
	// links told theirs.
	Links     map[string]burnin.LinkErrors
	LinksTold int
	// Cooling is the part of the node that was found to cool it badly before the load, "inlet
	// air": that all GPUs get warm follows from it. "": none.
	Cooling string
}

// Slot is what the same slot of all nodes came to.
type Slot struct {
	Address string  `json:"address"`
	Median  float64 `json:"median_c"` // of the highest temperatures
	Most    float64 `json:"most_c"`
	Nodes   int     `json:"nodes"`
	Clock   float64 `json:"median_mhz,omitempty"`  // of the mean clocks; 0: too few report one
	Slowest float64 `json:"slowest_mhz,omitempty"` // of them
	// Rate is the median of what the GPUs computed, GFLOPS; 0: too few report it.
	Rate      float64 `json:"median_gflops,omitempty"`
	LeastRate float64 `json:"least_gflops,omitempty"` // of them
}

// Odd is a part of a node that got warmer than that of others, or computed at a lower clock.
type Odd struct {
	Node string
	judge.Fault
	Note bool // it is worth knowing and no fault
}

// CompareNodes holds each GPU against the median of its slot. A node of which most GPUs
// are too warm has one cause: its air or water; one of which most are slow as well.
func CompareNodes(nodes []Node) (slots []Slot, odd []Odd) {
	warm, paces := heatsOf(nodes), pacesOf(nodes)
	power := medians(bySlot(nodes, powerOf))
	core := warm[0]
	for _, at := range slices.Sorted(maps.Keys(core.median)) {
		s := Slot{Address: at, Median: core.median[at], Most: slices.Max(core.all[at]), Nodes: len(core.all[at])}
		s.Clock, s.Slowest = paces[0].of(at)
		s.Rate, s.LeastRate = paces[1].of(at)
		slots = append(slots, s)
	}
	for _, n := range nodes {
		odd = append(odd, n.odd(warm)...)
		odd = append(odd, n.slow(paces)...)
		odd = append(odd, n.drewOdd(power)...)
		odd = append(odd, n.oddLinks(nodes)...)
	}
	return slots, odd
}

// heat is a sensor of temperature, with what all nodes came to.
type heat struct {
	what   string // "it" or "its memory"
	of     func(wire.BurnGPU) wire.Span
	all    map[string][]float64 // highest temperatures by address, in their order
	median map[string]float64   // of the slots of which enough nodes tell
}

// heatsOf are those of the chip and of its memory: a stack of HBM with a bad contact to the heat
// sink gets warm by itself.
func heatsOf(nodes []Node) []heat {
	heats := []heat{
		{what: "it", of: func(g wire.BurnGPU) wire.Span { return g.Core }},
		{what: "its memory", of: func(g wire.BurnGPU) wire.Span { return g.Memory }},
	}
	for i := range heats {
		h := &heats[i]
		h.all = bySlot(nodes, func(_ Node, g wire.BurnGPU) (float64, bool) { s := h.of(g); return s.Most, s.Count > 0 })
		h.median = medians(h.all)
	}
	return heats
}

// odd says how a GPU got warmer than those in its slot; judged is false where it cannot be said.
func (h heat) odd(g wire.BurnGPU, part string) (f judge.Fault, odd, judged bool) {
	usual, ok := h.median[g.Address]
	s := h.of(g)
	if !ok || s.Count == 0 {
		return f, false, false
	}
	if s.Most-usual <= Beyond {
		return f, false, true
	}
	all := h.all[g.Address]
	return judge.Fault{Part: part, Action: burnin.DoHeat,
		Cause:    fmt.Sprintf("%s: %s got %.0f °C warm under load, %.0f more than the median of its slot", part, h.what, s.Most, s.Most-usual),
		Evidence: []string{fmt.Sprintf("%s, %d nodes: median %.0f °C, %.0f °C at most; this one: %s", g.Address, len(all), usual, all[len(all)-1], burnin.FormatFigures(g))}}, true, true
}

// bySlot are the figures of the GPUs that have one, by address.
func bySlot(nodes []Node, value func(Node, wire.BurnGPU) (v float64, measured bool)) map[string][]float64 {
	all := map[string][]float64{}
	for _, n := range nodes {
		for _, g := range n.GPUs {
			if v, ok := value(n, g); ok {
				all[g.Address] = append(all[g.Address], v)
			}
		}
	}
	return all
}

// medians are those of the slots of which enough nodes tell.
func medians(of map[string][]float64) map[string]float64 {
	median := map[string]float64{}
	for at, all := range of {
		slices.Sort(all)
		if len(all) >= Fewest {
			median[at] = medianOf(all)
		}
	}
	return median
}

// medianOf is that of figures in their order.
func medianOf(all []float64) float64 { return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 }

// odd are the parts of one node that got too warm.
func (n Node) odd(heats []heat) (list []Odd) {
	judged := 0
	for _, g := range n.GPUs {
		told := false
		for _, h := range heats {
			f, odd, ok := h.odd(g, burnin.NameGPU(n.Names, g.Address))
			told = told || ok
			if odd {
				list = append(list, Odd{Node: n.Name, Fault: f})
				break
			}
		}
		if told {
			judged++
		}
	}
	if len(list) < 2 || 2*len(list) <= judged {
		return list
	}
	var evidence []string
	for _, o := range list {
		evidence = append(evidence, strings.TrimPrefix(o.Cause, "GPU at "))
	}
	cause := fmt.Sprintf("%d of %d GPUs got more than %.0f °C warmer under load than those of other nodes in the same slots", len(list), judged, Beyond)
	if n.Cooling != "" {
		return []Odd{{Node: n.Name, Note: true, Fault: judge.Fault{Part: "cooling", Evidence: evidence, Cause: cause + ", as its " + n.Cooling + " lets expect"}}}
	}
	return []Odd{{Node: n.Name, Fault: judge.Fault{Part: "cooling", Evidence: evidence, Cause: cause,
		Action: "Look at what cools the whole node: its fans, its air shroud or manifold, filters, blanking panels of the rack, and the air or water that comes in."}}}
}
