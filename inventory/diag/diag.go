// SPDX-License-Identifier: Apache-2.0

// Package diag is what ironrail says about the user's files: diagnostics with
// the name of the check, a summary, a detail that ends in what to do, and the
// smallest place that is wrong. Their JSON form is an interface; the text form
// is rendered from the same values, so the two cannot drift apart. It is a leaf.
package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Severity is how bad a diagnostic is.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // the site cannot be used
	Warning                 // the site can be used; somebody should look
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText writes String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Severity) UnmarshalText(b []byte) error {
	switch string(b) {
	case "error":
		*s = Error
	case "warning":
		*s = Warning
	default:
		return fmt.Errorf("severity %q is not known", b)
	}
	return nil
}

// Pos is a place in a file. Line and Column count from 1 (columns in characters
// as a reader sees them), Byte from 0.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Range is a stretch of a file; End is the first place after it. File is
// relative to the site's folder.
type Range struct {
	File  string `json:"file"`
	Start Pos    `json:"start"`
	End   Pos    `json:"end"`
}

// FromHCL converts a range of the HCL library.
func FromHCL(r hcl.Range) Range {
	return Range{File: r.Filename, Start: Pos{r.Start.Line, r.Start.Column, r.Start.Byte}, End: Pos{r.End.Line, r.End.Column, r.End.Byte}}
}

// String returns "site.hcl:3,5-9" as the HCL library writes ranges.
func (r Range) String() string {
	if r.Start.Line == r.End.Line {
		return fmt.Sprintf("%s:%d,%d-%d", r.File, r.Start.Line, r.Start.Column, r.End.Column)
	}
	return fmt.Sprintf("%s:%d,%d-%d,%d", r.File, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column)
}

// Related is a second place that a diagnostic is about, with its part in it.
type Related struct {
	Message string `json:"message"`
	Range
}

// Diagnostic is one finding about the user's files.
type Diagnostic struct {
	Severity Severity  `json:"severity"`
	Check    string    `json:"check"`   // dotted name, such as "address.duplicate"
	Summary  string    `json:"summary"` // what is wrong, under eight words, no full stop
	Detail   string    `json:"detail"`  // what was found, what is allowed, what to do next
	Subject  *Range    `json:"subject,omitempty"`
	Related  []Related `json:"related,omitempty"`
	Context  *Range    `json:"context,omitempty"` // contains Subject; the header of its block

	// About names the nodes that the finding is about, for overrides that lower
	// a check; empty when it concerns no node in particular.
	About []string `json:"-"`
}

// List is a list of diagnostics.
type List []Diagnostic

// MarshalJSON writes a list, never null.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Diagnostic(l))
}

// HasErrors reports whether any diagnostic is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors returns the number of errors.
func (l List) Errors() int {
	n := 0
	for _, d := range l {
		if d.Severity == Error {
			n++
		}
	}
	return n
}

// Add appends an error. Only the place is required beside the texts.
func (l *List) Add(check string, at hcl.Range, summary, detail string) *Diagnostic {
	r := FromHCL(at)
	*l = append(*l, Diagnostic{Check: check, Summary: summary, Detail: detail, Subject: &r})
	return &(*l)[len(*l)-1]
}

// Also adds a second place and returns d, so that calls chain.
func (d *Diagnostic) Also(message string, at hcl.Range) *Diagnostic {
	if at.Filename != "" {
		d.Related = append(d.Related, Related{Message: message, Range: FromHCL(at)})
	}
	return d
}

// In sets the range that contains the subject.
func (d *Diagnostic) In(at hcl.Range) *Diagnostic {
	if at.Filename != "" {
		r := FromHCL(at)
		d.Context = &r
	}
	return d
}

// Of names the nodes that d is about.
func (d *Diagnostic) Of(nodes ...string) *Diagnostic {
	d.About = append(d.About, nodes...)
	return d
}

// Warn makes d a warning.
func (d *Diagnostic) Warn() *Diagnostic {
	d.Severity = Warning
	return d
}

// perPlace is how many findings of one check at one place are shown one by one:
// a template that is wrong is wrong in each of its thousand instances.
const perPlace = 3

// perKind is how many findings of one check with one summary are shown one by one:
// a network that is too small is too small for each of 12,500 nodes.
const perKind = 50

// Sort orders l by file and byte, removes repetitions, and folds what one place
// says too often, and what is said too often in all, into the last one shown.
func (l List) Sort() List {
	slices.SortStableFunc(l, compareDiagnostics)
	out := l[:0:0]
	seen := map[string]bool{}
	places, kinds := map[place]folded{}, map[kind]folded{}
	for _, d := range l {
		text := d.Check + "\x00" + d.Summary + "\x00" + d.Detail + "\x00" + fmt.Sprint(d.Subject.orZero())
		if seen[text] {
			continue
		}
		seen[text] = true
		p, k := place{d.Severity, d.Check, d.Subject.orZero()}, kind{d.Severity, d.Check, d.Summary}
		at, of := places[p], kinds[k]
		switch {
		case at.shown == perPlace:
			at.more++
		case of.shown == perKind:
			of.more++
		default:
			at.shown, of.shown, at.last, of.last = at.shown+1, of.shown+1, len(out), len(out)
			out = append(out, d)
		}
		places[p], kinds[k] = at, of
	}
	for _, f := range places {
		out.more(f, "from the same place")
	}
	for _, f := range kinds {
		out.more(f, "elsewhere")
	}
	return out
}

// folded is what of many like findings is shown.
type folded struct{ shown, more, last int }

// more says behind the last one shown how many are not.
func (l List) more(f folded, where string) {
	if f.more > 0 {
		l[f.last].Detail += fmt.Sprintf(" (And %d more like it %s.)", f.more, where)
	}
}

type kind struct {
	severity       Severity
	check, summary string
}

type place struct {
	severity Severity
	check    string
	at       Range
}

func (r *Range) orZero() Range {
	if r == nil {
		return Range{}
	}
	return *r
}

func compareDiagnostics(a, b Diagnostic) int {
	x, y := a.Subject.orZero(), b.Subject.orZero()
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Start.Byte, y.Start.Byte), cmp.Compare(x.End.Byte, y.End.Byte),
		cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Summary, b.Summary))
}
