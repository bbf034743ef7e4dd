// SPDX-License-Identifier: Apache-2.0

// Package power computes what the things of a site draw, and from where: by
// outlet, phase, PDU, building feed and rack, with all feeds and after the loss
// of each, and in which order they may be switched on. It is pure: no I/O, no
// clock.
//
// What it assumes: supplies of one chassis share its load equally, those of the
// power shelves of a rack by what each may carry; watts are volts times amperes
// (80 PLUS Titanium asks for a power factor of 0.95 from a fifth of the load on;
// derating covers the rest); shelves lose nothing; heat is what is drawn.
package power

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Load is what is drawn, or drawn from.
type Load struct {
	Typical unit.Watts `json:"typical_watts"`
	Max     unit.Watts `json:"max_watts"`
}

func (l Load) plus(o Load) Load { return Load{l.Typical + o.Typical, l.Max + o.Max} }

func (l Load) times(f float64) Load {
	return Load{l.Typical * unit.Watts(f), l.Max * unit.Watts(f)}
}

// Plan is the power of a site. Lists are sorted by name. It is never changed
// after New and may be read by many goroutines.
type Plan struct {
	Feeds []Feed
	Racks []Rack
	Order []Batch // in which things may be switched on

	site *site // what the checks look at beside it
}

// Feed is one feed of the building.
type Feed struct {
	Name  string
	Load  Load       // with all feeds
	Limit unit.Watts // derated; 0: not given
	// Worst is the most that the feed carries after the loss of one other feed,
	// and Lost that feed; zero with one feed. Lost is empty where no loss adds
	// to the load.
	Worst Load
	Lost  string
}

// Rack is what one rack draws.
type Rack struct {
	Rack          *inventory.Rack
	Load          Load
	Air           unit.Watts // heat into air, at the maximum
	Liquid        unit.Watts // heat into liquid, at the maximum
	Weight        unit.Mass  // of what stands in it, where it was given
	Unknown       int        // things in it whose power was not given
	UnknownWeight int        // things in it whose weight was not given
	PDUs          []PDU
	Shelves       []Shelf
}

// PDU is one PDU, with all feeds and after the worst loss.
type PDU struct {
	PDU    *inventory.PDU
	Load   Load
	Limit  unit.Watts // derated, of all phases
	Phases []Phase    // one or three; the sum of their loads is Load
	Worst  Load       // after the loss of the feed Lost; zero with one feed
	Lost   string     // empty where no loss adds to the load
}

// Phase is one phase of a PDU. Where outlets are between two phases, each of the
// two has half of the load; the current is exact.
type Phase struct {
	Load      Load
	Limit     unit.Watts // derated
	Worst     Load       // after the loss that is the PDU's worst
	Amps      unit.Amps  // of the line, at the maximum
	WorstAmps unit.Amps  // of the line, at the maximum, after that loss
	LimitAmps unit.Amps  // derated
}

// Shelf is one power shelf of a tray rack; the shelves of a rack share what
// stands in it and has no feeds.
type Shelf struct {
	Shelf     *inventory.Shelf
	Load      Load
	Limit     unit.Watts // with the supplies that its redundancy leaves
	Installed unit.Watts // of all its supplies
}

// Batch is a set of things that may be switched on at one time: their inrush
// stays within what every phase of every PDU carries beside what runs already.
// One that is more than that by itself has no other of its phases in its batch.
type Batch struct {
	Names []string   // nodes and switches
	Watts unit.Watts // their inrush
}

// New computes the power of a site. What does not say its power draws nothing,
// and is counted in Rack.Unknown.
func New(inv *inventory.Inventory) *Plan {
	p := newPlan(inv)
	p.Order = p.site.order()
	return p
}

// newPlan is New without the order, which no check needs.
func newPlan(inv *inventory.Inventory) *Plan {
	s := surveyRacks(inv)
	s.loseFeeds()
	p := &Plan{site: s, Racks: make([]Rack, len(inv.Racks)), Feeds: s.feedResults()}
	pdus, phases := make([]PDU, 0, len(s.pdus)), make([]Phase, 0, 3*len(s.pdus))
	for i, r := range inv.Racks {
		out := &p.Racks[i]
		*out = s.rackResult(i, r)
		first := len(pdus)
		for j := range s.racks[i].pdus {
			at := len(phases)
			pdu := s.pduResult(&s.pdus[s.racks[i].firstPDU+j], &phases)
			pdu.Phases = phases[at:len(phases):len(phases)]
			pdus = append(pdus, pdu)
		}
		out.PDUs = pdus[first:len(pdus):len(pdus)]
	}
	return p
}
