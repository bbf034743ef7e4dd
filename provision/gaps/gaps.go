// SPDX-License-Identifier: Apache-2.0

// Package gaps lists what a site's files ask for and do not get from this version, or
// not yet: what a plan refuses, what has no effect, what is not on the controller, and
// what a rehearsal replaces or leaves out. It is one list, and `check`, `plan` and
// `rehearse` show the same. It is computed from the inventory and from what the caller
// gives, and reads nothing.
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
	Refused     Kind = "refused"      // a plan is refused for it
	NoEffect    Kind = "no effect"    // a plan goes on as if it was not there
	NotBuilt    Kind = "not built"    // an image that is not in the store yet; a plan is refused for it
	NotMirrored Kind = "not mirrored" // packages of a driver stack that are not on the controller yet
	Standin     Kind = "stand-in"     // planned as asked; a rehearsal replaces it or leaves it out
)

// order is that in which the kinds are counted.
var order = []Kind{Refused, NoEffect, NotBuilt, NotMirrored, Standin}

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
	Nodes   int    `json:"nodes"`               // that it concerns
	Summary string `json:"summary"`             // what is wrong, in a few words
	Detail  string `json:"detail"`              // what is missing, and what to do
	Instead string `json:"rehearsal,omitempty"` // what a rehearsal does instead; "": the same

	at     hcl.Range
	decl   hcl.Range // of the block, where it is known
	phrase string    // how LeftOut names a setting
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
	if g.Instead != "" && g.Kind != Standin {
		text += " In a rehearsal: " + g.Instead + "."
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
	Refused   hcl.Diagnostics // by its stages; only errors count
	Rehearsal hcl.Diagnostics // by the stages of what is rehearsed of it
	Stock     []Gap           // of what lies on the controller
}

// Collect lists the gaps of a site.
func Collect(inv *inventory.Inventory, k Kinds, f Found) List {
	list := OfSettings(inv)
	list = append(list, ofStages(inv, f.Refused)...)
	list = append(list, f.Stock...)
	list = rehearsed(list, omissions(inv, k), f.Rehearsal)
	slices.SortStableFunc(list, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Start.Byte, b.at.Start.Byte))
	})
	return list
}

// rehearsed adds what a rehearsal does instead: to the gap of the same thing, else as a
// gap of its own. refused is what a rehearsal refuses as well.
func rehearsed(list List, left []omission, refused hcl.Diagnostics) List {
	asked := len(list)
	for _, o := range left {
		same := false
		for i := range list[:asked] {
			if g := &list[i]; g.refusesOf(o) {
				g.Instead, same = o.Why, true
			}
		}
		if !same {
			list = append(list, Gap{Kind: Standin, Block: o.Block, Name: o.Name, Place: placeOf(o.at), Nodes: o.Nodes,
				Summary: "Not so in a rehearsal", Detail: o.String() + ": in a rehearsal, " + o.Why + ".", Instead: o.Why, at: o.at})
		}
	}
	for i := range list[:asked] {
		g := &list[i]
		again := slices.ContainsFunc(refused, func(d *hcl.Diagnostic) bool {
			return d.Severity == hcl.DiagError && d.Summary == g.Summary && d.Subject != nil && *d.Subject == g.at
		})
		if g.Kind == Refused && g.Instead == "" && !again {
			g.Instead = "it is not refused: a stand-in takes its place"
		}
	}
	return list
}

// refusesOf reports whether a plan is refused for what a rehearsal leaves out.
func (g *Gap) refusesOf(o omission) bool {
	switch {
	case g.Kind != Refused:
		return false
	case o.Block == "setting":
		return g.phrase == o.Name
	}
	return g.phrase == "" && g.Block == o.Block && g.decl == o.at
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
		g := New(key.kind, of.block, of.name, setting, *d.Subject, of.nodes(inv), d.Summary, d.Detail)
		g.decl = of.decl
		list = append(list, g)
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
