// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// finding is what a check says about one thing; findings of one cause become one
// diagnostic.
type finding struct {
	check   string
	at      hcl.Range
	in      hcl.Range
	summary string
	who     string // "PDU r01/a"
	name    string // "r01/a"
	says    string // what is found of it, as the rest of a sentence that begins with who
	advice  string // full sentences
	ratio   float64
	about   string            // what is at aboutAt
	aboutAt hcl.Range         // a second place, if it is set
	nodes   []*inventory.Node // that it is about
	warn    bool
}

// report gathers findings.
type report struct {
	groups []group
	byAt   map[cause]int
	byText map[cause]int
}

// group is the findings of one cause: at one place of the files, or with the same
// words. It is headed by the worst.
type group struct {
	finding
	names []string
	equal bool           // all are as bad
	also  []diag.Related // further places
}

// cause tells groups apart. Those that an override accepts are a group of their
// own: it must not accept the others with them.
type cause struct {
	check   string
	at      hcl.Range
	text    string
	allowed bool
	warn    bool
}

func (r *report) add(f finding) {
	if r.byAt == nil {
		r.byAt, r.byText = map[cause]int{}, map[cause]int{}
	}
	// What several nodes cause, such as a PDU over its limit, is accepted when
	// each of them says so: one node's exception is not its neighbours'.
	allowed := !slices.ContainsFunc(f.nodes, func(n *inventory.Node) bool {
		return n.Override == nil || !slices.Contains(n.Override.Allow, f.check)
	})
	if !allowed {
		f.nodes = nil
	}
	place := cause{check: f.check, at: f.at, allowed: allowed, warn: f.warn}
	text := cause{check: f.check, text: f.says + f.advice, allowed: allowed, warn: f.warn}
	i, ok := r.byAt[place]
	if !ok {
		i, ok = r.byText[text]
	}
	if !ok {
		i = len(r.groups)
		r.groups = append(r.groups, group{finding: f, names: []string{f.name}, equal: true})
		r.byAt[place], r.byText[text] = i, i
		return
	}
	if _, known := r.byAt[place]; !known && len(r.groups[i].also) < furtherPlaces {
		r.groups[i].also = append(r.groups[i].also, diag.Related{Message: "the same of " + f.name, Range: diag.FromHCL(f.at)})
	}
	r.groups[i].join(f)
	r.byAt[place] = i
	if _, ok := r.byText[text]; !ok {
		r.byText[text] = i
	}
}

// join adds a finding. The place stays that of the first, so that further places
// are others.
func (g *group) join(f finding) {
	g.names = append(g.names, f.name)
	f.nodes = append(g.nodes, f.nodes...)
	worse := f.ratio > g.ratio*(1+tolerance)
	g.equal = g.equal && !worse && f.ratio >= g.ratio*(1-tolerance)
	if !worse {
		g.nodes = f.nodes
		return
	}
	f.at, f.in = g.at, g.in
	g.finding = f
}

// list writes the diagnostics.
func (r *report) list() diag.List {
	var out diag.List
	for i := range r.groups {
		g := &r.groups[i]
		detail := fmt.Sprintf("%s %s.%s", g.who, g.says, g.others())
		if g.advice != "" {
			detail += " " + g.advice
		}
		d := out.Add(g.check, g.at, g.summary, detail).Also(g.about, g.aboutAt).In(g.in)
		d.Related = append(d.Related, g.also...)
		for _, n := range g.nodes {
			d.Of(n.Name)
		}
		if g.warn {
			d.Warn()
		}
	}
	return out
}

// furtherPlaces is how many places of a group are shown beside the first.
const furtherPlaces = 2

// others says who else the finding is about.
func (g *group) others() string {
	if len(g.names) == 1 {
		return ""
	}
	rank := "the worst"
	if g.equal {
		rank = "one"
	}
	return fmt.Sprintf(" It is %s of %d: %s.", rank, len(g.names), diag.Few(g.names, len(g.names)))
}

// atLeast writes a load, rounded up, and atMost a limit, rounded down, so that
// a load over its limit is written so.
func atLeast(w unit.Watts) string { return formatWatts(w, 0.999_999) }
func atMost(w unit.Watts) string  { return formatWatts(w, 0.000_001) }

// formatWatts writes watts with one digit behind the point, or two of megawatts; up is
// what is added before the rest is cut off.
func formatWatts(w unit.Watts, up float64) string {
	cut := func(v float64, digits int) string {
		scale := 1.0
		for range digits {
			scale *= 10
		}
		return strconv.FormatFloat(float64(int64(v*scale+up))/scale, 'f', -1, 64)
	}
	switch {
	case w < 1000:
		return cut(float64(w), 0) + "W"
	case w < 1e6:
		return cut(float64(w)/1e3, 1) + "kW"
	}
	return cut(float64(w)/1e6, 3) + "MW"
}

// formatAmperes writes a current with one digit, rounded as up says.
func formatAmperes(a, up float64) string {
	return strconv.FormatFloat(float64(int64(a*10+up))/10, 'f', -1, 64) + "A"
}
