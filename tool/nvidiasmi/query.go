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

// Query is the CSV of --query-gpu, --query-remapped-rows, --query-compute-apps
// and their like, with its heading.
type Query struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Column is a field that was asked for.
type Column struct {
	Name string `json:"name"`           // memory.total
	Unit string `json:"unit,omitempty"` // MiB; empty: none, or not printed
}

// Row has, by column, a number, a text, or nil where there is no value.
type Row map[string]any

// errQuery says that there is no heading.
var errQuery = errors.New("no heading of --query-gpu in it")

var (
	// Some names have capitals: vgpu_driver_capability.heterogenous_multivGPU.
	queryField = lazyregexp.New(`^([a-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)(?: \[([^\]]+)\])?$`)
	// prompted is a line of a shell behind the rows.
	prompted = lazyregexp.New(`^(?:\(\S+\) )?\[?[\w.-]+@[\w.-]+[: ][^,]*[#$%>](?: |$)`)
	// banner is a line that a script puts above the next command: no row is below it.
	banner = lazyregexp.New(`^\s*(?:[#=*-]{3,}|# |[$+] )`)
	// wordFields hold text, also where it looks like a number.
	wordFields = lazyregexp.New(`^(?:(?:gpu_)?(?:name|uuid|serial|bus_id)|pci\..*|.*version|inforom\..*|timestamp|pstate|compute_cap|process_name|gpu_part_number|platform\..*serial.*)$`)
)

// knownFields are some fields of every query, one of which makes a heading.
var knownFields = map[string]bool{
	"index": true, "name": true, "gpu_name": true, "uuid": true, "gpu_uuid": true, "serial": true, "gpu_serial": true, "pci.bus_id": true, "gpu_bus_id": true,
	"driver_version": true, "vbios_version": true, "memory.total": true, "memory.used": true, "memory.free": true, "power.draw": true, "power.limit": true,
	"utilization.gpu": true, "temperature.gpu": true, "pstate": true, "ecc.mode.current": true, "pcie.link.gen.current": true, "pcie.link.width.current": true,
	"persistence_mode": true, "compute_mode": true, "mig.mode.current": true, "count": true, "used_gpu_memory": true, "used_memory": true, "gpu_recovery_action": true,
	"clocks.sm": true, "clocks.current.sm": true, "timestamp": true, "pid": true,
}

// parseHeading reads a line of field names; nil if it is none.
func parseHeading(line string) []Column {
	var columns []Column
	known := false
	for f := range strings.SplitSeq(line, ",") {
		m := queryField.FindStringSubmatch(strings.TrimSpace(f))
		if m == nil || m[1] == "gpu" { // amd-smi has a column of that name, nvidia-smi none
			return nil
		}
		known = known || knownFields[m[1]] || strings.HasPrefix(m[1], "remapped_rows.") || strings.HasPrefix(m[1], "ecc.errors.") ||
			strings.HasPrefix(m[1], "clocks_event_reasons") || strings.HasPrefix(m[1], "clocks_throttle_reasons") || strings.HasPrefix(m[1], "retired_pages.")
		columns = append(columns, Column{m[1], m[2]})
	}
	if !known {
		return nil
	}
	return columns
}

func isQuery(b []byte) int {
	sure := 0
	eachLine(b[:min(len(b), 8192)], func(_ int, line string) {
		if sure > 0 {
			return
		}
		switch columns := parseHeading(line); {
		case len(columns) > 1 && strings.ContainsAny(line, "[._"):
			sure = 80
		case len(columns) > 1 && allKnown(columns): // "name,unit" may head any table
			sure = 60
		case len(columns) == 1 && strings.ContainsAny(line, "._"):
			sure = 50
		}
	})
	return sure
}

// allKnown reports whether every column is a field of nvidia-smi.
func allKnown(columns []Column) bool {
	return !slices.ContainsFunc(columns, func(c Column) bool { return !knownFields[c.Name] })
}

// ParseQuery reads CSV with its heading, as --format=csv prints it.
func ParseQuery(b []byte) (Query, tool.Problems, error) {
	var q Query
	var p tool.Problems
	ended := false
	eachLine(b, func(n int, line string) {
		switch {
		case strings.TrimSpace(line) == "":
		case q.Columns == nil:
			if q.Columns = parseHeading(line); q.Columns == nil {
				noteComplaint(n, line, &p)
			}
		case parseHeading(line) != nil:
			ended = false
		case ended || banner.MatchString(line):
			ended = true
		case tool.IsElision(line):
			p.Add(tool.Truncated, n, "lines are left out here")
		case prompted.MatchString(line) || noteComplaint(n, line, &p):
		default:
			q.row(n, line, &p)
		}
	})
	if q.Columns == nil {
		return Query{}, p, errQuery
	}
	if len(q.Rows) == 0 && !q.optional() {
		p.Add(tool.Missing, 0, "a heading and no row")
	}
	return q, p, nil
}

// optional reports whether no row is an answer: a node may have no process, and
// no page of memory that was retired.
func (q Query) optional() bool {
	for _, c := range q.Columns {
		if c.Name == "pid" || c.Name == "vgpu_instance" || strings.HasPrefix(c.Name, "retired_pages.address") || strings.HasPrefix(c.Name, "retired_pages.cause") {
			return true
		}
	}
	return false
}

// row reads one line below the heading.
func (q *Query) row(n int, line string, p *tool.Problems) {
	cells := strings.Split(line, ",")
	switch {
	case len(cells) < len(q.Columns):
		p.Add(tool.Truncated, n, "the row has %d of %d columns", len(cells), len(q.Columns))
	case len(cells) > len(q.Columns):
		p.Add(tool.Inconsistent, n, "the row has %d columns, the heading %d", len(cells), len(q.Columns))
		return
	}
	row := Row{}
	for i, c := range q.Columns {
		row[c.Name] = nil
		if i >= len(cells) {
			continue
		}
		if broken[strings.ToLower(trimCell(cells[i]))] {
			p.Add(tool.Failed, n, "%s: %s", c.Name, trimCell(cells[i]))
		}
		row[c.Name] = parseCell(c, cells[i])
	}
	q.Rows = append(q.Rows, row)
}

// parseCell returns a value as a number where it is one, with or without its unit.
func parseCell(c Column, s string) any {
	v, ok := readValue(s)
	if !ok {
		return nil
	}
	if wordFields.MatchString(c.Name) {
		return v
	}
	if f, err := parseNumber(strings.TrimSuffix(v, " "+c.Unit)); err == nil && f != nil && (c.Unit != "" || !strings.Contains(v, " ")) {
		return *f
	}
	return v
}

// Text is what a row says in a column; empty where it says nothing.
func (r Row) Text(column string) string {
	switch v := r[column].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Number is the number in a column, and whether there is one.
func (r Row) Number(column string) (float64, bool) {
	v, ok := r[column].(float64)
	return v, ok
}

// Summary is the heading and one line for each row.
func (q Query) Summary() []string {
	var names []string
	for _, c := range q.Columns {
		names = append(names, c.Name)
	}
	out := []string{fmt.Sprintf("%d rows of %s", len(q.Rows), strings.Join(names, ", "))}
	for _, r := range q.Rows {
		var words []string
		for _, c := range q.Columns {
			words = append(words, textOr(strings.TrimSpace(r.Text(c.Name)+" "+c.Unit), "-"))
		}
		out = append(out, strings.Join(words, ", "))
	}
	return out
}
