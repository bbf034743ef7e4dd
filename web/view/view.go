// SPDX-License-Identifier: Apache-2.0

// Package view is what the web page shows, as data: the templates of the page and its JSON
// are made from the same values. It keeps the last reading of a site, so that many
// who look cost one reading, and it changes nothing.
package view

import (
	"time"

	"github.com/ironrail/ironrail/engine/why"
)

// The limits of lists: what is longer has pages, or says how much is left out.
const (
	NodesPerPage  = 100
	EventsPerPage = 200
	CablesPerPage = 200
	StepsPerPage  = 200
	MostHits      = 50  // of a search
	MostGroups    = 20  // of the overview
	MostLines     = 300 // of what happened to a node, the newest
	MostFigures   = 400 // measurements of a node
	MostUnfolded  = 600 // nodes of which every rack is drawn on the overview
)

// Tone is how a state is coloured: the one meaning of each colour.
type Tone string

// The tones.
const (
	Good   Tone = "good"
	Bad    Tone = "bad"
	Warn   Tone = "warn"   // somebody may have to look
	Active Tone = "active" // a step runs
	Idle   Tone = "idle"   // it waits, or nothing was done yet
)

// states are the statuses with their tones and marks, the most urgent first.
var states = []struct {
	status why.Status
	tone   Tone
	mark   string // so that no colour is the only sign
}{
	{why.Quarantined, Bad, "✕"},
	{why.Late, Warn, "!"},
	{why.Cut, Warn, "~"},
	{why.Skipped, Warn, "»"},
	{why.Held, Warn, "‖"},
	{why.Working, Active, "▸"},
	{why.Waiting, Idle, "…"},
	{why.Unfinished, Idle, "–"},
	{why.Untouched, Idle, "○"},
	{why.Adopted, Good, "◇"},
	{why.Accepted, Good, "✓"},
}

// ToneOf is the tone of a status; Idle for one that is not known.
func ToneOf(s why.Status) Tone {
	for _, x := range states {
		if x.status == s {
			return x.tone
		}
	}
	return Idle
}

// MarkOf is the mark of a status.
func MarkOf(s why.Status) string {
	for _, x := range states {
		if x.status == s {
			return x.mark
		}
	}
	return "·"
}

// Count is how many nodes stand in one way.
type Count struct {
	State why.Status `json:"state"`
	Nodes int        `json:"nodes"`
}

// Page is where a list is that has pages.
type Page struct {
	Number int `json:"page"`  // from 1
	Pages  int `json:"pages"` // at least 1
	All    int `json:"all"`   // entries of all pages
}

// pageOf cuts the page of a list; a number past the end is the last page.
func pageOf[T any](list []T, number, size int) ([]T, Page) {
	p := Page{Pages: max(1, (len(list)+size-1)/size), All: len(list)}
	p.Number = min(max(number, 1), p.Pages)
	from := (p.Number - 1) * size
	return list[from:min(from+size, len(list))], p
}

// Run is the active run, or the one that was begun last.
type Run struct {
	ID        string    `json:"id"`
	Active    bool      `json:"active"`
	Draining  bool      `json:"draining,omitempty"`
	Outcome   string    `json:"outcome,omitempty"` // of one that has ended; empty: it died
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	Approvals []string  `json:"approvals,omitempty"` // who approved it, and how
	Done      int       `json:"done,omitempty"`      // steps of nodes that are settled; of an active run
	Steps     int       `json:"steps,omitempty"`     // all of these
}
