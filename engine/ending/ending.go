// SPDX-License-Identifier: Apache-2.0

// Package ending sums up how a run ended: how many nodes are accepted, by what causes others are not,
// and the work that follows, in the order of a walk past the racks.
package ending

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/subject"
)

// Place is where a subject stands.
type Place struct {
	Rack  string // its name
	Order int    // of the rack on a walk past all racks
	Unit  int    // lowest rack unit; 0: the rack has none, or it stands beside them
}

// Places finds where a subject stands; false where that is not known, or nowhere.
type Places func(subject.ID) (Place, bool)

// Ending is how a run ended.
type Ending struct {
	Nodes    int                       // of the run
	Accepted int                       // of them
	Others   map[apply.NodeOutcome]int // the rest, by outcome
	Causes   []*Cause                  // what was found, in the order of the run
	Waits    []Wait                    // nodes without a finding of their own that are not done
}

// Cause is one thing that was found, of one subject or of several alike.
type Cause struct {
	ID       string   // see fold.Finding.ID; short, and the same in every run
	Nodes    []string // that are out of service by it
	Suspects []string // subjects with the part that is suspected; of several alike one after the other
	Names    []string // of the subjects alone, each once
	Part     string   // that is suspected, where it is the same of all subjects
	Alike    bool     // several findings, each of another subject: the evidence is of the first
	Text     string
	Others   []string // causes of later subjects, where they differ in more than names and figures
	Evidence []string // of the first
	Action   string
	More     int    // of work: how many actions it stands for, each another; Action says so then
	Stops    []Stop // where the suspects stand, in the order of a walk, each place once

	work []*Cause // by action, where the findings have several
}

// Stop is a place with what is to be worked on there.
type Stop struct {
	Place
	Suspects []string
}

// Wait is nodes that one cause keeps from being done.
type Wait struct {
	Outcome apply.NodeOutcome
	Nodes   []string
	Text    string   // may be empty; of several nodes, where it names each, with NODE for the name
	Others  []string // texts of later nodes, where they differ in more than names and figures
}

// found is a finding with the nodes that it takes out of service.
type found struct {
	stage.Finding
	nodes []string
}

// Of sums up a result. A finding that several tests made of the same parts is one.
func Of(res apply.Result, places Places) Ending {
	e := Ending{Nodes: len(res.Nodes), Others: map[apply.NodeOutcome]int{}}
	all := collection{at: map[string]int{}}
	var waiting []apply.NodeResult
	for _, n := range res.Nodes {
		switch {
		case n.Outcome == apply.NodeDone && n.Accepted:
			e.Accepted++
			continue
		case n.Finding != nil:
			all.add(*n.Finding, n.Name)
		case n.Outcome != apply.NodeDone:
			waiting = append(waiting, n)
		}
		e.Others[n.Outcome]++
	}
	for _, f := range res.Findings {
		all.add(f, "")
	}
	e.Causes, e.Waits = group(all.list, places), wait(waiting)
	return e
}

// collection is findings, each once.
type collection struct {
	list []*found
	at   map[string]int // their places in the list, by what makes two findings one
}

// add adds a finding that takes a node out of service, or none.
func (c *collection) add(f stage.Finding, node string) {
	parts := make([]string, 0, 2*len(f.Suspects))
	for _, s := range f.Suspects {
		parts = append(parts, s.Subject.String(), s.Part)
	}
	of := strings.Join(parts, "\x00")
	keys := []string{"same\x00" + strings.Join([]string{f.Step, f.Cause, of}, "\x00")}
	if f.OfSameParts(f) {
		keys = append(keys, "parts\x00"+of)
	}
	at := len(c.list)
	for _, k := range keys {
		if i, known := c.at[k]; known {
			at = min(at, i)
		}
	}
	if at == len(c.list) {
		c.list = append(c.list, &found{Finding: f})
		for _, k := range keys {
			c.at[k] = at
		}
	}
	if node != "" {
		c.list[at].nodes = append(c.list[at].nodes, node)
	}
}

// wait groups the nodes that wait by outcome and cause; causes that are alike are one.
func wait(nodes []apply.NodeResult) (waits []Wait) {
	about := make([]fold.Finding, len(nodes))
	for i, n := range nodes {
		about[i] = fold.Finding{Kind: string(subject.Node), Name: n.Name, Apart: string(n.Outcome)}
		if n.Cause != nil {
			about[i].Cause = n.Cause.Text
		}
	}
	for _, g := range fold.Findings(about) {
		waits = append(waits, Wait{Outcome: nodes[g.Members[0]].Outcome, Nodes: g.Names, Text: g.Cause, Others: g.Others})
	}
	return waits
}

// mostWork is how many actions of one cause are work of their own.
const mostWork = 12

