// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Difference is what lies between two reports, the older one first: of one site before
// and after a change, or at two times of its life.
type Difference struct {
	From    Made           `json:"from"`
	To      Made           `json:"to"`
	Nodes   []NodeChange   `json:"nodes,omitempty"`
	Figures []FigureChange `json:"figures,omitempty"` // that moved by the share asked for, or whose verdict is another
	Alike   int            `json:"alike"`             // figures and looks that did not
	OnlyIn  [2]int         `json:"only_in"`           // figures and looks that one report alone has: the older, the newer
}

// Made says which report it was.
type Made struct {
	Site string    `json:"site"`
	Run  string    `json:"run,omitempty"`
	At   time.Time `json:"at"`
}

// NodeChange is one node that is another than it was. What names a field of the report:
// standing, serial, image, kernel or a driver. A node that one report alone has changes
// its standing from or to the empty text.
type NodeChange struct {
	Node string `json:"node"`
	What string `json:"what"`
	From string `json:"from"`
	To   string `json:"to"`
}

// FigureChange is one measurement of both reports.
type FigureChange struct {
	Check string      `json:"check"`
	Nodes []string    `json:"nodes"`
	Part  string      `json:"part,omitempty"`
	From  Measurement `json:"from"`
	To    Measurement `json:"to"`
	Moved float64     `json:"moved"` // as a share of the older figure, to a hundredth of a per cent; 0 where it is none
}

// Same reports whether nothing differs.
func (d Difference) Same() bool { return len(d.Nodes)+len(d.Figures) == 0 }

// Read reads the JSON form of a report.
func Read(r io.Reader) (Input, error) {
	var in Input
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return in, errkind.New(errkind.Invalid, "it is no report in JSON: %w", err).Do("Make it with `ironrail report --json`.")
	}
	if in.Format != Format {
		return in, errkind.New(errkind.Unsupported, "the report has format %d, and this version reads %d", in.Format, Format)
	}
	return in, nil
}

// Diff compares two reports. A figure counts as moved when it changed by that share of the
// older one, such as 0.05, up or down.
func Diff(from, to Input, beyond float64) Difference {
	d := Difference{From: Made{from.Site, from.Run, from.At}, To: Made{to.Site, to.Run, to.At}}
	d.Nodes = diffNodes(from.Nodes, to.Nodes)
	was, is := figuresOf(from), figuresOf(to)
	for key, m := range is {
		old, both := was[key]
		if !both {
			d.OnlyIn[1]++
			continue
		}
		c := FigureChange{Check: m.Check, Nodes: m.Nodes, Part: m.Part, From: old, To: m}
		if old.Unit != "" && old.Unit == m.Unit && old.Measured != 0 {
			c.Moved = math.Round((m.Measured/old.Measured-1)*1e4) / 1e4
		}
		if old.Verdict != m.Verdict || math.Abs(c.Moved) >= beyond {
			d.Figures = append(d.Figures, c)
		} else {
			d.Alike++
		}
	}
	for key := range was {
		if _, both := is[key]; !both {
			d.OnlyIn[0]++
		}
	}
	slices.SortFunc(d.Figures, func(a, b FigureChange) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), slices.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Part, b.Part))
	})
	return d
}

// diffNodes lists what of nodes is another.
func diffNodes(from, to []Node) (list []NodeChange) {
	was := map[string]Node{}
	for _, n := range from {
		was[n.Name] = n
	}
	change := func(node, what, a, b string) {
		if a != b {
			list = append(list, NodeChange{node, what, a, b})
		}
	}
	for _, n := range sortedBy(to, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }) {
		old, both := was[n.Name]
		delete(was, n.Name)
		change(n.Name, "standing", old.Status.String(), n.Status.String())
		if !both {
			continue
		}
		change(n.Name, "serial", old.SerialText(), n.SerialText())
		change(n.Name, "image", old.Image, n.Image)
		change(n.Name, "kernel", old.Kernel, n.Kernel)
		for _, name := range driversOf(old, n) {
			change(n.Name, "driver "+name, versionOf(old, name), versionOf(n, name))
		}
	}
	for _, n := range sortedBy(from, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }) {
		if _, gone := was[n.Name]; gone {
			change(n.Name, "standing", n.Status.String(), "")
		}
	}
	return list
}

// driversOf are the names of the drivers of either.
func driversOf(a, b Node) (names []string) {
	for _, v := range slices.Concat(a.Drivers, b.Drivers) {
		if !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

func versionOf(n Node, driver string) string {
	for _, v := range n.Drivers {
		if v.Name == driver {
			return v.Version
		}
	}
	return ""
}

// ofPart is what tells two parts in the same place apart: another serial number is no other
// place.
var ofPart = lazyregexp.New(`,? serial \S+`)

// figuresOf are the measurements of a report by what they measure. One that stands there
// twice counts once, with its worst.
func figuresOf(in Input) map[string]Measurement {
	all := map[string]Measurement{}
	for _, t := range in.Tests {
		for _, m := range t.Measurements {
			key := strings.Join([]string{m.Check, strings.Join(m.Nodes, " "), ofPart.ReplaceAllString(m.Part, ""), m.Unit}, "\x00")
			if old, twice := all[key]; !twice || old.Verdict == Pass && m.Verdict != Pass {
				all[key] = m
			}
		}
	}
	return all
}

// WriteText writes it for a person.
func (d Difference) WriteText(w io.Writer, beyond float64) error {
	var b bytes.Buffer
	for _, m := range []struct {
		word string
		Made
	}{{"From", d.From}, {"To  ", d.To}} {
		fmt.Fprintf(&b, "%s  site %s, %s", m.word, clean(m.Site), m.At.UTC().Format(time.RFC3339))
		if m.Run != "" {
			fmt.Fprintf(&b, ", run %s", clean(m.Run))
		}
		b.WriteString("\n")
	}
	if d.From.Site != d.To.Site {
		b.WriteString("These are reports of two sites.\n")
	}
	if len(d.Nodes) > 0 {
		b.WriteString("\nNodes\n")
	}
	for _, n := range d.Nodes {
		fmt.Fprintf(&b, "  %-12s %s: %s -> %s\n", clean(n.Node), n.What, orNone(n.From), orNone(n.To))
	}
	if len(d.Figures) > 0 {
		fmt.Fprintf(&b, "\nFigures that moved by %g%% or more, or whose verdict is another\n", 100*beyond)
	}
	for _, f := range d.Figures {
		fmt.Fprintf(&b, "  %s, %s: %s -> %s", clean(f.Check), clean(formatPlace(f.To)), formatOutcome(f.From), formatOutcome(f.To))
		if f.Moved != 0 {
			fmt.Fprintf(&b, " (%+.1f%%)", 100*f.Moved)
		}
		if f.To.Why != "" && f.To.Verdict != Pass {
			fmt.Fprintf(&b, ": %s", clean(f.To.Why))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n%d alike, %d in the first report alone, %d in the second alone.\n", d.Alike, d.OnlyIn[0], d.OnlyIn[1])
	_, err := w.Write(wrapLines(b.Bytes(), textWidth))
	return err
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return clean(s)
}

// formatOutcome is a figure, where there is one, and its verdict.
func formatOutcome(m Measurement) string {
	if m.Unit == "" {
		return m.Verdict
	}
	return formatValue(m) + " " + m.Verdict
}
