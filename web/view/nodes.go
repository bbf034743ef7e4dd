// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
)

// NodeFilter chooses nodes of the list. Empty fields choose all.
type NodeFilter struct {
	State why.Status
	Rack  string
	Role  string
	Text  string // in the name or in what it does
	Page  int
}

// Nodes is a page of the list of nodes.
type Nodes struct {
	Page
	Counts []Count     `json:"counts"` // by state, of all that the filter chooses but for its state
	Nodes  []NodeInRow `json:"nodes"`
}

// NodeInRow is a node of the list.
type NodeInRow struct {
	Name    string     `json:"name"`
	State   why.Status `json:"state"`
	Text    string     `json:"text"`
	Since   time.Time  `json:"since,omitzero"`
	Finding string     `json:"finding,omitempty"` // the name of what it is quarantined by
	Rack    string     `json:"rack,omitempty"`
	Unit    int        `json:"unit,omitempty"`
	Role    string     `json:"role,omitempty"`
}

// Nodes lists the nodes that a filter chooses, in the order of the site.
func (k *Keeper) Nodes(ctx context.Context, f NodeFilter) (Nodes, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Nodes{}, err
	}
	var chosen []NodeInRow
	var counted []why.NodeSummary
	text := strings.ToLower(f.Text)
	for i, n := range s.Inv.Nodes {
		sum := s.nodes[i]
		row := NodeInRow{Name: n.Name, State: sum.Status, Text: textOf(sum), Since: sum.Since, Finding: sum.Finding, Unit: n.Unit}
		if n.Rack != nil {
			row.Rack = n.Rack.Name
		}
		if n.Role != nil {
			row.Role = n.Role.Name
		}
		if f.Rack != "" && f.Rack != row.Rack || f.Role != "" && f.Role != row.Role || !strings.Contains(strings.ToLower(row.Name+" "+row.Text), text) {
			continue
		}
		counted = append(counted, sum)
		if f.State == "" || f.State == sum.Status {
			chosen = append(chosen, row)
		}
	}
	out := Nodes{}
	out.Counts, _ = countStates(counted)
	out.Nodes, out.Page = pageOf(chosen, f.Page, NodesPerPage)
	out.Nodes = append([]NodeInRow{}, out.Nodes...)
	return out, nil
}

// Node is one node's page.
type Node struct {
	Name     string              `json:"name"`
	State    why.Status          `json:"state"`
	Since    time.Time           `json:"since,omitzero"`
	Text     string              `json:"text"`
	Answer   why.Answer          `json:"answer"`
	Held     bool                `json:"held"`
	Place    *control.Place      `json:"place,omitempty"`
	Row      string              `json:"row,omitempty"`
	Notes    []string            `json:"notes,omitempty"`
	Timeline Timeline            `json:"timeline"`
	Skipped  []Skip              `json:"skipped,omitempty"` // steps that were not started
	Lines    []why.Line          `json:"lines"`             // what happened, oldest first; at most MostLines
	Earlier  int                 `json:"earlier,omitempty"` // lines before these
	Findings []Finding           `json:"findings,omitempty"`
	Console  *control.Console    `json:"console,omitempty"`
	Figures  []Figure            `json:"measurements"` // at most MostFigures
	Untested string              `json:"untested,omitempty"`
	Refused  []why.UnknownClient `json:"refused,omitempty"` // clients that no node owns
	Near     []Finding           `json:"near,omitempty"`    // about what it hangs on
}

// Skip is steps that were not started for one reason.
type Skip struct {
	Cause string   `json:"cause"`
	Steps []string `json:"steps"`
}

// Finding is what was found of one thing.
type Finding struct {
	ID       string    `json:"id"` // as `ironrail why` knows it; of all that are alike
	Parts    []string  `json:"parts"`
	Cause    string    `json:"cause"`
	Seen     []string  `json:"seen,omitempty"`     // sentences
	Evidence []string  `json:"evidence,omitempty"` // references to raw outputs
	Action   string    `json:"action,omitempty"`
	Step     string    `json:"step,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Node is the page of a node; the error is of kind not found for one that the site has not.
func (k *Keeper) Node(ctx context.Context, name string) (Node, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Node{}, err
	}
	at, ok := s.byName[name]
	if !ok {
		return Node{}, errkind.New(errkind.NotFound, "%q is not a node of this site", name)
	}
	y, running, err := k.storyOf(ctx, s, name)
	if err != nil {
		return Node{}, err
	}
	e := why.ExplainNode(y, running, s.At)
	out := Node{Name: name, State: e.Answer.Status, Since: e.Answer.Since, Text: textOf(s.nodes[at]), Answer: e.Answer, Held: y.Node.Hold != nil,
		Place: y.Place, Notes: y.Notes, Console: y.Console, Refused: e.Refused, Lines: e.Lines}
	if n, ok := s.Inv.Node(name); ok && n.Rack != nil {
		out.Row = n.Rack.Row
	}
	if out.Earlier = max(0, len(out.Lines)-MostLines); out.Earlier > 0 {
		out.Lines = out.Lines[out.Earlier:]
	}
	if q := y.Node.Quarantine; q != nil {
		for _, f := range append([]stage.Finding{q.Finding}, q.More...) {
			out.Findings = append(out.Findings, newFinding(f, q.At))
		}
	}
	for _, f := range y.Near {
		out.Near = append(out.Near, newFinding(f, time.Time{}))
	}
	out.Skipped = skipsOf(y.Skipped, name)
	out.Timeline = newTimeline(y, s.At)
	figures, err := k.figuresOf(ctx, s, name)
	if err != nil {
		out.Untested = "Measurements cannot be read now: " + err.Error()
	}
	out.Figures = append([]Figure{}, figures[:min(len(figures), MostFigures)]...)
	return out, nil
}

// skipsOf are steps that were not started, by cause, in order.
func skipsOf(records []state.Record, node string) (out []Skip) {
	at := map[string]int{}
	for _, r := range records {
		c := causeOf(r)
		i, known := at[c]
		if !known {
			i = len(out)
			at[c] = i
			out = append(out, Skip{Cause: c})
		}
		out[i].Steps = append(out[i].Steps, shortStep(r.Step, node))
	}
	return out
}

// shortStep is a step without its node.
func shortStep(id, node string) string { return strings.TrimPrefix(id, node+"/") }

// hasText reports whether the event log has something to say of an event.
func hasText(e event.Event) bool { return cmp.Or(e.Text, e.Step, e.Node) != "" }
