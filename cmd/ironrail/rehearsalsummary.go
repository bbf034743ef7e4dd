// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// showSummary says what came of a rehearsal of a site with these gaps.
func (a *app) showSummary(sum rehearsal.Summary, list gaps.List) {
	if a.json {
		a.printLine(struct {
			Type string `json:"type"`
			rehearsal.Summary
			Gaps gaps.List `json:"gaps"` // as check --json has them
		}{"summary", sum, list})
		return
	}
	width, _ := terminalSize(a.out)
	writeRehearsal(a.out, sum, width)
}

// writeRehearsal writes it as text of that width.
func writeRehearsal(w io.Writer, sum rehearsal.Summary, width int) {
	p := wrapped{width: width}
	all := len(sum.Accepted) + len(sum.Quarantined) + len(sum.Waiting)
	p.linef("")
	p.linef("%d of %d %s accepted, %d quarantined, %d waiting.", len(sum.Accepted), all, pluralOf(all, "node", "nodes"), len(sum.Quarantined), len(sum.Waiting))
	for _, q := range sum.Quarantined {
		p.writeWrapped("  "+q.Node+"  ", describeFound(textOr(q.Part, q.Node), q.Cause))
		p.because(q.Evidence, q.Action)
		for _, f := range q.Also {
			p.writeWrapped("  "+q.Node+"  ", describeFound(textOr(f.Part, q.Node), f.Cause))
			p.because(f.Evidence, f.Action)
		}
	}
	for _, f := range sum.Findings {
		p.writeWrapped("  ", f.Part+": "+f.Cause)
		p.because(f.Evidence, f.Action)
	}
	for _, same := range waitingTogether(sum.Waiting) {
		p.writeWrapped("  "+shortenNames(same.nodes, mostNames)+"  ", pluralOf(len(same.nodes), "waits: ", "wait: ")+same.cause)
	}
	for _, f := range sum.Faults {
		found := "found"
		switch {
		case !f.Found && sum.Outcome == state.RunInterrupted:
			found = "not found before the end"
		case !f.Found:
			found = "NOT FOUND"
		}
		if !f.Found && f.Expected != "" {
			found += "; expected suspect: " + f.Expected
		}
		p.writeWrapped("  ", "planted "+string(f.Kind)+" at "+f.Where+": "+found)
	}
	for _, b := range sum.Unexpected {
		p.writeWrapped("  ", "UNEXPECTED: "+strings.TrimSpace(b.Subject+" "+b.Part)+" was blamed: "+b.Cause)
	}
	p.simulated(sum.Simulated)
	p.writeWrapped("", "Rehearsed in "+formatSeconds(sum.WallTime)+", "+formatSeconds(sum.SimulatedTime)+" on the virtual rack; a real bring-up is expected to take "+
		formatSeconds(sum.PredictedTime)+". Peak memory "+formatSize(int64(sum.PeakMemory))+".")
	p.to(w)
}

// describeFound is a part and what is wrong with it; many causes name the part themselves.
func describeFound(part, cause string) string {
	if strings.HasPrefix(cause, part) {
		return cause
	}
	return part + ": " + cause
}

// simulated lists what of the site was simulated, beside all hardware.
func (p *wrapped) simulated(list []gaps.Simulated) {
	if len(list) == 0 {
		return
	}
	p.writeWrapped("", "Simulated, beside all hardware:")
	for _, s := range list {
		p.writeWrapped("  "+s.String()+"  ", fmt.Sprintf("%s (%d %s)", s.How, s.Nodes, pluralOf(s.Nodes, "node", "nodes")))
	}
}

// together is what several nodes wait for.
type together struct {
	cause string
	nodes []string
}

// waitingTogether puts nodes with one cause into one line.
func waitingTogether(all []rehearsal.Waiting) (out []together) {
	at := map[string]int{}
	for _, w := range all {
		i, ok := at[w.Cause]
		if !ok {
			i = len(out)
			at[w.Cause] = i
			out = append(out, together{cause: w.Cause})
		}
		out[i].nodes = append(out[i].nodes, w.Node)
	}
	return out
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

// because adds what was seen and what is to be done. Files that were attached as
// evidence are gone with the state of the rehearsal.
func (p *wrapped) because(evidence []string, action string) {
	for _, e := range evidence {
		if !strings.HasPrefix(e, "sha256:") {
			p.writeWrapped(hang+"seen: ", e)
		}
	}
	p.writeWrapped(hang+"do:   ", action)
}

// formatSeconds writes a duration as people say it.
func formatSeconds(s rehearsal.Seconds) string { return clock.Text(time.Duration(s)) }
