// SPDX-License-Identifier: Apache-2.0

// Package parts keeps the history of hardware by serial number: where a part that
// was found bad has been, and what was found. A DIMM that failed in one node and
// comes back in another is called so.
//
// It is made from the journal, after a run and before the next: state objects of
// kind "fitted" say which parts a node had when it was inspected last (Fitted in
// JSON, by node), those of kind "part" the history of a part (History, by its
// kind and serial number). Only parts with a history have one: that were found
// bad, and where those went. Both can be thrown away: nothing but the history is
// lost. The formats only grow.
package parts

import (
	"net/url"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/wire"
)

// The kinds of parts that have a serial number of their own. A NIC is known by
// its MAC. What else is in a node is known by its chassis.
const (
	Chassis = "chassis"
	DIMM    = "dimm"
	Disk    = "disk"
	NIC     = "nic"
)

// The kinds of state objects.
const (
	partObject   = "part"
	fittedObject = "fitted"
	cursorObject = "parts" // one, "cursor": how far the journal was read
)

// Part is one part by its serial number.
type Part struct {
	Kind   string `json:"kind"`
	Serial string `json:"serial"`
	Model  string `json:"model,omitempty"`
}

// Fit is a part in its place.
type Fit struct {
	Part
	Slot string `json:"slot,omitempty"` // as the firmware or the kernel calls it
}

// Fitted is which parts a node had when it was inspected last.
type Fitted struct {
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Parts []Fit     `json:"parts"`
}

// History is what is known of a part.
type History struct {
	Part
	Seen     []Seen    `json:"seen,omitempty"`     // oldest first
	Findings []Finding `json:"findings,omitempty"` // oldest first
}

// Seen is a stay of a part in a node.
type Seen struct {
	Node string    `json:"node"`
	Slot string    `json:"slot,omitempty"`
	From time.Time `json:"from"`        // when it was seen there first, as far as this goes back
	To   time.Time `json:"to,omitzero"` // when it was seen to be gone
}

// Finding is what was found of a part.
type Finding struct {
	Node  string    `json:"node"`
	Slot  string    `json:"slot,omitempty"`
	Part  string    `json:"part,omitempty"` // as the finding names it
	Cause string    `json:"cause"`
	Step  string    `json:"step,omitempty"`
	At    time.Time `json:"at"`
}

// Bounds of a history; the newest are kept.
const (
	mostSeen     = 32
	mostFindings = 32
)

// Key names the object of a part. Serial numbers are text from outside.
func (p Part) Key() state.Key {
	return state.Key{Kind: partObject, Name: p.Kind + "/" + url.PathEscape(p.Serial)}
}

// Noun names a part in a sentence: "disk serial S4EV".
func (p Part) Noun() string {
	switch p.Kind {
	case NIC:
		return "NIC " + p.Serial
	case DIMM:
		return "DIMM serial " + p.Serial
	}
	return p.Kind + " serial " + p.Serial
}

// List returns the parts with serial numbers that an inspected node has. A serial
// number that two of a kind have is none.
func List(hw wire.Hardware) []Fit {
	var all []Fit
	count := map[Part]int{}
	add := func(kind, serial, model, slot string) {
		serial, model = strings.TrimSpace(serial), strings.TrimSpace(model)
		if isBlank(serial) {
			return
		}
		all = append(all, Fit{Part{kind, serial, model}, slot})
		count[Part{Kind: kind, Serial: serial}]++
	}
	add(Chassis, hw.Identity.Serial, hw.Identity.Vendor+" "+hw.Identity.Product, "")
	for _, m := range hw.Memory.Modules {
		add(DIMM, m.Serial, m.Maker+" "+m.Part, m.Slot)
	}
	for _, d := range hw.Disks {
		add(Disk, d.Serial, d.Model, d.Name)
	}
	for _, n := range hw.NICs {
		if !n.MAC.IsZero() {
			add(NIC, n.MAC.String(), "", n.PCI)
		}
	}
	kept := all[:0]
	for _, f := range all {
		if count[Part{Kind: f.Kind, Serial: f.Serial}] == 1 {
			kept = append(kept, f)
		}
	}
	return kept
}

// isBlank reports whether a text stands for no serial number, as firmware has it.
func isBlank(s string) bool {
	if len(s) < 4 || strings.Trim(s, "0") == "" || strings.Trim(strings.ToLower(s), "f") == "" {
		return true
	}
	switch strings.ToLower(s) {
	case "none", "unknown", "n/a", "not specified", "no dimm", "default string", "to be filled by o.e.m.", "system serial number", "0123456789", "empty":
		return true
	}
	return false
}
