// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Monitor is what nvidia-smi dmon and pmon print: a line for each GPU, or for each
// process, at each time.
type Monitor struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"` // in the order of the output
}

// errMonitor says that there is no heading.
var errMonitor = errors.New("no heading of nvidia-smi dmon in it")

var (
	// monitorHeading is the first line of the heading, which stands again above
	// every screenful; with -o D or T there is a time on the left.
	monitorHeading = lazyregexp.New(`^\s*#\s*((?:Date\s+)?(?:Time\s+)?gpu\s+\S.*)$`)
	monitorUnits   = lazyregexp.New(`^\s*#\s*((?:YYYYMMDD\s+)?(?:HH:MM:SS\s+)?Idx\s+\S.*)$`)
	monitorBegins  = lazyregexp.New(`(?m)^\s*#\s*(?:Date\s+)?(?:Time\s+)?gpu\s+\S.*\n\s*#\s*(?:YYYYMMDD\s+)?(?:HH:MM:SS\s+)?Idx\s`)
	monitorRow     = lazyregexp.New(`^\s*(?:\d{8}\s+)?(?:\d\d:\d\d:\d\d\s+)?\d+\s+\S`)
	unsupported    = lazyregexp.New(`(?i)^not supported on the device|^failed to process command line`)
)

func isMonitor(b []byte) int {
	if monitorBegins.Match(b) {
		return 90
	}
	return 0
}

// ParseMonitor reads nvidia-smi dmon and pmon.
func ParseMonitor(b []byte) (Monitor, tool.Problems, error) {
	m := Monitor{Rows: []Row{}}
	var p tool.Problems
	var names []string
	eachLine(b, func(n int, line string) {
		switch head := monitorHeading.FindStringSubmatch(line); {
		case head != nil:
			names = strings.Fields(head[1])
		case names != nil && monitorUnits.MatchString(line):
			m.heading(n, names, strings.Fields(monitorUnits.FindStringSubmatch(line)[1]), &p)
			names = nil
		case m.Columns != nil && monitorRow.MatchString(line):
			m.row(n, line, &p)
		case unsupported.MatchString(strings.TrimSpace(line)):
			p.Add(tool.Failed, n, "nvidia-smi says: %s", strings.TrimSpace(line))
		default:
			noteComplaint(n, line, &p)
		}
	})
	if m.Columns == nil {
		return Monitor{}, p, errMonitor
	}
	if len(m.Rows) == 0 {
		p.Add(tool.Missing, 0, "a heading and no row")
	}
	return m, p, nil
}

// heading takes the names and the units of the columns.
func (m *Monitor) heading(n int, names, units []string, p *tool.Problems) {
	if len(names) != len(units) {
		p.Add(tool.Truncated, n, "the heading has %d names and %d units", len(names), len(units))
	}
	var columns []Column
	for i, name := range names {
		c := Column{Name: name}
		if i < len(units) && !slices.Contains([]string{"Idx", "#", "C/G", "name", "YYYYMMDD", "HH:MM:SS"}, units[i]) {
			c.Unit = units[i]
		}
		columns = append(columns, c)
	}
	switch {
	case m.Columns == nil:
		m.Columns = columns
	case !slices.Equal(m.Columns, columns):
		p.Add(tool.Inconsistent, n, "from here on there are other columns")
	}
}

// row reads one line below the heading. The name of a process may have blanks.
func (m *Monitor) row(n int, line string, p *tool.Problems) {
	words := strings.Fields(line)
	last := len(m.Columns) - 1
	if len(words) > len(m.Columns) && m.Columns[last].Name == "command" {
		words = append(words[:last:last], strings.Join(words[last:], " "))
	}
	if len(words) < len(m.Columns) {
		p.Add(tool.Truncated, n, "the row has %d of %d columns", len(words), len(m.Columns))
	} else if len(words) > len(m.Columns) {
		p.Add(tool.Inconsistent, n, "the row has %d columns, the heading %d", len(words), len(m.Columns))
		return
	}
	row := Row{}
	for i, c := range m.Columns {
		row[c.Name] = nil
		if i >= len(words) || words[i] == "-" {
			continue
		}
		if broken[strings.ToLower(trimCell(words[i]))] {
			p.Add(tool.Failed, n, "%s: %s", c.Name, words[i])
		}
		row[c.Name] = parseCell(c, words[i])
		if c.Name == "command" || c.Name == "type" || c.Name == "Date" || c.Name == "Time" {
			row[c.Name] = words[i]
		}
	}
	m.Rows = append(m.Rows, row)
}

// Summary is a line for each GPU: of every number that changes or says something,
// the least and the most.
func (m Monitor) Summary() []string {
	byGPU := map[string][]Row{}
	var gpus []string
	for _, r := range m.Rows {
		gpu := r.Text("gpu")
		if byGPU[gpu] == nil {
			gpus = append(gpus, gpu)
		}
		byGPU[gpu] = append(byGPU[gpu], r)
	}
	out := []string{fmt.Sprintf("%d rows of %d GPUs", len(m.Rows), len(gpus))}
	for _, gpu := range gpus {
		var parts []string
		for _, c := range m.Columns {
			if s := formatSpread(c, byGPU[gpu]); s != "" {
				parts = append(parts, s)
			}
		}
		out = append(out, strings.Join(append([]string{"GPU " + gpu}, parts...), ", "))
	}
	return out
}

// formatSpread returns the least and the most of a column; empty where there is no number but 0.
func formatSpread(c Column, rows []Row) string {
	least, most, seen := 0.0, 0.0, false
	for _, r := range rows {
		v, ok := r.Number(c.Name)
		if !ok || c.Name == "gpu" || c.Name == "pid" {
			continue
		}
		if !seen {
			least, most, seen = v, v, true
		}
		least, most = min(least, v), max(most, v)
	}
	switch {
	case !seen || most == 0 && least == 0:
		return ""
	case least == most:
		return strings.TrimSpace(fmt.Sprintf("%s %g %s", c.Name, most, c.Unit))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %g to %g %s", c.Name, least, most, c.Unit))
}
