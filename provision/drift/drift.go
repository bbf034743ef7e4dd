// SPDX-License-Identifier: Apache-2.0

// Package drift knows how nodes were when they were accepted, looks how they are
// now, and tells the difference by node and kind. What could not be seen is
// unknown, and unknown is never drift; what was never recorded is no drift either.
// Looking changes nothing on a node.
package drift

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
)

// Format is the version of Snapshot and Set as they are stored. Fields are added,
// and none changes its meaning.
const Format = 1

// The kinds of drift, beside those of the agent's items.
const (
	BIOS     = "bios"     // settings of the node's firmware
	Cables   = "cables"   // whom the ports hear by LLDP
	Errors   = "errors"   // counters that grow faster than a good link's
	Settings = "settings" // what the site's steps configure, asked by their own stages
	Health   = "health"   // the health checks of GPU nodes, which passed when they were accepted
	Power    = "power"    // PDUs: breakers, phases, and outlets as they were when their nodes were tested
)

// Kinds are all kinds, in the order in which they are shown.
var Kinds = []string{wire.ItemHardware, wire.ItemFirmware, BIOS, wire.ItemSecureBoot, wire.ItemImage, wire.ItemKernel, wire.ItemDrivers, wire.ItemPackages,
	Settings, wire.ItemNetwork, wire.ItemLink, Errors, Cables, Health, Power}

// IsKnown reports whether a word is a kind.
func IsKnown(kind string) bool { return slices.Contains(Kinds, kind) }

// Snapshot is how a node was at one time. Values are text from outside.
type Snapshot struct {
	Format   int               `json:"format"`
	Node     string            `json:"node"`
	Serial   string            `json:"serial"` // of the chassis that all of it was read from; "": not known
	At       time.Time         `json:"at"`
	By       string            `json:"by,omitempty"`     // who took it as it was, instead of a test
	Reason   string            `json:"reason,omitempty"` // why
	Verified bool              `json:"verified"`         // the node was accepted by tests; else as it was found
	Plain    bool              `json:"plain,omitempty"`  // told by plain programs, which tell less than the agent
	BootID   string            `json:"boot_id,omitempty"`
	Uptime   float64           `json:"uptime,omitempty"` // seconds
	Items    []wire.Item       `json:"items,omitempty"`
	Counters []wire.Counter    `json:"counters,omitempty"`
	Sets     map[string]string `json:"sets,omitempty"` // long lists that many nodes share: digest of the Set, by kind
	Gaps     []wire.Gap        `json:"gaps,omitempty"` // kinds that were not seen
}

// gap notes that a kind is not known.
func (s *Snapshot) gap(why string, kinds ...string) {
	for _, k := range kinds {
		s.Gaps = append(s.Gaps, wire.Gap{Kind: k, Why: why})
	}
}

// unseen reports whether nothing is known of a kind, and why.
func (s *Snapshot) unseen(kind string) (why string, unseen bool) {
	i := slices.IndexFunc(s.Gaps, func(g wire.Gap) bool { return g.Kind == kind })
	if i < 0 {
		return "", false
	}
	return s.Gaps[i].Why, true
}

// Set is a long list of names with values: packages, BIOS settings.
type Set map[string]string

// Change is one thing that is not as it was accepted.
type Change struct {
	Node   string       `json:"node"`         // or the name of what Of says
	Of     subject.Kind `json:"of,omitempty"` // what it is where it is no node: switch, link, fabric or pdu
	Kind   string       `json:"kind"`
	Part   string       `json:"part,omitempty"`
	Name   string       `json:"name"`
	Port   string       `json:"port,omitempty"` // the site's name of the part, where it is a port: rail/2
	Was    string       `json:"was,omitempty"`
	Is     string       `json:"is,omitempty"`
	Lower  bool         `json:"lower,omitempty"` // of a link: it is slower or narrower than it was
	Since  time.Time    `json:"accepted,omitzero"`
	Action string       `json:"do"`
}

// Subject is what a change is about, as a sentence has it.
func (c Change) Subject() string { return subjectText(c.Of, c.Node) }

// subjectText is a name with the word for what has it.
func subjectText(of subject.Kind, name string) string {
	switch of {
	case "", subject.Node:
		return name
	case subject.PDU:
		return "PDU " + name
	case subject.Shelf:
		return "power shelf " + name
	case subject.Link:
		return "cable " + name
	}
	return string(of) + " " + name
}

// Note is something to know that is no drift.
type Note struct {
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
}

// Unknown is what could not be seen of a node.
type Unknown struct {
	Node string       `json:"node"`
	Of   subject.Kind `json:"of,omitempty"` // as Change.Of
	Kind string       `json:"kind"`
	Why  string       `json:"why"`
	// Unmanaged: the node is neither accepted nor adopted, and was not looked at.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// Subject is what could not be seen, as a sentence has it.
func (u Unknown) Subject() string { return subjectText(u.Of, u.Node) }
