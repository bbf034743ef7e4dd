// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"github.com/ironrail/ironrail/inventory/unit"
)

// Summary is a site in numbers, as `check --json` prints it.
type Summary struct {
	Racks    int                  `json:"racks"`
	Nodes    int                  `json:"nodes"`
	GPUs     int                  `json:"gpus"`
	Switches int                  `json:"switches"` // those of racks and those that topologies compute
	Cables   int                  `json:"cables"`   // those of the site and those that topologies compute; a splitter cable counts once
	Power    map[string]FeedPower `json:"power"`    // by feed
	Fabrics  []FabricCounts       `json:"fabrics"`  // in the order of the files; empty while there are errors
}

// FabricCounts is a fabric in numbers, from its switches and cables, given or
// computed. A splitter cable counts once.
type FabricCounts struct {
	Name             string  `json:"name"`
	Kind             string  `json:"kind"`
	Topology         string  `json:"topology,omitempty"` // as the fabric gives it
	Nodes            int     `json:"nodes"`              // that its cables end in
	Leaves           int     `json:"leaves"`
	Spines           int     `json:"spines"`
	Cores            int     `json:"cores"`
	NodeCables       int     `json:"node_cables"`
	SwitchCables     int     `json:"switch_cables"`    // between switches
	Oversubscription float64 `json:"oversubscription"` // the worst leaf's speed down by its speed up; 0: no leaf has uplinks
}

// FeedPower is what the things on one feed draw while all feeds are there.
type FeedPower struct {
	TypicalWatts float64 `json:"typical_watts"`
	MaxWatts     float64 `json:"max_watts"`
}

// Report is what `check --json` prints.
type Report struct {
	Diagnostics Diagnostics `json:"diagnostics"`
	Summary     Summary     `json:"summary"`
}

// Summary counts the inventory, without its fabrics: their topology does that.
// Supplies share the load of their node equally.
func (inv *Inventory) Summary() Summary {
	s := Summary{Racks: len(inv.Racks), Nodes: len(inv.Nodes), Switches: len(inv.Switches), Power: map[string]FeedPower{}, Fabrics: []FabricCounts{}}
	for _, n := range inv.Nodes {
		if n.Hardware != nil {
			s.GPUs += n.Hardware.GPUCount()
			s.feed(n.Feeds, n.Hardware.Power.Typical, n.Hardware.Power.Max)
		}
	}
	for _, r := range inv.Racks {
		for _, sw := range r.Switches {
			s.feed(sw.Feeds, sw.Power, sw.Power)
		}
	}
	for _, c := range inv.Cables {
		if c.Splitter == nil {
			s.Cables++
		}
	}
	return s
}

func (s *Summary) feed(feeds []Feed, typical, most unit.Watts) {
	n := float64(len(feeds))
	for _, f := range feeds {
		p := s.Power[f.PDU.Feed]
		s.Power[f.PDU.Feed] = FeedPower{TypicalWatts: p.TypicalWatts + float64(typical)/n, MaxWatts: p.MaxWatts + float64(most)/n}
	}
}
