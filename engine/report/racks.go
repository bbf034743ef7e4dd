// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// Rack is what stands in a rack, by units.
type Rack struct {
	Name   string  `json:"name"`
	Units  int     `json:"units,omitempty"` // 0: it has none
	Places []Place `json:"places,omitempty"`
}

// Place is a node or another device in a rack.
type Place struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`             // node, switch or shelf
	Unit   int    `json:"unit,omitempty"`   // the lowest that it fills, from 1; 0: not known
	Height int    `json:"height,omitempty"` // in units
}

// The kinds of places.
const (
	NodePlace   = "node"
	SwitchPlace = "switch"
	ShelfPlace  = "shelf"
)

// warmthCheck is the check whose temperatures the map of the racks shows, °C.
const warmthCheck = "burn.temperature"

// warmth is how warm the warmest GPU of each node got under load, °C.
func warmth(in Input) map[string]float64 {
	got := map[string]float64{}
	for _, t := range in.Tests {
		for _, m := range t.Measurements {
			if m.Check == warmthCheck && len(m.Nodes) == 1 && m.Measured > got[m.Nodes[0]] {
				got[m.Nodes[0]] = m.Measured
			}
		}
	}
	return got
}

// symbols say in one letter where a node stands that is neither accepted nor bad.
var symbols = map[Status]string{Held: "H", Adopted: "A", Unfinished: "U", NoReference: "R"}

// letter is what a node is in the map of the racks in text.
func (s Status) letter() string {
	switch {
	case s == Accepted:
		return "."
	case s.failed():
		return "X"
	}
	return symbols[s]
}

// legend explains the symbols of the nodes that there are.
func legend(in Input) (list []string) {
	for _, s := range []Status{Held, Adopted, Unfinished, NoReference} {
		if slices.ContainsFunc(in.Nodes, func(n Node) bool { return n.Status == s }) {
			list = append(list, symbols[s]+" "+s.String())
		}
	}
	return list
}

// withoutRack are the nodes that stand in no rack of the report.
func withoutRack(in Input) (list []string) {
	placed := map[string]bool{}
	for _, r := range in.Racks {
		for _, p := range r.Places {
			placed[p.Name] = placed[p.Name] || p.Kind == NodePlace
		}
	}
	for _, n := range in.Nodes {
		if !placed[n.Name] {
			list = append(list, n.Name)
		}
	}
	return list
}
