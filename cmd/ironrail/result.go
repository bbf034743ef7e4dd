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
// and next action for those that are not done.
func writeResult(w io.Writer, res apply.Result) {
	var p page
	p.linef("")
	p.linef("Run %s: %s after %s.", res.Run, res.Outcome, res.Ended.Sub(res.Started).Round(time.Second))
	for _, n := range res.Nodes {
		word := string(n.Outcome)
		if n.Accepted && n.Outcome == apply.NodeDone {
			word = "accepted"
		}
		p.linef("  %-12s %s", n.Name, word)
		switch {
		case n.Finding != nil:
			writeFinding(&p, *n.Finding)
		case n.Cause != nil:
			p.linef("      because: %s", n.Cause.Text)
		}
	}
	writeOthers(&p, res)
	p.to(w)
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
