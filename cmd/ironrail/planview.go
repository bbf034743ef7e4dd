package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/subject"
)

// writePlan shows a plan: steps grouped by what they work on, each with its why,
// what is erased in capitals, and what is known only later.
func writePlan(w io.Writer, p *plan.Plan) {
	b := &strings.Builder{}
	if p.Empty() {
		fmt.Fprintf(b, "Site %s: nothing to do.\n", p.Site)
	} else {
		fmt.Fprintf(b, "Plan %s for site %s: %s.\n", p.ID, p.Site, counts(p))
		writeSteps(b, p)
		fmt.Fprintf(b, "\nExpected time: %s, if nothing waits (estimate from a table; no history is used).\n", estimate(p).Round(time.Second))
	}
	writeErase(b, p)
	for _, x := range p.Warnings {
		fmt.Fprintf(b, "Warning: %s\n", x)
	}
	for _, o := range p.Offers {
		fmt.Fprintf(b, "\n%s\n  Nothing is planned for it. To take it as it runs: %s\n", o.Cause, o.Command)
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(b, "\nRefused: %s\n  %s\n", r.Cause, r.Action)
	}
	io.WriteString(w, b.String())
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
	return fmt.Sprintf("%d steps (%s) on %d nodes", len(p.Steps), strings.Join(parts, ", "), len(nodes))
}

// writeSteps groups steps by subject, nodes first as the plan orders them.
func writeSteps(b *strings.Builder, p *plan.Plan) {
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
		fmt.Fprintf(b, "\n%s\n", heading(id, by[id]))
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
		return fmt.Sprintf("%s %s: %s", id.Kind, id.Name, shorten(names, 12))
	}
	if id.Kind == subject.Node {
		return id.Name
	}
	return id.String()
}

// shorten lists names, and says how many more there are.
func shorten(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func writeStep(b *strings.Builder, s plan.Step, yields map[fact.Key]plan.StepID) {
	_, name, _ := strings.Cut(string(s.ID), "/")
	fmt.Fprintf(b, "  %-3s %-20s %s\n", s.Action, name, s.Title)
	for _, why := range s.Why {
		fmt.Fprintf(b, "      %-20s because: %s\n", "", event.Escape(why))
	}
	if s.Erases != "" {
		fmt.Fprintf(b, "      %-20s ERASES %s\n", "", s.Erases)
	}
	for _, k := range s.Reads {
		if by, later := yields[k]; later && k.Subject == s.Subject {
			_, short, _ := strings.Cut(string(by), "/")
			fmt.Fprintf(b, "      %-20s %s: (known after %s)\n", "", k.Name, short)
		}
	}
}

// writeErase says what is destroyed, against the site's budget.
func writeErase(b *strings.Builder, p *plan.Plan) {
	n := len(p.Erase.Nodes)
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d %s ERASED: %s (max_erase of the site is %d)\n", n, plural(n, "NODE IS", "NODES ARE"), shorten(p.Erase.Nodes, 12), p.Erase.Budget)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// estimate is the longest chain of expected times.
func estimate(p *plan.Plan) time.Duration {
	end := map[plan.StepID]time.Duration{}
	var longest time.Duration
	for _, s := range p.Steps { // needs come first in a plan
		var start time.Duration
		for _, n := range s.Needs {
			start = max(start, end[n.Step])
		}
		end[s.ID] = start + s.Deadline.Expected
		longest = max(longest, end[s.ID])
	}
	return longest
}
