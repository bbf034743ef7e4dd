package main

import (
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/stage"
)

// printResult prints a result as the last line of a stream of events.
func (a *app) printResult(res apply.Result) {
	a.printLine(struct {
		Type string `json:"type"`
		apply.Result
	}{"result", res})
}

// writeResult says how a run ended: each node in a line, with cause, evidence
// and next action for those that are not done. Nodes that share one stand together.
func writeResult(w io.Writer, res apply.Result) {
	var p page
	p.linef("")
	p.linef("Run %s: %s after %s.", res.Run, res.Outcome, res.Ended.Sub(res.Started).Round(time.Second))
	shown := map[string]bool{}
	for _, n := range res.Nodes {
		key := ending(n)
		switch {
		case key == "":
			p.linef("  %-12s %s", n.Name, outcome(n))
		case !shown[key]:
			shown[key] = true
			p.linef("  %-12s %s", sharing(res.Nodes, key), outcome(n))
			writeEnding(&p, n)
		}
	}
	writeOthers(&p, res)
	p.to(w)
}

// outcome is a word for how a node ended.
func outcome(n apply.NodeResult) string {
	if n.Accepted && n.Outcome == apply.NodeDone {
		return "accepted"
	}
	return string(n.Outcome)
}

// ending tells apart why nodes ended as they did; "" when there is nothing to say.
func ending(n apply.NodeResult) string {
	switch {
	case n.Finding != nil:
		return strings.Join([]string{outcome(n), n.Finding.Step, n.Finding.Cause}, "\x00")
	case n.Cause != nil:
		return strings.Join([]string{outcome(n), n.Cause.Text}, "\x00")
	}
	return ""
}

func writeEnding(p *page, n apply.NodeResult) {
	if n.Finding != nil {
		writeFinding(p, *n.Finding)
		return
	}
	p.linef("      because: %s", n.Cause.Text)
}

// sharing lists the nodes that ended in the same way.
func sharing(nodes []apply.NodeResult, key string) string {
	var names []string
	for _, n := range nodes {
		if ending(n) == key {
			names = append(names, n.Name)
		}
	}
	return shorten(names, mostNames)
}

// writeOthers shows the findings that are not the root cause of any node: about
// a group, an image, a hand-over.
func writeOthers(p *page, res apply.Result) {
	shown := map[string]bool{}
	for _, n := range res.Nodes {
		if n.Finding != nil {
			shown[n.Finding.Step+n.Finding.Cause] = true
		}
	}
	for _, f := range res.Findings {
		key := f.Step + f.Cause
		if shown[key] {
			continue
		}
		shown[key] = true
		p.linef("  %s", or(suspects(f), f.Step))
		writeFinding(p, f)
	}
}

// suspects lists the parts that a finding is about.
func suspects(f stage.Finding) string {
	var parts []string
	for _, s := range f.Suspects {
		parts = append(parts, strings.TrimSpace(s.Subject.Name+" "+s.Part))
	}
	return strings.Join(parts, ", ")
}

// writeFinding shows a finding, indented.
func writeFinding(p *page, f stage.Finding) {
	p.linef("      cause:   %s", f.Cause)
	if parts := suspects(f); parts != "" {
		p.linef("      part:    %s", parts)
	}
	if f.Step != "" {
		p.linef("      step:    %s", f.Step)
	}
	for _, e := range f.Evidence {
		p.linef("      seen:    %s", e)
	}
	p.linef("      do:      %s", f.Action)
}
