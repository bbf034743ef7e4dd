// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/internal/fold"
)

// plainLines is how many lines the end of a run has at most where it is not written to a terminal, as
// long as what has to be said fits.
const plainLines = 40

// endOfRun is how a run ended as text: as much of it as fits a screen.
type endOfRun struct {
	ending.Ending
	head  string // the first words
	why   string // the command that knows the findings by their names; empty: nothing is kept
	again string // the command that works on what was left out; empty: none does
	after func(p *wrapped)
}

// writeTo adds the text with as much of what was seen as fits lines: first one sentence of each cause,
// in their order, then the rest.
func (e endOfRun) writeTo(p *wrapped, lines int) {
	seen := make([]int, len(e.Causes)) // sentences below each cause
	text := e.text(p.width, seen)
	if strings.Count(text, "\n") >= lines { // more never fits; of thousands of causes it would take minutes to see that
		p.WriteString(text)
		return
	}
	for _, most := range []int{1, math.MaxInt} {
		for i, c := range e.Causes {
			was := seen[i]
			if seen[i] = min(most, len(seenOf(c))); seen[i] == was {
				continue
			}
			if longer := e.text(p.width, seen); strings.Count(longer, "\n") <= lines {
				text = longer
			} else {
				seen[i] = was
			}
		}
	}
	p.WriteString(text)
}

// text is the text with so many sentences of what was seen below each cause.
func (e endOfRun) text(width int, seen []int) string {
	p := wrapped{width: width}
	p.linef("")
	p.writeWrapped("", e.head+e.count())
	for i, c := range e.Causes {
		p.writeWrapped("  "+e.mark(c), describeCause(c))
		p.writeUnlike(c.Others)
		of := ""
		if c.Alike {
			of = " (" + c.Names[0] + ")"
		}
		for _, s := range seenOf(c)[:seen[i]] {
			p.writeWrapped(hang+"seen: ", s+of)
		}
	}
	for _, w := range e.Waits {
		p.writeWrapped("  ", describeWait(w))
		p.writeUnlike(w.Others)
	}
	if work := e.Work(); len(work) > 0 {
		p.linef("")
		p.linef("Work order, in the order of a walk past the racks:")
		for i, c := range work {
			p.writeWrapped(fmt.Sprintf("%3d. ", i+1), describeStops(c)+": "+e.describeAction(c))
		}
	}
	if len(e.Causes)+len(e.Waits) > 0 {
		p.linef("")
	}
	if e.after != nil {
		e.after(&p)
	}
	if e.why != "" && len(e.Causes) > 0 {
		then := ""
		if e.again != "" {
			then = "Then `" + e.again + targetsOf(e.Again()) + "` tests again what it left out. "
		}
		p.writeWrapped("", then+"`"+e.why+" "+e.Causes[0].ID+"` shows all that is known of a line by its name.")
	}
	return p.String()
}

// describeAction is what to do about a cause.
func (e endOfRun) describeAction(c *ending.Cause) string {
	switch {
	case c.More == 0:
		return c.Action
	case e.why == "":
		return c.Action + "."
	}
	return fmt.Sprintf("%s: `%s %s` has them.", c.Action, e.why, c.ID)
}

// writeUnlike writes texts that are not quite those of the line above, the first of many.
func (p *wrapped) writeUnlike(others []string) {
	for _, o := range others[:min(len(others), mostNames)] {
		p.writeWrapped(hang, o)
	}
	if more := len(others) - mostNames; more > 0 {
		p.linef("%sand %d more like these", hang, more)
	}
}

// mark is what a cause is called by, where somebody knows it.
func (e endOfRun) mark(c *ending.Cause) string {
	if e.why == "" {
		return ""
	}
	return c.ID + "  "
}

