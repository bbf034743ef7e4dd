// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/subject"
)

// printResult prints a result as the last line of a stream of events.
func (a *app) printResult(res apply.Result) {
	a.printLine(struct {
		Type string `json:"type"`
		apply.Result
	}{"result", res})
}

// writeResult says how a run ended: each node with cause, evidence and next action
// for those that are not done. Nodes that share them stand together.
func writeResult(w io.Writer, res apply.Result) {
	var p page
	p.linef("")
	p.linef("Run %s: %s after %s.", res.Run, res.Outcome, clock.Took(res.Started, res.Ended))
	endings := make([]fold.Finding, len(res.Nodes))
	for i, n := range res.Nodes {
		endings[i] = describeEnding(n)
	}
	for _, g := range fold.Findings(endings) {
		first := res.Nodes[g.Members[0]]
		if n := len(g.Names); n > 1 && (g.Cause != "" || n > mostNames) {
			p.linef("  %d nodes %s: %s", n, describeOutcome(first), fold.Names(g.Names))
		} else {
			for _, name := range g.Names {
				p.linef("  %-12s %s", name, describeOutcome(first))
			}
		}
		switch {
		case first.Finding != nil:
			list := make([]stage.Finding, len(g.Members))
			for i, m := range g.Members {
				list[i] = *res.Nodes[m].Finding
			}
			writeFindings(&p, g, list)
		case first.Cause != nil:
			p.linef("      because: %s", g.Cause)
			writeOtherCauses(&p, "               ", g.Others)
		}
	}
	writeOthers(&p, res)
	if plan.HasUnmanagedTargets(res.Unmanaged) {
		writeUnmanaged(&p, res.Unmanaged)
	}
	p.to(w)
}

// describeOutcome returns a word for how a node ended.
func describeOutcome(n apply.NodeResult) string {
	if n.Accepted && n.Outcome == apply.NodeDone {
		return "accepted"
	}
	return string(n.Outcome)
}

// describeEnding is why a node ended as it did, without a cause where there is nothing to say.
func describeEnding(n apply.NodeResult) fold.Finding {
	f := fold.Finding{Kind: string(subject.Node), Name: n.Name, Apart: describeOutcome(n)}
	switch {
	case n.Finding != nil:
		f.Apart += " " + shortStep(plan.StepID(n.Finding.Step))
		f.Cause, f.Action = n.Finding.Cause, n.Finding.Action
	case n.Cause != nil:
		f.Cause = n.Cause.Text
	}
	return f
}

// writeOthers shows the findings that are not the root cause of any node: about
// a group, an image, a hand-over.
func writeOthers(p *page, res apply.Result) {
	shown, of := map[string]bool{}, []stage.Finding(nil)
	for _, n := range res.Nodes {
		if n.Finding != nil {
			of = append(of, *n.Finding)
			shown[n.Finding.Step+n.Finding.Cause] = true
		}
	}
	p.others(res.Findings, shown, of)
}

// others shows findings by what they are about, but those that are shown already, by
// step and cause, and those of the very parts that others are about.
func (p *page) others(findings []stage.Finding, shown map[string]bool, of []stage.Finding) {
	var rest []stage.Finding
	var about []fold.Finding
	for _, f := range findings {
		key := f.Step + f.Cause
		if shown[key] || slices.ContainsFunc(of, f.OfSameParts) {
			continue
		}
		shown[key] = true
		x := fold.Finding{Kind: "finding", Name: textOr(listSuspects(f), f.Step), Apart: shortStep(plan.StepID(f.Step)), Cause: f.Cause, Action: f.Action}
		if len(f.Suspects) == 1 {
			s := f.Suspects[0]
			x.Kind, x.Name, x.Apart = string(s.Subject.Kind), s.Subject.Name, x.Apart+" "+s.Part
		}
		rest, about = append(rest, f), append(about, x)
	}
	for _, g := range fold.Findings(about) {
		if first := rest[g.Members[0]]; len(g.Names) > 1 && len(first.Suspects) == 1 && first.Suspects[0].Part != "" {
			p.linef("  %s of %s", first.Suspects[0].Part, g.Subjects())
		} else if len(g.Names) > 1 {
			p.linef("  %s", g.Subjects())
		} else {
			p.linef("  %s", textOr(listSuspects(first), first.Step))
		}
		list := make([]stage.Finding, len(g.Members))
		for i, m := range g.Members {
			list[i] = rest[m]
		}
		writeFindings(p, g, list)
	}
}

// ofSite shows what the last run found about the site, and no node.
func (p *page) ofSite(findings []stage.Finding) {
	if len(findings) == 0 {
		return
	}
	p.linef("")
	p.linef("Found about the site:")
	p.others(findings, map[string]bool{}, nil)
}

// listSuspects lists the parts that a finding is about.
func listSuspects(f stage.Finding) string {
	var parts []string
	for _, s := range f.Suspects {
		parts = append(parts, strings.TrimSpace(s.Subject.Name+" "+s.Part))
	}
	return strings.Join(parts, ", ")
}

// writeFindings shows findings that are alike, indented: the evidence is that of the
// first.
func writeFindings(p *page, g fold.Group, list []stage.Finding) {
	first := list[0]
	p.linef("      cause:   %s", g.Cause)
	writeOtherCauses(p, "               ", g.Others)
	var parts, steps []string
	for _, f := range list {
		if s := listSuspects(f); s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
		if f.Step != "" && !slices.Contains(steps, f.Step) {
			steps = append(steps, f.Step)
		}
	}
	if len(parts) > 0 {
		p.linef("      part:    %s", shortenNames(parts, mostNames))
	}
	if len(steps) > 0 {
		p.linef("      step:    %s", shortenNames(steps, 1))
	}
	of := ""
	if len(steps) > 1 {
		of = fmt.Sprintf(" (%s)", g.Names[0])
	}
	for _, e := range first.Evidence {
		p.linef("      seen:    %s%s", e, of)
	}
	p.linef("      do:      %s", g.Action)
}
