// SPDX-License-Identifier: Apache-2.0

// Package gaps lists what a site's files ask for and do not get from this version, or
// not yet: what a plan and a rehearsal refuse, what has no effect, and what is not on the
// controller. It is one list, and `check`, `plan` and `rehearse` show the same. A second
// list is what a rehearsal simulates. Both are computed from the inventory and from what
// the caller gives; nothing is read.
package gaps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/install"
)

// Kind is what becomes of something that the files ask for.
type Kind string

// The kinds. They are stored in JSON.
const (
	Refused     Kind = "refused"      // a plan is refused for it, and a rehearsal
	NoEffect    Kind = "no effect"    // a plan goes on as if it was not there
	NotBuilt    Kind = "not built"    // an image that is not in the store yet; a plan is refused for it, and a rehearsal simulates it
	NotMirrored Kind = "not mirrored" // packages of a driver stack that are not on the controller yet
)

// order is that in which the kinds are counted.
var order = []Kind{Refused, NoEffect, NotBuilt, NotMirrored}

// Place is where something stands in the site's files. Line and Column count from 1.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns "site.hcl:12:3".
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Gap is one thing that the files ask for and do not get as asked. The names of its
// fields in JSON are stable.
type Gap struct {
	Kind    Kind   `json:"kind"`
	Block   string `json:"block"`             // kind of block: "hardware", "image", "driver"
	Name    string `json:"name"`              // of the block
	Setting string `json:"setting,omitempty"` // attribute or block within: "secure_boot", "dhcp.pool"; "": the block itself
	Place   Place  `json:"place"`
	Nodes   int    `json:"nodes"`   // that it concerns
	Summary string `json:"summary"` // what is wrong, in a few words
	Detail  string `json:"detail"`  // what is missing, and what to do

	at     hcl.Range
	phrase string // of a setting: with its block, as in "secure_boot of hardware h"
}

// List is all gaps of a site in the order of their places.
type List []Gap

// Line is the gap in one line, the same in every command.
func (g Gap) Line() string {
	text := g.Detail
	if g.Kind == Refused && g.phrase == "" {
		text = g.Summary + ": " + g.Detail
	}
	if g.Nodes > 0 {
		text += fmt.Sprintf(" (%s)", diag.Count(g.Nodes, "node", "nodes"))
	}
	return fmt.Sprintf("%s: %s: %s", g.Place, g.Kind, text)
}

// Range is the place as a range of the HCL library.
func (g Gap) Range() hcl.Range { return g.at }

// MarshalJSON writes a list, never null.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Gap(l))
}

// Of returns the gaps of one kind.
func (l List) Of(k Kind) List {
	return slices.DeleteFunc(slices.Clone(l), func(g Gap) bool { return g.Kind != k })
}

// Lines returns the lines of all gaps.
func (l List) Lines() []string {
	lines := make([]string, len(l))
	for i, g := range l {
		lines[i] = g.Line()
	}
	return lines
}

// Title is the heading of a list that is not empty: how many gaps there are of each kind.
func (l List) Title() string {
	var counts []string
	for _, k := range order {
		if n := len(l.Of(k)); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, k))
		}
	}
	return "What the files ask for and this version does not do as asked: " + strings.Join(counts, ", ") + "."
}

// Found is what the caller finds of a site.
type Found struct {
	Refused hcl.Diagnostics // by its stages; only errors count
	Stock   []Gap           // of what lies on the controller
}

// Collect lists the gaps of a site.
func Collect(inv *inventory.Inventory, f Found) List {
	list := OfSettings(inv)
	list = append(list, ofStages(inv, f.Refused)...)
	list = append(list, f.Stock...)
	slices.SortStableFunc(list, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Start.Byte, b.at.Start.Byte))
	})
	return list
}

// New returns a gap at a place in the files.
func New(k Kind, block, name, setting string, at hcl.Range, nodes int, summary, detail string) Gap {
	return Gap{Kind: k, Block: block, Name: name, Setting: setting, Place: placeOf(at), Nodes: nodes, Summary: summary, Detail: detail, at: at}
}

func placeOf(r hcl.Range) Place { return Place{r.Filename, r.Start.Line, r.Start.Column} }

// ofStages are the errors of stages: one gap for all of one place that say the same, and
// one for all nodes that lack the same.
func ofStages(inv *inventory.Inventory, diags hcl.Diagnostics) (list List) {
	type alike struct {
		kind    Kind
		summary string
		place   Place // zero for nodes
	}
	seen := map[alike]int{}
	var blocks owners
	for _, d := range diags {
		if d.Severity != hcl.DiagError || d.Subject == nil {
			continue
		}
		if blocks == nil {
			blocks = ownersOf(inv)
		}
		of, setting := blocks.find(*d.Subject)
		key := alike{Refused, d.Summary, placeOf(*d.Subject)}
		if d.Extra == (install.NotBuilt{}) {
			key.kind = NotBuilt
		}
		if of.block == "node" {
			key.place = Place{}
		}
		if i, ok := seen[key]; ok {
			if of.block == "node" {
				list[i].Nodes++
			}
			continue
		}
		seen[key] = len(list)
		list = append(list, New(key.kind, of.block, of.name, setting, *d.Subject, of.nodes(inv), d.Summary, d.Detail))
	}
	return list
}

// count is how many nodes use a thing.
func count(inv *inventory.Inventory, uses func(*inventory.Node) bool) (n int) {
	for _, node := range inv.Nodes {
		if uses(node) {
			n++
		}
	}
	return n
}
