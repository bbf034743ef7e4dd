// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const doClock = "Look at nvidia-smi -q -d CLOCK,PERFORMANCE,POWER (amd-smi metric --clock --power) under load beside a good one: locked clocks, a lower power limit, a cap that stays. If nothing is set, reset the GPU; then have it replaced."

// pace is a measure of how fast GPUs computed, with what all nodes came to.
type pace struct {
	value  func(Node, wire.BurnGPU) (v float64, measured bool)
	unit   string
	cause  string // "it %s 1500 MHz on average ..."
	action string

	all    map[string][]float64 // by address, in their order
	median map[string]float64   // of the slots of which enough nodes tell
}

// pacesOf are clocks and what GPUs made of them. A clock that is low explains why little was
// computed, and comes first.
func pacesOf(nodes []Node) []pace {
	paces := []pace{
		{value: func(_ Node, g wire.BurnGPU) (float64, bool) { return g.Clock.Mean, g.Clock.Count > 0 }, unit: "MHz", cause: "computed at", action: doClock},
		{value: func(n Node, g wire.BurnGPU) (float64, bool) { r, ok := n.Rates[g.Address]; return r.Mean, ok }, unit: "GFLOPS", cause: "computed", action: burnin.DoPace},
	}
	for i := range paces {
		p := &paces[i]
		p.all = bySlot(nodes, p.value)
		p.median = medians(p.all)
	}
	return paces
}

// of is the median of a slot, and the least in it; 0 where too few were measured.
func (p pace) of(address string) (median, least float64) {
	median, ok := p.median[address]
	if !ok {
		return 0, 0
	}
	return median, slices.Min(p.all[address])
}

// slow says what a GPU did less than those in its slot; false if nothing, or if it cannot be said.
func (p pace) slow(n Node, g wire.BurnGPU, part string) (judge.Fault, bool) {
	v, measured := p.value(n, g)
	usual := p.median[g.Address]
	if !measured || v >= Slower*usual {
		return judge.Fault{}, false
	}
	all := p.all[g.Address]
	return judge.Fault{Part: part, Action: p.action,
		Cause: fmt.Sprintf("%s: it %s %.0f %s on average under load, %.0f%% of the median of its slot", part, p.cause, v, p.unit, 100*v/usual),
		Evidence: []string{fmt.Sprintf("%s, %d nodes: median %.0f %s, %.0f to %.0f %s; this one: %s",
			g.Address, len(all), usual, p.unit, all[0], all[len(all)-1], p.unit, burnin.FormatFigures(g))}}, true
}

// slow are the GPUs of one node that computed at a lower clock than those in the same slot of
// others, or less, and that neither heat nor the chassis held down: those are found by themselves.
func (n Node) slow(paces []pace) (list []Odd) {
	judged := 0
	for _, g := range n.GPUs {
		if !slices.ContainsFunc(paces, func(p pace) bool { _, ok := p.value(n, g); return ok && p.median[g.Address] > 0 }) {
			continue
		}
		judged++
		if burnin.IsHeld(g) {
			continue
		}
		for _, p := range paces {
			if f, ok := p.slow(n, g, burnin.NameGPU(n.Names, g.Address)); ok {
				list = append(list, Odd{Node: n.Name, Fault: f})
				break
			}
		}
	}
	if len(list) < 2 || 2*len(list) <= judged {
		return list
	}
	var evidence []string
	for _, o := range list {
		evidence = append(evidence, o.Cause)
	}
	return []Odd{{Node: n.Name, Fault: judge.Fault{Part: "GPUs", Evidence: evidence,
		Cause:  fmt.Sprintf("%d of %d GPUs computed less than %.0f%% of what those of other nodes in the same slots did, or at less than that share of their clock", len(list), judged, 100*Slower),
		Action: "Compare the node's power limits, clock settings, BIOS settings and VBIOS with those of another one; look at its power supplies and both feeds."}}}
}

// drewLeast and drewMost are the shares of the median of its slot between which a GPU draws, of
// its mean power, without a note. Belief: at its power limit each draws the same.
const drewLeast, drewMost = 0.85, 1.15

// powerOf is what a GPU drew, W.
func powerOf(_ Node, g wire.BurnGPU) (mean float64, measured bool) {
	return g.Power.Mean, g.Power.Count > 0
}

// drewOdd notes the GPUs of one node that drew less or more than those in their slots, of which it
// has the medians. It is no fault by itself: a good chip makes the same clock of less, one that
// leaks of more, and clock, GFLOPS and heat are judged.
func (n Node) drewOdd(median map[string]float64) (list []Odd) {
	for _, g := range n.GPUs {
		usual, known := median[g.Address]
		if !known || g.Power.Count == 0 || drewLeast*usual <= g.Power.Mean && g.Power.Mean <= drewMost*usual {
			continue
		}
		part := burnin.NameGPU(n.Names, g.Address)
		list = append(list, Odd{Node: n.Name, Note: true, Fault: judge.Fault{Part: part,
			Cause: fmt.Sprintf("%s: it drew %.0f W on average under load, %.0f%% of the median of its slot: that alone is no fault", part, g.Power.Mean, 100*g.Power.Mean/usual)}})
	}
	return list
}
