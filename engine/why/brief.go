// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fold"
)

// NodeSummary is where one node stands, in a line.
type NodeSummary struct {
	Node   string `json:"node"`
	Up     bool   `json:"up"`
	Status Status `json:"standing"`
	// Text is the whole line: what it does or waits for, or why it is out, with the
	// times that matter.
	Text   string    `json:"text"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Late   bool      `json:"late,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Action string    `json:"action,omitempty"`
	// Finding is the name of what the node is quarantined by; see fold.Finding.ID.
	Finding string `json:"finding,omitempty"`

	symptom string // what nodes have in common that stand the same way
}

// Site is where all nodes stand.
type Site struct {
	Nodes   []state.Node // in the order of the site
	Run     *apply.Status
	Waits   map[string]apply.Waiting
	Paces   map[plan.StepID]plan.Budget
	Skipped map[string][]state.Record // of the last run, by node
	Last    *state.Run                // the run that was begun last; nil: there was none
	Notes   map[string][]string       // see control.Why.Notes
	// Findings are those of the last run about the site, and no node.
	Findings []stage.Finding
	Serves   []string // see control.Status.Serves
	Now      time.Time
}

// NewSite makes a Site of an owner's status.
func NewSite(s control.Status, now time.Time) Site {
	out := Site{Nodes: s.Nodes, Run: s.Run, Waits: s.Waits, Paces: s.Paces, Notes: s.Notes, Serves: s.Serves, Now: now}
	if s.Run != nil {
		out.Findings = s.Run.Findings
		return out
	}
	out.Last, out.Skipped, out.Findings = s.Last, s.Skipped, s.Findings
	return out
}

// SummariseNodes says where every node stands.
func SummariseNodes(s Site) []NodeSummary {
	active := map[string][]apply.StepStatus{}
	draining := false
	if s.Run != nil {
		draining = s.Run.Draining
		for _, x := range s.Run.Active {
			for _, n := range nodesOfStep(x) {
				active[n] = append(active[n], x)
			}
		}
	}
	in := nodesByName(s.Run)
	out := make([]NodeSummary, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		y := control.Why{Node: n, Active: active[n.Name], Paces: s.Paces, Draining: draining, Skipped: s.Skipped[n.Name], Last: s.Last}
		r, of := in[n.Name]
		if w, ok := s.Waits[n.Name]; ok {
			y.Waiting = &w
		} else if c := r.Cause; c != nil {
			y.Skipped = []state.Record{state.Record{Step: string(c.Step), Time: time.Time{}}.With(*c)}
		}
		out = append(out, summariseNode(y, s.Run != nil && of && r.Outcome == apply.NodeActive, s.Now))
	}
	return out
}

func nodesByName(r *apply.Status) map[string]apply.NodeStatus {
	out := map[string]apply.NodeStatus{}
	if r != nil {
		for _, n := range r.Nodes {
			out[n.Name] = n
		}
	}
	return out
}

// nodesOfStep are the nodes that a step is about.
func nodesOfStep(x apply.StepStatus) []string {
	if x.Node != "" {
		return []string{x.Node}
	}
	return x.Members
}

func summariseNode(y control.Why, running bool, now time.Time) NodeSummary {
	a := findAnswer(Explanation{Why: y}, running, now)
	b := NodeSummary{Node: y.Node.Name, Up: a.Up, Status: a.Status, Since: a.Since, Until: a.Until, Cause: a.Cause, Action: a.Action, Late: a.Status == Late}
	b.Text = strings.TrimPrefix(strings.TrimPrefix(a.State, "it is "), "it ")
	if q := y.Node.Quarantine; q != nil && a.Status == Quarantined {
		b.Text, b.Finding = "quarantined", ending.Fold(q.Finding).ID()
	}
	if when := formatSpan(a, now); when != "" {
		b.Text += ", " + when
	}
	if b.Late {
		b.Text += fmt.Sprintf(", LATE: P95 is %s", a.Pace.Slow)
	}
	if a.Cause != "" && a.Status != Cut {
		b.Text += ": " + a.Cause
	}
	key := a.Cause
	if key == "" {
		key = a.State
	}
	b.symptom = string(a.Status) + " " + fold.Symptom(key, y.Node.Name)
	return b
}

