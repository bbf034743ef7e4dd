// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Samples is what dcgmi dmon prints: the fields that were asked for, of each
// entity at each time.
type Samples struct {
	Fields []Field  `json:"fields"`
	Rows   []Sample `json:"rows"` // in the order of the output

	at []int // where the columns begin
}

// Field is a column, by the short name that DCGM gives it, such as "POWER".
type Field struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
}

// Sample is a row: by the name of a field a number, a text, or nil where there is
// no value.
type Sample struct {
	Entity string         `json:"entity"` // "GPU 0"
	Values map[string]any `json:"values"`
}

var (
	// monitorHead is the heading; the line below it has the units
	// (DeviceMonitor.cpp of DCGM).
	monitorHead  = lazyregexp.New(`^\s*# ?Entity\s+(\S.*?)\s*$`)
	monitorBegin = lazyregexp.New(`(?m)^\s*# ?Entity\s+\S.*\n\s*I[dD]\b`)
	monitorUnits = lazyregexp.New(`^\s*I[dD](?:\s|$)`)
	monitorRow   = lazyregexp.New(`^\s*((?:(?:GPU|SW) \d+ LINK|GPU(?:-I|-CI)?|Switch|NvSwitch|Link|CPU(?: Core)?|Core|CI|ConnectX) \S+)(?:\s+(\S.*?))?\s*$`)
	numbers      = lazyregexp.New(`^\d\S* +\S`) // of two columns
	word         = lazyregexp.New(`\S+`)
)

// parseMonitor reads dcgmi dmon.
func parseMonitor(data []byte, problems *tool.Problems) Content {
	s := &Samples{Fields: []Field{}, Rows: []Sample{}}
	head := ""
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		m := monitorRow.FindStringSubmatch(line)
		switch {
		case monitorHead.MatchString(line):
			head = line
		case head != "" && monitorUnits.MatchString(line):
			s.heading(n, head, line, problems)
			s.places(head)
			head = ""
		case m != nil && len(s.Fields) > 0:
			s.row(n, m[1], s.cells(line, m[2]), problems)
		}
	}
	if len(s.Rows) == 0 {
		problems.Add(tool.Missing, 0, "a heading and no row")
	}
	return Content{Command: "dmon", Samples: s}
}

// heading takes the names of the fields, and the unit that stands below each.
func (s *Samples) heading(n int, head, units string, problems *tool.Problems) {
	var fields []Field
	names := word.FindAllStringIndex(head, -1)
	for names[0][1] <= strings.Index(head, "Entity") { // "# Entity"
		names = names[1:]
	}
	for _, at := range names[1:] {
		f := Field{Name: head[at[0]:at[1]]}
		for _, u := range word.FindAllStringIndex(units, -1)[1:] {
			if u[0] == at[0] || u[1] == at[1] { // in a column of their own, to its left or its right
				f.Unit = units[u[0]:u[1]]
			}
		}
		fields = append(fields, f)
	}
	switch {
	case len(s.Fields) == 0:
		s.Fields = fields
	case !slices.Equal(s.Fields, fields):
		problems.Add(tool.Inconsistent, n, "from here on there are other fields")
	}
}

// places notes where the columns of a heading begin.
func (s *Samples) places(head string) {
	s.at = s.at[:0]
	for _, w := range word.FindAllStringIndex(head, -1) {
		s.at = append(s.at, w[0])
	}
	s.at = s.at[max(0, len(s.at)-len(s.Fields)):]
}

// cells are the cells of a row. A cell is blank for an entity without that field,
// and a name has blanks, so the columns tell which is which, if each cell begins
// below the name of its field. Else they are the words.
func (s *Samples) cells(line, rest string) []string {
	words := strings.Fields(rest)
	if len(s.at) != len(s.Fields) {
		return words
	}
	var cells []string
	for i, from := range s.at {
		to := len(line)
		if i+1 < len(s.at) {
			to = min(to, s.at[i+1])
		}
		if from >= len(line) {
			break // it ends here
		}
		cell := line[from:to]
		blank := strings.TrimSpace(cell) == ""
		if line[from-1] != ' ' || !blank && (cell[0] == ' ' || numbers.MatchString(cell)) {
			return words
		}
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

func (s *Samples) row(n int, entity string, words []string, problems *tool.Problems) {
	switch {
	case len(words) < len(s.Fields):
		problems.Add(tool.Truncated, n, "%s: the row has %d of %d fields", entity, len(words), len(s.Fields))
	case len(words) > len(s.Fields):
		problems.Add(tool.Inconsistent, n, "%s: the row has %d fields, the heading %d", entity, len(words), len(s.Fields))
		return
	}
	row := Sample{Entity: entity, Values: map[string]any{}}
	for i, f := range s.Fields {
		row.Values[f.Name] = nil
		if i >= len(words) || words[i] == "" || words[i] == "N/A" || words[i] == "-" {
			continue
		}
		row.Values[f.Name] = words[i]
		if v, err := strconv.ParseFloat(words[i], 64); err == nil && v == v && v < 1e18 && v > -1e18 {
			row.Values[f.Name] = v
		}
	}
	s.Rows = append(s.Rows, row)
}

// summary is a line for each entity, with the least and the most of each field.
func (s *Samples) summary() []string {
	var entities []string
	for _, r := range s.Rows {
		if !slices.Contains(entities, r.Entity) {
			entities = append(entities, r.Entity)
		}
	}
	out := []string{fmt.Sprintf("dcgmi dmon: %d rows of %d entities", len(s.Rows), len(entities))}
	for _, e := range entities {
		line := e
		for _, f := range s.Fields {
			var all []float64
			for _, r := range s.Rows {
				if v, ok := r.Values[f.Name].(float64); ok && r.Entity == e {
					all = append(all, v)
				}
			}
			if len(all) > 0 {
				line += strings.TrimRight(fmt.Sprintf(", %s %g to %g %s", f.Name, slices.Min(all), slices.Max(all), f.Unit), " ")
			}
		}
		out = append(out, line)
	}
	return out
}
