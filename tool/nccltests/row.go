// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	// begun is how every row begins: bytes, elements, type.
	begun = lazyregexp.New(`^\s*\d{1,18}\s+\d{1,18}\s+[a-z][a-z0-9_]*(?:\s|$)`)
	// bareRow is a whole row without any header, of a text that was cut at its top.
	bareRow = lazyregexp.New(`(?m)^\s*\d+\s+\d+\s+(?:u?int(?:8|32|64)|half|float|double|bfloat16|f8\w+|fp8\w+)\s+(?:[a-z]+\s+)?(?:-?\d+\s+)?(?:[\d.]+(?:e[+-]?\d+)?\s+){3,4}\S+\s+(?:[\d.]+(?:e[+-]?\d+)?\s+){3,4}\S+\s*$`)
	// stamp is the end of a row with -S.
	stamp = lazyregexp.New(`\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d$`)
)

// columns is the layout of a table, from its header.
type columns struct {
	known   bool
	root    bool
	half    []string // columns of one placement
	more    bool     // there are columns behind the last half
	lone    bool     // there is one half only: rccl-tests can leave out-of-place out
	inFirst bool     // the first half is in-place
	cpuTime bool
}

// names1 are the columns of versions 1 by their names since 2.
var names1 = map[string]string{"bytes": "size", "N": "count", "op": "redop", "time": "time_ms", "res": "error"}

// readColumns reads the line of the header that names the columns.
func readColumns(text string) (columns, bool) {
	words := strings.Fields(strings.TrimLeft(text, "# "))
	if len(words) > 6 && words[0] == "bytes" && words[1] == "N" { // versions 1, whose times are milliseconds
		for i, w := range words {
			words[i] = cmp.Or(names1[w], w)
		}
	}
	if len(words) < 6 || words[0] != "size" || words[1] != "count" {
		return columns{}, false
	}
	isTime := func(w string) bool { return w == "time" || w == "cputime" || w == "time_ms" }
	first := slices.IndexFunc(words, isTime)
	if first < 0 {
		return columns{}, false
	}
	c := columns{known: true, root: slices.Contains(words[:first], "root"), cpuTime: words[first] == "cputime"}
	rest := words[first:]
	second := slices.IndexFunc(rest[1:], isTime) + 1
	if c.lone = second == 0; c.lone {
		second = len(rest)
		if i := slices.Index(rest, "timestamp"); i > 0 {
			second = i
		}
	}
	c.half = rest[:second]
	c.more = len(rest) > second*c.halves()
	return c, slices.Contains(c.half, "busbw")
}

// halves is how many placements a row has.
func (c columns) halves() int {
	if c.lone {
		return 1
	}
	return 2
}

// row reads a line that is a row, or a part of one; false when it is neither.
func (r *reader) row(line string) bool {
	text := strings.TrimRight(stamp.ReplaceAllString(line, ""), " \t")
	switch {
	case begun.MatchString(text):
		r.drop()
		r.pending, r.at = strings.Fields(text), r.line
	case r.pending != nil && hasFigures(strings.Fields(text)):
		r.pending = append(r.pending, strings.Fields(text)...)
	default:
		return false
	}
	if row, ok := r.columns.row(r.pending); ok {
		row.line = r.at
		t := r.test()
		if t.ended { // a table without anything before its first row
			r.begin()
			t = r.test()
		}
		t.Rows = append(t.Rows, row)
		r.pending = nil
		for _, p := range []*Placement{row.OutOfPlace, row.InPlace} {
			if p != nil && p.Wrong != nil && *p.Wrong > 0 {
				r.problems.Add(tool.Failed, r.at, "%d elements of size %d were wrong", *p.Wrong, row.Size)
			}
		}
	}
	return true
}

// drop gives up a row that was begun and never ended.
func (r *reader) drop() {
	if r.pending != nil {
		r.test()
		r.problems.Add(tool.Truncated, r.at, "the row of size %s is cut", r.pending[0])
		r.pending = nil
	}
}

// hasFigures reports whether all words can be figures of a row.
func hasFigures(words []string) bool {
	for _, w := range words {
		if _, ok := parseFigure(w); !ok {
			return false
		}
	}
	return len(words) > 0
}