// NeedsAttention reports whether a node stands in a way that somebody may have to do
// something about.
func (b NodeSummary) NeedsAttention() bool {
	switch b.Status {
	case Quarantined, Late, Skipped:
		return true
	}
	return false
}

// Group is nodes that stand the same way.
type Group struct {
	Status Status    `json:"standing"`
	Nodes  []string  `json:"nodes"`
	First  time.Time `json:"first,omitzero"` // since when the first of them does
	Cause  string    `json:"cause,omitempty"`
	Text   string    `json:"text"`             // of the first
	Action string    `json:"action,omitempty"` // of the first
	Shared string    `json:"shared,omitempty"` // what they share and others do not
	// Finding is the name of what they are all quarantined by; empty: by several, or none.
	Finding string `json:"finding,omitempty"`
}

// GroupNodes puts nodes together that stand the same way, those with trouble first,
// the larger first. Nodes that are up are left out.
func GroupNodes(all []NodeSummary, traits Traits) []Group {
	var out []Group
	index := map[string]int{}
	for _, b := range all {
		if b.Up && b.Status != Held {
			continue
		}
		i, ok := index[b.symptom]
		if !ok {
			i = len(out)
			index[b.symptom] = i
			out = append(out, Group{Status: b.Status, Cause: b.Cause, Text: b.Text, Action: b.Action, Finding: b.Finding})
		}
		g := &out[i]
		g.Nodes = append(g.Nodes, b.Node)
		if g.Finding != b.Finding {
			g.Finding = ""
		}
		if g.First.IsZero() || !b.Since.IsZero() && b.Since.Before(g.First) {
			g.First = b.Since
		}
	}
	for i := range out {
		if order[out[i].Status] <= order[Skipped] { // of nodes without trouble it tells nothing
			out[i].Shared = traits.shared(out[i].Nodes)
		}
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		if x := order[a.Status] - order[b.Status]; x != 0 {
			return x
		}
		return len(b.Nodes) - len(a.Nodes)
	})
	return out
}

// order is how urgent statuses are, the most urgent first.
var order = map[Status]int{Late: 1, Quarantined: 2, Skipped: 3, Cut: 4, Held: 5, Working: 6, Waiting: 7, Unfinished: 8, Adopted: 9, Untouched: 10, Accepted: 11}

// FindSimilarNodes says who else stands as a node does; nil when nobody does, or when that
// is no trouble.
func FindSimilarNodes(node string, all []NodeSummary, traits Traits, now time.Time) *control.SimilarNodes {
	i := slices.IndexFunc(all, func(b NodeSummary) bool { return b.Node == node })
	if i < 0 || !all[i].NeedsAttention() {
		return nil
	}
	a := &control.SimilarNodes{First: all[i].Since}
	for _, b := range all {
		if b.symptom == all[i].symptom && b.Node != node {
			a.Nodes = append(a.Nodes, b.Node)
			if !b.Since.IsZero() && b.Since.Before(a.First) {
				a.First = b.Since
			}
		}
	}
	if len(a.Nodes) == 0 {
		return nil
	}
	verb := "have"
	if len(a.Nodes) == 1 {
		verb = "has"
	}
	a.Text = fmt.Sprintf("%s %s it too", joinSome(a.Nodes[:min(len(a.Nodes), mostNamed)], len(a.Nodes)), verb)
	if !a.First.IsZero() {
		a.Text += ", the first since " + formatMoment(a.First, now)
	}
	if s := traits.shared(append([]string{node}, a.Nodes...)); s != "" {
		a.Text += "; " + s
	}
	return a
}
