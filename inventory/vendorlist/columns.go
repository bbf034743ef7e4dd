// SPDX-License-Identifier: Apache-2.0

package vendorlist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory/diag"
)

// None is the header that Columns takes for "the list does not have this field".
const None = "-"

// Columns finds the column of each field. asked says some of them: a header, "#3"
// for the third column, or None. Where the headers do not say it, there is a
// question; a required field that no column can be is a problem.
func (l *List) Columns(asked map[Field]string) (Mapping, []Question, []Problem) {
	m := Mapping{}
	var problems []Problem
	taken := map[int]bool{}
	for _, f := range Fields() {
		header, ok := asked[f]
		if ok && header == None && f == Serial {
			problems = append(problems, Problem{Text: "A list without serials describes no nodes; map serial to one of its columns."})
		}
		if !ok || header == None {
			continue
		}
		i, wrong := l.find(header)
		if wrong != "" {
			problems = append(problems, Problem{Text: fmt.Sprintf("--map %s=%q: %s", f, header, wrong)})
			continue
		}
		m[f], taken[i] = i, true
	}
	var questions []Question
	for _, f := range Fields() {
		if _, ok := asked[f]; ok {
			continue
		}
		switch found := l.named(f, taken); len(found) {
		case 0:
		case 1:
			m[f], taken[found[0]] = found[0], true
			continue
		default:
			questions = append(questions, l.question(f, found))
			continue
		}
		if !f.Required() {
			continue
		}
		if found := l.looks(f, taken); len(found) > 0 {
			questions = append(questions, l.question(f, found))
			continue
		}
		problems = append(problems, Problem{Text: fmt.Sprintf("No column holds %s. The list has the columns %s. Say --map %s=HEADER.", f, diag.Quoted(l.headers()), f)})
	}
	return m, questions, problems
}

// find is the column of a header, or of "#N".
func (l *List) find(header string) (column int, wrong string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(header, "#")); err == nil && strings.HasPrefix(header, "#") {
		if n < 1 || n > len(l.Header) {
			return 0, fmt.Sprintf("the list has the columns #1 to #%d.", len(l.Header))
		}
		return n - 1, ""
	}
	found := -1
	for i, h := range l.Header {
		if h != header && !strings.EqualFold(h, header) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Sprintf("two columns have this header. Say #%d or #%d.", found+1, i+1)
		}
		found = i
	}
	if found < 0 {
		near := diag.DidYouMean(header, l.headers())
		if near == "" {
			near = " There are " + diag.Quoted(l.headers()) + "."
		}
		return 0, fmt.Sprintf("no column has this header.%s", near)
	}
	return found, ""
}

// named lists the columns whose header says the field; those that say it surely,
// if there are any.
func (l *List) named(f Field, taken map[int]bool) []int {
	by := map[int][]int{}
	for i, h := range l.Header {
		if g, sure := matchHeader(h); g == f && sure > 0 && !taken[i] {
			by[sure] = append(by[sure], i)
		}
	}
	if len(by[2]) > 0 {
		return by[2]
	}
	return by[1]
}

// looks lists the columns whose header says nothing and whose values may be the
// field's.
func (l *List) looks(f Field, taken map[int]bool) []int {
	fits := map[Field]func(string) bool{
		BMCMAC:  isMAC,
		BootMAC: isMAC,
		Unit:    func(s string) bool { _, wrong := unitOf(s); return wrong == "" },
		Rack:    func(s string) bool { return rackForm.MatchString(s) && !isMAC(s) },
		Serial:  func(s string) bool { return serialForm.MatchString(s) && !isMAC(s) },
	}[f]
	var out []int
	for i, h := range l.Header {
		if _, sure := matchHeader(h); taken[i] || sure > 0 || fits == nil || hasWord(h, others) {
			continue
		}
		filled := false
		ok := true
		for _, row := range l.Rows {
			if v := trimCell(row[i]); v != "" {
				filled = true
				ok = ok && fits(v)
			}
		}
		if filled && ok {
			out = append(out, i)
		}
	}
	return out
}

func isMAC(s string) bool { _, err := addr.ParseMAC(s); return err == nil }

// samples is how many values of a column are shown.
const samples = 3

func (l *List) question(f Field, columns []int) Question {
	q := Question{Field: f}
	for _, i := range columns {
		c := Candidate{Column: i, Header: l.Header[i]}
		for _, row := range l.Rows {
			if v := trimCell(row[i]); v != "" && f != FactoryPassword && len(c.Sample) < samples {
				c.Sample = append(c.Sample, v)
			}
		}
		q.Candidates = append(q.Candidates, c)
	}
	return q
}

// headers lists the headers that are not empty.
func (l *List) headers() []string {
	return slices.DeleteFunc(slices.Clone(l.Header), func(h string) bool { return h == "" })
}

// Unused lists the headers of the columns that a mapping leaves out, and that are
// not kept beside it.
func (l *List) Unused(m Mapping, keep []string) []string {
	used := map[int]bool{}
	for _, c := range m {
		used[c] = true
	}
	for _, k := range keep {
		if c, wrong := l.find(k); wrong == "" {
			used[c] = true
		}
	}
	out := []string{}
	for i, h := range l.Header {
		if !used[i] && h != "" {
			out = append(out, h)
		}
	}
	return out
}
