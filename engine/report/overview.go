// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// overview is what the first page shows of the whole site, in text as in HTML.
type overview struct {
	Verdict  string // accepted, or not, and how many nodes
	Good     bool
	Counts   string // of the nodes that are not accepted
	Failed   []*FailedPart
	Spreads  []*spread
	RackKeys []string // legend of the racks
	rails    railMap
}

// makeOverview collects what the first page shows.
func makeOverview(in Input) overview {
	o := overview{Counts: strings.Join(countOthers(in), ", "), Failed: collectFailed(in), Spreads: collectSpreads(in.Tests), RackKeys: legend(in), rails: collectRails(in)}
	o.Verdict, o.Good = verdict(in)
	return o
}

// drawnOverview is the first page as HTML has it.
type drawnOverview struct {
	overview
	Flat      []string // figures that are all the same
	Racks     template.HTML
	Rails     template.HTML
	Unplaced  []string
	Cool, Hot string // of the map of the racks; empty: nothing was measured
}

// drawOverview draws the two maps of the first page.
func drawOverview(in Input) drawnOverview {
	o := drawnOverview{overview: makeOverview(in)}
	for _, s := range o.Spreads {
		if s.Flat() {
			o.Flat = append(o.Flat, fmt.Sprintf("%s %s (%d)", s.Check, strings.TrimPrefix(s.Range(), "all "), len(s.Good)))
		}
	}
	if len(in.Racks) > 0 {
		o.Racks, o.Unplaced = drawRacks(in), withoutRack(in)
	}
	if len(o.rails.Nodes) > 0 {
		o.Rails = o.rails.draw()
	}
	var all []float64
	for _, v := range warmth(in) {
		all = append(all, v)
	}
	if len(all) > 0 {
		o.Cool, o.Hot = fmt.Sprintf("%.0f °C", slices.Min(all)), fmt.Sprintf("%.0f °C", slices.Max(all))
	}
	return o
}

// verdict is the first line of the report.
func verdict(in Input) (text string, good bool) {
	accepted := 0
	for _, n := range in.Nodes {
		if n.Status == Accepted {
			accepted++
		}
	}
	switch n := len(in.Nodes); {
	case n == 0:
		return "Nothing to accept: there are no nodes", false
	case accepted == n:
		return fmt.Sprintf("Accepted: all %d nodes", n), true
	case accepted == 0:
		return fmt.Sprintf("Not accepted: none of %d nodes", n), false
	default:
		return "Not accepted as a whole", false
	}
}

// countOthers are how many nodes stand otherwise than accepted.
func countOthers(in Input) (list []string) {
	for _, s := range []Status{Quarantined, Held, Adopted, Unfinished, NotAccepted, NoReference} {
		count := 0
		for _, n := range in.Nodes {
			if n.Status == s {
				count++
			}
		}
		if count > 0 {
			list = append(list, fmt.Sprintf("%d %s", count, s))
		}
	}
	return list
}

// Sizes of the overview in text.
const (
	partsShown = 20 // failed parts that are listed
	railsShown = 20 // nodes with a rail that failed
)

// writeOverview writes the first page in text: the verdict, the parts that failed, the
// racks, the rails that failed, and how figures are distributed.
func writeOverview(b *bytes.Buffer, in Input) {
	o := makeOverview(in)
	fmt.Fprintf(b, "\n%s\n", o.Verdict)
	if o.Counts != "" {
		fmt.Fprintf(b, "  of %d %s: %s\n", len(in.Nodes), plural(len(in.Nodes), "node", "nodes"), o.Counts)
	}
	for _, p := range o.Failed[:min(len(o.Failed), partsShown)] {
		fmt.Fprintf(b, "  %s: %s\n", clean(p.Title), clean(p.Findings[0].Cause))
	}
	if more := len(o.Failed) - partsShown; more > 0 {
		fmt.Fprintf(b, "  and %d more parts\n", more)
	}
	writeRacks(b, in, o.RackKeys)
	writeRails(b, o.rails)
	writeSpreads(b, o.Spreads)
}

// writeRacks writes a line for each rack: a letter for each node, from the lowest unit up.
func writeRacks(b *bytes.Buffer, in Input, keys []string) {
	if len(in.Racks) == 0 {
		return
	}
	status := map[string]Status{}
	for _, n := range in.Nodes {
		status[n.Name] = n.Status
	}
	fmt.Fprintf(b, "\nRacks, from the lowest unit up (%s)\n", strings.Join(append([]string{". accepted", "X bad"}, keys...), ", "))
	wide := 0
	for _, r := range in.Racks {
		wide = max(wide, len(clean(r.Name)))
	}
	for _, r := range in.Racks {
		letters := ""
		for _, p := range r.Places {
			if s, known := status[p.Name]; known && p.Kind == NodePlace {
				letters += s.letter()
			}
		}
		if letters != "" {
			fmt.Fprintf(b, "  %-*s %s\n", wide, clean(r.Name), letters)
		}
	}
}

// writeRails writes the nodes of which a rail failed, with all of their rails in percent of
// the limit.
func writeRails(b *bytes.Buffer, m railMap) {
	if len(m.Nodes) == 0 {
		return
	}
	var bad []string
	for _, n := range m.Nodes {
		for _, r := range m.Rails {
			if m.cells[n][r].Failed {
				bad = append(bad, n)
				break
			}
		}
	}
	fmt.Fprintf(b, "\nRails against nodes: %d %s of %d %s were measured, and %d %s a rail that failed\n", len(m.Rails), plural(len(m.Rails), "rail", "rails"), len(m.Nodes), plural(len(m.Nodes), "node", "nodes"), len(bad), plural(len(bad), "node has", "nodes have"))
	for _, n := range bad[:min(len(bad), railsShown)] {
		var words []string
		for _, r := range m.Rails {
			switch c, ok := m.cells[n][r]; {
			case !ok:
				words = append(words, clean(r)+" not measured")
			case c.Failed:
				words = append(words, clean(r)+" FAILED ("+c.Figure+")")
			default:
				words = append(words, fmt.Sprintf("%s %.0f%%", clean(r), c.Percent))
			}
		}
		fmt.Fprintf(b, "  %s: %s\n", clean(n), strings.Join(words, ", "))
	}
	if more := len(bad) - railsShown; more > 0 {
		fmt.Fprintf(b, "  and %d more nodes\n", more)
	}
}

// writeSpreads writes how the figures of each check are distributed.
func writeSpreads(b *bytes.Buffer, list []*spread) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nFigures\n")
	for _, s := range list {
		fmt.Fprintf(b, "  %s: %s; %s; %s\n", clean(s.Check), s.Counts(), s.Range(), s.Limit())
	}
}
