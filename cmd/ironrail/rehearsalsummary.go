// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// showSummary says what came of a rehearsal.
func (a *app) showSummary(sum rehearsal.Summary, show *rehearsalView) {
	if a.json {
		a.printLine(struct {
			Type string `json:"type"`
			rehearsal.Summary
			Gaps gaps.List `json:"gaps"` // as check --json has them
		}{"summary", sum, show.gaps})
		return
	}
	width, lines := screenOf(a.out)
	writeRehearsal(a.out, sum, show.places, show.why(), width, lines)
}

// writeRehearsal writes it as text of that width, as much as fits lines; why is the command that knows
// its findings by their names.
func writeRehearsal(w io.Writer, sum rehearsal.Summary, places ending.Places, why string, width, lines int) {
	e := endOfRun{Ending: ending.Of(sum.Result, places), why: why, after: func(p *wrapped) { p.rehearsed(sum) }}
	p := wrapped{width: width}
	e.writeTo(&p, lines)
	p.to(w)
}

// rehearsed says what a rehearsal says besides: which faults were found, what was simulated, and how
// long it took.
func (p *wrapped) rehearsed(sum rehearsal.Summary) {
	p.planted(sum)
	for _, b := range sum.Unexpected {
		p.writeWrapped("", "UNEXPECTED: "+strings.TrimSpace(b.Subject+" "+b.Part)+" was blamed: "+b.Cause)
	}
	p.simulated(sum.Simulated)
	p.writeWrapped("", "Rehearsed in "+formatSeconds(sum.WallTime)+", "+formatSeconds(sum.SimulatedTime)+" on the virtual rack; a real bring-up is expected to take "+
		formatSeconds(sum.PredictedTime)+". Peak memory "+formatSize(int64(sum.PeakMemory))+".")
}

// planted says which faults were found: those that were in one line, the others each with what was
// expected.
func (p *wrapped) planted(sum rehearsal.Summary) {
	var found []string
	for _, f := range sum.Faults {
		where := string(f.Kind) + " at " + f.Where
		how := "NOT FOUND"
		switch {
		case f.Found:
			found = append(found, where)
			continue
		case sum.Outcome == state.RunInterrupted:
			how = "not found before the end"
		}
		if f.Expected != "" {
			how += "; expected suspect: " + f.Expected
		}
		p.writeWrapped("", "Planted "+where+": "+how)
	}
	if len(found) > 0 {
		p.writeWrapped("", fmt.Sprintf("Planted and found: %s.", strings.Join(found, ", ")))
	}
}

// simulated lists what of the site was simulated, beside all hardware.
func (p *wrapped) simulated(list []gaps.Simulated) {
	if len(list) == 0 {
		return
	}
	p.writeWrapped("", "Simulated, beside all hardware:")
	var things []string
	for i, s := range list {
		if things = append(things, s.String()); i+1 < len(list) {
			if next := list[i+1]; next.What == s.What && next.How == s.How && next.Nodes == s.Nodes {
				continue
			}
		}
		p.writeWrapped("  "+strings.Join(things, ", ")+"  ", fmt.Sprintf("%s (%d %s)", s.How, s.Nodes, pluralOf(s.Nodes, "node", "nodes")))
		things = nil
	}
}

// wrapped is a page whose long lines are broken between words.
type wrapped struct {
	page
	width int // in characters
}

// hang is how far the rest of a broken line stands in.
const hang = "      "

// writeWrapped adds a text behind a label. Words that are longer than a line stay whole.
func (p *wrapped) writeWrapped(label, text string) {
	var esc page
	esc.linef("%s%s", label, text)
	line, used := "", 0
	for i, word := range strings.Split(strings.TrimSuffix(esc.String(), "\n"), " ") {
		n := len([]rune(word))
		if i > 0 && strings.TrimSpace(line) != "" && used+1+n > p.width {
			p.linef("%s", line)
			line, used = hang+"  ", len(hang)+2
		} else if i > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	p.linef("%s", line)
}

// formatSeconds writes a duration as people say it.
func formatSeconds(s rehearsal.Seconds) string { return clock.Text(time.Duration(s)) }