// parseFigure returns a number, or nil for one that is not given.
func parseFigure(s string) (*float64, bool) {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "n/a", "inf", "nan":
		return nil, true
	}
	f := parseNumber(strings.TrimSuffix(s, "*"))
	return f, f != nil
}

// parseNumber returns a finite number; nil when it is none.
func parseNumber(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return &f
}

// row reads the words of a whole row; false when some are missing. A header says
// which columns there are; without one, their number does.
func (c columns) row(words []string) (Row, bool) {
	row := Row{Type: words[2]}
	if size, count := parseInteger(words[0]), parseInteger(words[1]); size != nil && count != nil {
		row.Size, row.Count = *size, *count
	}
	rest := words[3:]
	if len(rest) > 0 {
		if _, ok := parseFigure(rest[0]); !ok {
			row.Op, rest = rest[0], rest[1:]
		}
	}
	half := c.half
	if !c.known {
		half = guessColumns(len(rest))
	}
	n, all := len(half), len(half)*c.halves()
	if n == 0 || len(rest) < n {
		return row, false
	}
	if c.hasRoot(rest, all) {
		row.Root, rest = parseInteger(rest[0]), rest[1:]
	}
	if c.more && len(rest) > all {
		rest = rest[:all]
	}
	if len(rest) != all {
		return row, false
	}
	return row, c.place(&row, half, rest)
}

// place reads the figures of a row, a half at a time; false when one is none.
func (c columns) place(row *Row, half, words []string) bool {
	sides := []**Placement{&row.OutOfPlace, &row.InPlace}
	if c.inFirst {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for i := range c.halves() {
		if *sides[i] = parsePlacement(half, words[i*len(half):(i+1)*len(half)]); *sides[i] == nil {
			return false
		}
	}
	return true
}

// hasRoot reports whether words begin with the root of a row, of which so many figures
// shall follow.
func (c columns) hasRoot(words []string, figures int) bool {
	if c.known {
		return c.root && (len(words) != figures || isRoot(words[0]))
	}
	return len(words) == figures+1 || isRoot(words[0])
}

// isRoot tells a root from a time: these have a fraction up to 9999 us.
func isRoot(word string) bool {
	return len(word) < 5 && parseInteger(word) != nil && !strings.ContainsAny(word, ".e")
}

// guessColumns returns the layout of half a row with so many figures in all.
func guessColumns(figures int) []string {
	usual := []string{"time", "algbw", "busbw", "#wrong"}
	switch figures {
	case 8, 9:
		return usual
	case 10, 11:
		return slices.Insert(usual, 1, "hipevt")
	case 16, 17:
		return append(usual, "i_min", "i_max", "i_p99", "i_cv%")
	}
	return nil
}

// parsePlacement reads half a row; nil when a word is no figure.
func parsePlacement(names, words []string) *Placement {
	var p Placement
	var s Spread
	for i, name := range names {
		v, ok := parseFigure(words[i])
		if !ok {
			return nil
		}
		switch name {
		case "time", "cputime":
			p.Time, p.shown[0] = v, words[i]
		case "time_ms":
			if v != nil {
				*v = math.Round(*v*1e9) / 1e6
			}
			p.Time, p.shown[0] = v, words[i]+"e3"
		case "hipevt":
			p.Event = v
		case "algbw":
			p.AlgBW, p.shown[1] = v, words[i]
		case "busbw":
			p.BusBW, p.shown[2] = v, words[i]
		case "#wrong", "wrong":
			p.Wrong = toCount(v)
		case "error":
			p.Error = v
		default:
			s.set(name, v)
		}
	}
	if s != (Spread{}) {
		p.Spread = &s
	}
	return &p
}

// set takes the figure of a column of -I.
func (s *Spread) set(name string, v *float64) {
	switch name {
	case "i_min":
		s.Min = v
	case "i_max":
		s.Max = v
	case "i_p99":
		s.P99 = v
	case "i_cv%":
		s.CV = v
	}
}

// toCount returns a count that was written as a number with a fraction.
func toCount(f *float64) *int64 {
	if f == nil || *f < 0 || *f > 1e18 {
		return nil
	}
	n := int64(math.Ceil(*f))
	return &n
}
