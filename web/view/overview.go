// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/status"
)

// Overview is where the whole site stands.
type Overview struct {
	Site      string      `json:"site"`
	Rehearsal bool        `json:"rehearsal,omitempty"` // its nodes were simulated
	Trouble   string      `json:"trouble,omitempty"`   // why the site's files, or its state, cannot be read now
	Review    *Reviewed   `json:"review,omitempty"`    // nil: no plan is reviewed
	Run       *Run        `json:"run,omitempty"`       // nil: there was none
	Nodes     int         `json:"nodes"`
	Up        int         `json:"up"`
	Counts    []Count     `json:"counts"` // by state, the most urgent first; those with nodes
	Groups    []why.Group `json:"groups"` // nodes that are not up, by what they have in common; at most MostGroups
	More      int         `json:"more,omitempty"`
	Folded    bool        `json:"folded"` // racks have counts alone: there are too many nodes
	Rows      []Row       `json:"rows"`   // in the order of a walk
}

// Reviewed names the plan that waits for its approval, or whose run begins.
type Reviewed struct {
	Plan     string `json:"plan"`
	Digest   string `json:"digest"`
	Approved bool   `json:"approved"`
}

// Row is a row of racks.
type Row struct {
	Name  string `json:"name"` // may be empty
	Racks []Rack `json:"racks"`
}

// Rack is a rack with what stands in it.
type Rack struct {
	Name   string  `json:"name"`
	Row    string  `json:"row,omitempty"`
	Units  int     `json:"units"`
	Nodes  int     `json:"nodes"`
	Counts []Count `json:"counts"`
	Items  []Item  `json:"items,omitempty"` // by unit, from below; none where it is folded
}

// Item is what stands in a rack.
type Item struct {
	Kind   string     `json:"kind"` // node, switch or shelf
	Name   string     `json:"name"`
	Unit   int        `json:"unit"` // the lowest; 0: not known
	Height int        `json:"height"`
	State  why.Status `json:"state,omitempty"` // of a node
	Bad    bool       `json:"bad,omitempty"`   // of a switch: a finding suspects it
	Text   string     `json:"text,omitempty"`
	Done   int        `json:"done,omitempty"` // steps of a node that are settled, of an active run
	Steps  int        `json:"steps,omitempty"`
}

// Overview is the first page.
func (k *Keeper) Overview(ctx context.Context) (Overview, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Site: s.Inv.Site.Name, Rehearsal: s.Rehearsal, Trouble: s.Trouble, Run: s.run(), Nodes: len(s.nodes), Folded: len(s.nodes) > MostUnfolded}
	if r := s.review; r != nil && (s.Site.Run == nil || s.Site.Run.Plan != r.Plan.ID) {
		o.Review = &Reviewed{r.Plan.ID, r.Plan.Sum, r.Approved}
	}
	o.Counts, o.Up = countStates(s.nodes)
	o.Groups = why.GroupNodes(s.nodes, status.ListTraits(s.Inv))
	o.More = max(0, len(o.Groups)-MostGroups)
	o.Groups = append([]why.Group{}, o.Groups[:len(o.Groups)-o.More]...)
	o.Rows = s.rows(o.Folded, func(*inventory.Rack) bool { return true })
	return o, nil
}

// RowOf is one row with all that stands in its racks.
func (k *Keeper) RowOf(ctx context.Context, name string) (Row, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Row{}, err
	}
	rows := s.rows(false, func(r *inventory.Rack) bool { return r.Row == name })
	if len(rows) == 0 {
		return Row{}, errkind.New(errkind.NotFound, "%q is not a row of this site", name)
	}
	return rows[0], nil
}

// RackOf is one rack with all that stands in it.
func (k *Keeper) RackOf(ctx context.Context, name string) (Rack, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Rack{}, err
	}
	rows := s.rows(false, func(r *inventory.Rack) bool { return r.Name == name })
	if len(rows) == 0 {
		return Rack{}, errkind.New(errkind.NotFound, "%q is not a rack of this site", name)
	}
	return rows[0].Racks[0], nil
}

