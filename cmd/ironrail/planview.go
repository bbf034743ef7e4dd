package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/subject"
)

// mostNames is how many nodes a list names before it only counts.
const mostNames = 12

// writePlan shows a plan: steps grouped by what they work on, each with its why,
// what is erased in capitals, what is known only later, and how long it may take.
func writePlan(w io.Writer, p *plan.Plan, guess predict.Prediction) {
	var b page
	if p.Empty() {
		b.linef("Site %s: nothing to do.", p.Site)
	} else {
		b.linef("Plan %s for site %s: %s.", p.ID, p.Site, counts(p))
		writeSteps(&b, p)
		b.linef("")
		for _, l := range guess.Text() {
			b.linef("%s", l)
		}
	}
	writeErase(&b, p)
	for _, x := range p.Warnings {
		b.linef("Warning: %s", x)
	}
	for _, o := range p.Offers {
		b.linef("")
		b.linef("%s", o.Cause)
		b.linef("  Nothing is planned for it. To take it as it runs: %s", o.Command)
	}
	for _, r := range p.Refusals {
		b.linef("")
		b.linef("Refused: %s", r.Cause)
		b.linef("  %s", r.Action)
	}
	b.to(w)
}

// counts says how much a plan does.
func counts(p *plan.Plan) string {
	nodes, by := map[string]bool{}, map[plan.Action]int{}
	for _, s := range p.Steps {
		by[s.Action]++
		if s.Subject.Kind == subject.Node {
			nodes[s.Subject.Name] = true
		}
	}
	var parts []string
	for _, a := range []plan.Action{plan.Create, plan.Change, plan.Replace, plan.Delete, plan.Read} {
		if by[a] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[a], a))
		}
	}
	return fmt.Sprintf("%d %s (%s) on %d %s", len(p.Steps), plural(len(p.Steps), "step", "steps"), strings.Join(parts, ", "),
		len(nodes), plural(len(nodes), "node", "nodes"))
}

// writeSteps groups steps by subject, in the order of the plan.
func writeSteps(b *page, p *plan.Plan) {
	yields := map[fact.Key]plan.StepID{}
	var order []subject.ID
	by := map[subject.ID][]plan.Step{}
	for _, s := range p.Steps {
		if by[s.Subject] == nil {
			order = append(order, s.Subject)
		}
		by[s.Subject] = append(by[s.Subject], s)
		for _, k := range s.Yields {
			yields[k] = s.ID
		}
	}
	for _, id := range order {
		b.linef("")
		b.linef("%s", heading(id, by[id]))
		for _, s := range by[id] {
			writeStep(b, s, yields)
		}
	}
}

// heading names a group of steps.
func heading(id subject.ID, steps []plan.Step) string {
	if g := steps[0].Group; g != nil {
		var names []string
		for _, m := range g.Members {
			names = append(names, m.Name)
		}
		return fmt.Sprintf("%s %s: %s", id.Kind, id.Name, shorten(names, mostNames))
	}
	if id.Kind == subject.Node {
		return id.Name
	}
	return id.String()
}

// writeStep shows a step. A single reason stands in its line where it fits.
func writeStep(b *page, s plan.Step, yields map[fact.Key]plan.StepID) {
	const indent, fits = "                           ", 72
	if len(s.Why) == 1 && len(s.Title)+len(s.Why[0]) < fits {
		b.linef("  %-3s %-20s %s (%s)", s.Action, short(s.ID), s.Title, s.Why[0])
	} else {
		b.linef("  %-3s %-20s %s", s.Action, short(s.ID), s.Title)
		for _, why := range s.Why {
			b.linef(indent+"because: %s", why)
		}
	}
	if s.Erases != "" {
		b.linef(indent+"ERASES %s", s.Erases)
	}
	for _, k := range s.Reads {
		if by, later := yields[k]; later && k.Subject == s.Subject {
			b.linef(indent+"%s: (known after %s)", k.Name, short(by))
		}
	}
}

// short is a step's id without its subject.
func short(id plan.StepID) string {
	return string(id[strings.LastIndexByte(string(id), '/')+1:]) // a PDU's own name has a slash
}

// writeErase says what is destroyed, against the site's budget.
func writeErase(b *page, p *plan.Plan) {
	n := len(p.Erase.Nodes)
	if n == 0 {
		return
	}
	b.linef("")
	b.linef("%d %s ERASED: %s (max_erase of the site is %d)", n, plural(n, "NODE IS", "NODES ARE"), shorten(p.Erase.Nodes, mostNames), p.Erase.Budget)
}