// group puts findings together that are alike.
func group(all []*found, places Places) (causes []*Cause) {
	about := make([]fold.Finding, len(all))
	for i, f := range all {
		about[i] = Fold(f.Finding)
	}
	for _, g := range fold.Findings(about) {
		id := about[g.Members[0]].ID()
		c := &Cause{ID: id, Text: g.Cause, Others: g.Others, Action: g.Action, Alike: len(g.Names) > 1}
		c.collect(all, about, g.Members, places)
		for i, a := range g.Actions {
			if len(g.Actions) == 1 {
				break // the work is the cause
			}
			w := &Cause{ID: id, Text: g.Cause, Action: a.Text, Alike: len(a.Members) > 1}
			members := a.Members
			if more := g.Actions[i:]; i == mostWork-1 && len(more) > 1 {
				w.More = len(more)
				w.Action = fmt.Sprintf("%d more like these, each with an action of its own", w.More)
				for _, a := range more[1:] {
					members = append(members, a.Members...)
				}
			}
			w.collect(all, about, members, places)
			c.work = append(c.work, w)
			if w.More > 0 {
				break
			}
		}
		causes = append(causes, c)
	}
	return causes
}

// collect adds what is known of some findings: whom they take out, who is suspected, and where to go.
func (c *Cause) collect(all []*found, about []fold.Finding, members []int, places Places) {
	first := all[members[0]]
	c.Evidence = first.Evidence
	parts := map[string]bool{}
	u := suspecting{c, map[string]bool{}, map[string]bool{}, map[Place]int{}}
	for _, m := range members {
		for _, s := range all[m].Suspects {
			u.suspect(s, places)
			parts[s.Part] = true
		}
		c.Nodes = append(c.Nodes, all[m].nodes...)
	}
	if len(c.Suspects) == 0 { // findings without a suspect are their steps'
		for _, m := range members {
			if !slices.Contains(c.Names, about[m].Name) {
				c.Names = append(c.Names, about[m].Name)
			}
		}
		c.Suspects = c.Names
	} else if first.Suspects[0].Part != "" && len(parts) == 1 {
		c.Part = first.Suspects[0].Part
	}
	slices.SortStableFunc(c.Stops, func(a, b Stop) int { return a.compare(b.Place) })
}

// suspecting is a cause while its suspects are added, with what it has of them.
type suspecting struct {
	*Cause
	suspects, names map[string]bool
	stops           map[Place]int // their places among Stops
}

// suspect adds a suspect, once.
func (u *suspecting) suspect(s stage.Suspect, places Places) {
	text := s.String()
	if u.suspects[text] {
		return
	}
	u.suspects[text] = true
	u.Suspects = append(u.Suspects, text)
	if !u.names[s.Subject.Name] {
		u.names[s.Subject.Name] = true
		u.Names = append(u.Names, s.Subject.Name)
	}
	p, known := places(s.Subject)
	if !known {
		return
	}
	at, again := u.stops[p]
	if !again {
		at = len(u.Stops)
		u.stops[p] = at
		u.Stops = append(u.Stops, Stop{Place: p})
	}
	u.Stops[at].Suspects = append(u.Stops[at].Suspects, text)
}

// Fold is a finding as those that are alike are folded: by the parts that are suspected, cause and
// action, whatever step made it.
func Fold(f stage.Finding) fold.Finding {
	if len(f.Suspects) == 1 {
		s := f.Suspects[0]
		return fold.Finding{Kind: string(s.Subject.Kind), Name: s.Subject.Name, Apart: s.Part, Cause: f.Cause, Action: f.Action}
	}
	return fold.Finding{Kind: "finding", Name: cmp.Or(strings.Join(f.Parts(), ", "), f.Step), Cause: f.Cause, Action: f.Action}
}

func (p Place) compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Order, o.Order), cmp.Compare(p.Unit, o.Unit))
}

// Work lists what somebody has to do something about, in the order of a walk past the racks: what stands
// in no rack comes last. It is the causes; one of several subjects whose actions differ, such as plugs to
// exchange, is one for each action, up to twelve.
func (e Ending) Work() (work []*Cause) {
	for _, c := range e.Causes {
		switch {
		case len(c.work) > 0:
			work = append(work, c.work...)
		case c.Action != "":
			work = append(work, c)
		}
	}
	slices.SortStableFunc(work, compareStops)
	return work
}

// compareStops compares causes by where a walk comes to them first.
func compareStops(a, b *Cause) int {
	first := func(c *Cause) Place {
		if len(c.Stops) == 0 {
			return Place{Order: math.MaxInt}
		}
		return c.Stops[0].Place
	}
	return first(a).compare(first(b))
}

// Again lists the nodes that another run works on again: those that are out of service, in the order of
// the causes.
func (e Ending) Again() (nodes []string) {
	seen := map[string]bool{}
	for _, c := range e.Causes {
		for _, n := range c.Nodes {
			if !seen[n] {
				seen[n] = true
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}
