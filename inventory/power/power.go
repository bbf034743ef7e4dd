// Package power computes what the things of a site draw, and from where: by
// outlet, phase, PDU, building feed and rack, with all feeds and after the loss
// of each, and in which order they may be switched on. It is pure: no I/O, no
// clock.
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

// Plan is the power of a site. Lists are sorted by name. It is never changed
// after New and may be read by many goroutines.
type Plan struct {
	Feeds []Feed
	Racks []Rack
	Order []Batch // in which things may be switched on
}

// Feed is one feed of the building.
type Feed struct {
	Name  string
	Load  Load       // with all feeds
	Limit unit.Watts // derated; 0: not given
	// Worst is the most that the feed carries after the loss of one other feed,
	// and Lost that feed; zero with one feed.
	Worst Load
	Lost  string
}

// Rack is what one rack draws.
type Rack struct {
	Rack    *inventory.Rack
	Load    Load
	Air     unit.Watts // heat into air, at the maximum
	Liquid  unit.Watts // heat into liquid, at the maximum
	Weight  unit.Mass  // of what stands in it, where it was given
	Unknown int        // things in it whose power was not given
	PDUs    []PDU
	Shelves []Shelf
}

// PDU is one PDU, with all feeds and after the worst loss.
type PDU struct {
	PDU    *inventory.PDU
	Load   Load
	Limit  unit.Watts // derated, of all phases
	Phases []Phase    // one or three
	Worst  Load       // after the loss of the feed Lost
	Lost   string
}

// Phase is one phase of a PDU.
type Phase struct {
	Load  Load
	Limit unit.Watts // derated
	Worst Load       // after the loss that is the PDU's worst
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
type Batch struct {
	Names []string // nodes and switches
	Watts unit.Watts
}