// run is the active run, or the last one; nil when there was none.
func (s *Snapshot) run() *Run {
	if r := s.Site.Run; r != nil {
		out := &Run{ID: r.Run, Active: true, Draining: r.Draining, Started: r.Started}
		for _, a := range r.Approvals {
			out.Approvals = append(out.Approvals, a.String())
		}
		for _, n := range r.Nodes {
			out.Done, out.Steps = out.Done+n.Done, out.Steps+n.Total
		}
		return out
	}
	l := s.Site.Last
	if l == nil {
		return nil
	}
	out := &Run{ID: l.ID, Outcome: l.Outcome, Started: l.Started, Ended: l.Ended}
	for _, a := range l.Approvals {
		out.Approvals = append(out.Approvals, a.String())
	}
	return out
}

// countStates counts nodes by state, and those that are up.
func countStates(nodes []why.NodeSummary) (counts []Count, up int) {
	by := map[why.Status]int{}
	for _, n := range nodes {
		by[n.Status]++
		if n.Up {
			up++
		}
	}
	counts = []Count{}
	for _, x := range states {
		if by[x.status] > 0 {
			counts = append(counts, Count{x.status, by[x.status]})
		}
	}
	return counts, up
}

// rows are the rows of the chosen racks.
func (s *Snapshot) rows(folded bool, chosen func(*inventory.Rack) bool) []Row {
	racks := slices.DeleteFunc(slices.Clone(s.Inv.Racks), func(r *inventory.Rack) bool { return !chosen(r) })
	slices.SortFunc(racks, (*inventory.Rack).CompareWalk)
	progress := map[string]apply.NodeStatus{}
	if s.Site.Run != nil && !folded {
		for _, n := range s.Site.Run.Nodes {
			progress[n.Name] = n
		}
	}
	out := []Row{}
	for _, r := range racks {
		if len(out) == 0 || out[len(out)-1].Name != r.Row {
			out = append(out, Row{Name: r.Row})
		}
		row := &out[len(out)-1]
		row.Racks = append(row.Racks, s.rack(r, folded, progress))
	}
	return out
}

func (s *Snapshot) rack(r *inventory.Rack, folded bool, progress map[string]apply.NodeStatus) Rack {
	out := Rack{Name: r.Name, Row: r.Row, Units: r.Units, Nodes: len(r.Nodes)}
	var of []why.NodeSummary
	for _, n := range r.Nodes {
		sum := s.nodes[s.byName[n.Name]]
		of = append(of, sum)
		if folded {
			continue
		}
		out.Items = append(out.Items, Item{Kind: "node", Name: n.Name, Unit: n.Unit, Height: max(1, n.Height()), State: sum.Status, Text: textOf(sum),
			Done: progress[n.Name].Done, Steps: progress[n.Name].Total})
	}
	out.Counts, _ = countStates(of)
	if folded {
		return out
	}
	for _, sw := range r.Switches {
		out.Items = append(out.Items, Item{Kind: "switch", Name: sw.Name, Unit: sw.Unit, Height: max(1, sw.Height), Text: strings.TrimSpace(sw.Model), Bad: s.suspects[sw.Name]})
	}
	for _, sh := range r.Shelves {
		out.Items = append(out.Items, Item{Kind: "shelf", Name: sh.Name, Unit: sh.Unit, Height: max(1, sh.Height), Text: "power shelf"})
	}
	slices.SortStableFunc(out.Items, func(a, b Item) int { return a.Unit - b.Unit })
	return out
}

// suspectsOf are the names of all that the findings suspect that take nodes out or are about
// the site.
func suspectsOf(s why.Site) map[string]bool {
	out := map[string]bool{}
	add := func(f stage.Finding) {
		for _, x := range f.Suspects {
			out[x.Subject.Name] = true
		}
	}
	for _, f := range s.Findings {
		add(f)
	}
	for _, n := range s.Nodes {
		if q := n.Quarantine; q != nil {
			add(q.Finding)
		}
	}
	return out
}
