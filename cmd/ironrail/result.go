// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fold"
)

// printResult prints a result as the last line of a stream of events.
func (a *app) printResult(res apply.Result) {
	a.printLine(struct {
		Type string `json:"type"`
		apply.Result
	}{"result", res})
}

// writeResult says how a run ended, as much as fits lines: what keeps nodes from being accepted, with
// evidence, and what is to be done about it.
func writeResult(w io.Writer, res apply.Result, places ending.Places, width, lines int) {
	e := endOfRun{Ending: ending.Of(res, places), head: fmt.Sprintf("Run %s: %s after %s. ", res.Run, res.Outcome, clock.Took(res.Started, res.Ended)), why: "ironrail why", again: "ironrail apply"}
	e.after = func(p *wrapped) {
		if plan.HasUnmanagedTargets(res.Unmanaged) {
			writeUnmanaged(&p.page, res.Unmanaged)
		}
	}
	p := wrapped{width: width}
	e.writeTo(&p, lines)
	p.to(w)
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
		x := fold.Finding{Kind: "finding", Name: textOr(strings.Join(f.Parts(), ", "), f.Step), Apart: plan.StepID(f.Step).Kind(), Cause: f.Cause, Action: f.Action}
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
			p.linef("  %s", textOr(strings.Join(first.Parts(), ", "), first.Step))
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

// writeFindings shows findings that are alike, indented: the evidence is that of the
// first.
func writeFindings(p *page, g fold.Group, list []stage.Finding) {
	first := list[0]
	p.linef("      cause:   %s", g.Cause)
	writeOtherCauses(p, "               ", g.Others)
	var parts, steps []string
	for _, f := range list {
		if s := strings.Join(f.Parts(), ", "); s != "" && !slices.Contains(parts, s) {
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