// count says how many nodes ended in which way.
func (e endOfRun) count() string {
	text := fmt.Sprintf("%d of %d %s accepted", e.Accepted, e.Nodes, pluralOf(e.Nodes, "node", "nodes"))
	for _, x := range []struct {
		of    apply.NodeOutcome
		words string
	}{
		{apply.NodeDone, "done"}, {apply.NodeQuarantined, "quarantined"}, {apply.NodeHeld, "held"}, {apply.NodeWaiting, "waiting"}, {apply.NodeStraggler, "late"},
		{apply.NodeSkipped, "skipped"}, {apply.NodeInterrupted, "interrupted"}, {apply.NodeActive, "active"},
	} {
		if n := e.Others[x.of]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, x.words)
		}
	}
	return text + "."
}

// describeCause names what is suspected, and of what.
func describeCause(c *ending.Cause) string {
	text := describeSuspects(c)
	if rest := without(c.Nodes, c.Names, c.Suspects); len(rest) > 0 {
		text += "; out of service: " + fold.Nodes(rest)
	}
	if c.Part != "" && strings.HasPrefix(c.Text, c.Part) {
		return strings.TrimSuffix(text, " "+c.Part) + ": " + c.Text
	}
	if strings.HasPrefix(c.Text, text) {
		return c.Text
	}
	return text + ": " + c.Text
}

// describeSuspects names all subjects, with the part where it is one.
func describeSuspects(c *ending.Cause) string {
	switch {
	case len(c.Names) == 1: // its name once, and its parts
		parts := []string{c.Suspects[0]}
		for _, s := range c.Suspects[1:] {
			parts = append(parts, strings.TrimPrefix(s, c.Names[0]+" "))
		}
		return strings.Join(parts, ", ")
	case len(c.Suspects) <= mostNames && c.Part == "":
		return strings.Join(c.Suspects, ", ")
	case len(c.Names) <= fewNames:
		return strings.TrimSpace(strings.Join(c.Names, ", ") + " " + c.Part)
	}
	return strings.TrimSpace(fmt.Sprintf("%d: %s %s", len(c.Names), fold.Names(c.Names), c.Part))
}

// without are the names that neither are among names nor begin a suspect.
func without(nodes, names, suspects []string) (rest []string) {
	within := map[string]bool{}
	for _, n := range names {
		within[n] = true
	}
	for _, s := range suspects {
		for i, r := range s {
			if r == '/' || r == ' ' {
				within[s[:i]] = true
			}
		}
	}
	for _, n := range nodes {
		if !within[n] {
			rest = append(rest, n)
		}
	}
	return rest
}

// describeWait says what nodes wait for, or how they ended without a cause of their own.
func describeWait(w ending.Wait) string {
	text := fold.Nodes(w.Nodes) + " " + string(w.Outcome)
	if w.Text != "" {
		text += ": " + w.Text
	}
	return text
}

// describeStops says where to go, by rack and unit: "r01 u1, r05 u3 and u9".
func describeStops(c *ending.Cause) string {
	if len(c.Stops) == 0 {
		return describeSuspects(c)
	}
	var racks []string
	for i := 0; i < len(c.Stops); {
		text, first := "rack "+c.Stops[i].Rack, i
		for ; i < len(c.Stops) && c.Stops[i].Rack == c.Stops[first].Rack; i++ {
			if u := c.Stops[i].Unit; u > 0 {
				text += fmt.Sprintf("%s u%d", map[bool]string{true: ","}[i > first], u)
			}
		}
		racks = append(racks, text)
	}
	where := strings.Join(racks, "; ")
	if len(racks) > mostRacks {
		where = fmt.Sprintf("%s and %d racks more", strings.Join(racks[:mostRacks], "; "), len(racks)-mostRacks)
	}
	return where + ": " + describeSuspects(c)
}

// fewNames is how many names are written one by one.
const fewNames = 4

// mostRacks is how many racks a line of a work order names.
const mostRacks = 16

// targetsOf are the options that choose nodes, where they are few.
func targetsOf(nodes []string) string {
	if len(nodes) == 0 || len(nodes) > mostNames {
		return ""
	}
	return " --target " + strings.Join(nodes, ",")
}

// seenOf is the evidence of a cause in words.
func seenOf(c *ending.Cause) []string {
	return slices.DeleteFunc(slices.Clone(c.Evidence), evidence.IsRef)
}
