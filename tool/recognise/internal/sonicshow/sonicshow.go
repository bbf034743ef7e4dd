// SPDX-License-Identifier: Apache-2.0

// Package sonicshow reads what the show command of SONiC prints of ports: interfaces
// status, description, counters, counters fec-stats, transceiver presence, error-status,
// eeprom and status, lldp table, pfc counters, queue counters and watermarks,
// priority-group drop counters and watermarks. Source: sonic-net/sonic-utilities, whose
// tests have an output of each; most are tables of python-tabulate.
package sonicshow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "sonic-show"

// Report is the content: the tables and modules of one or several commands.
type Report struct {
	Tables  []Table  `json:"tables"`
	Modules []Module `json:"modules,omitempty"`
}

// Table is a table as it was printed.
type Table struct {
	Command string     `json:"command"` // behind show: "interfaces status"
	Title   string     `json:"title,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"` // each as long as columns; empty where the cell is

	lines []int // of the rows
	total int   // that the line below the table counts; -1: none
	kind  *kind
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case heading.Match(data):
			return 92
		case module.Match(data), status.Match(data):
			return 90
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

// kind is a command whose output is a table.
type kind struct {
	command string
	first   []string // the first columns
	title   string   // that stands above it begins so
	judge   func(*reader, *Table)
}

// kinds are the tables that are known. A title decides between tables of equal columns.
var kinds = []kind{
	{"interfaces status", []string{"Interface", "Lanes", "Speed"}, "", judgeStatus},
	{"interfaces description", []string{"Interface", "Oper", "Admin", "Alias"}, "", judgeStatus},
	{"interfaces counters fec-stats", []string{"IFACE", "STATE", "FEC_CORR"}, "", judgeFEC},
	{"interfaces counters", []string{"IFACE", "STATE", "RX_OK"}, "", judgeCounters},
	{"interfaces transceiver presence", []string{"Port", "Presence"}, "", nil},
	{"interfaces transceiver error-status", []string{"Port", "Error Status"}, "", judgeModules},
	{"lldp table", []string{"LocalPort", "RemoteDevice", "RemotePortID"}, "", judgeNeighbors},
	{"pfc counters", []string{"Port Rx", "PFC0"}, "", nil},
	{"pfc counters", []string{"Port Tx", "PFC0"}, "", nil},
	{"queue counters", []string{"Port", "TxQ"}, "", judgeQueues},
	{"priority-group drop counters", []string{"Port", "PG0"}, "Ingress PG dropped packets", judgeDrops},
	{"priority-group watermark", []string{"Port", "PG0"}, "", nil},
	{"queue watermark", []string{"Port", "UC0"}, "", nil},
	{"queue watermark", []string{"Port", "MC"}, "", nil},
	{"queue watermark", []string{"Port", "ALL"}, "", nil},
}

// mostShown is how many problems of a sort are written out.
const mostShown = 10

var (
	heading = lazyregexp.New(`(?m)^[ \t]*(?:Interface {2,}(?:Lanes {2,}Speed|Oper {2,}Admin)|IFACE {2,}STATE {2,}(?:RX_OK|FEC_CORR)|Port {2,}(?:Presence|Error Status|TxQ {2,}Counter/pkts|PG0 |UC0 |MC\d+ |ALL\d+ )|Port [RT]x {2,}PFC0|LocalPort {2,}RemoteDevice {2,}RemotePortID)`)
	dashes  = lazyregexp.New(`^-{2,}(?: {2,}-{2,})+$`)
	gap     = lazyregexp.New(` {2,}`)
	total   = lazyregexp.New(`^Total entries displayed: +(\d+)$`)
	closing = lazyregexp.New(`^-{20,}$`)
	heads   = lazyregexp.New(`^(?:Ingress|Egress) \w.*:$`) // of tables with the same columns
	remark  = lazyregexp.New(`^(?:Reminder:|The rates are|Last cached time|Running command:|Command:|Capability codes:|For namespace)`)
	// port begins a row. A prompt below a table does not look so.
	port = lazyregexp.New(`^[A-Za-z][\w./-]*(?: |$)`)
)

// Parse reads the tables. Ports that are down although they are enabled, errors, drops and
// modules with an alarm are problems.
func Parse(data []byte) (*Report, tool.Problems, error) {
	r := reader{report: Report{Tables: []Table{}}, few: ibdiags.Few{Limit: mostShown}}
	r.lines = strings.Split(string(data), "\n")
	for r.at = 0; r.at < len(r.lines); r.at++ {
		r.read(strings.TrimSpace(r.lines[r.at]))
	}
	if len(r.report.Tables) == 0 && len(r.report.Modules) == 0 {
		return nil, nil, errors.New("it has no table of SONiC's show")
	}
	r.finish()
	return &r.report, r.problems, nil
}

type reader struct {
	report   Report
	problems tool.Problems
	few      ibdiags.Few
	lines    []string
	at       int // index of the line
	title    string
	table    *Table // that is read; nil: none
	widths   []int  // of its columns
	module   *Module
	section  string // of its values
}

func (r *reader) read(text string) {
	if m := total.FindStringSubmatch(text); m != nil && len(r.report.Tables) > 0 {
		t := &r.report.Tables[len(r.report.Tables)-1]
		t.total = int(countOf(m[1]))
		r.table = nil
		return
	}
	switch {
	case text == "", closing.MatchString(text), remark.MatchString(text):
		if text != "" || r.table != nil && len(r.table.Rows) > 0 {
			r.table = nil
		}
	case r.heading(text):
	case r.table != nil && port.MatchString(text):
		r.row(text)
	case r.readModule(text):
	case heads.MatchString(text):
		r.title = text
	}
}

// heading reads the names of the columns, below which a line of dashes gives their widths.
func (r *reader) heading(text string) bool {
	if !heading.MatchString(text) || r.at+1 >= len(r.lines) {
		return false
	}
	rule := strings.TrimSpace(r.lines[r.at+1])
	if !dashes.MatchString(rule) {
		return false
	}
	t := Table{Columns: gap.Split(text, -1), Rows: [][]string{}, total: -1}
	for i, k := range kinds {
		if fits(t.Columns, k.first) && strings.HasPrefix(r.title, k.title) {
			t.kind, t.Command = &kinds[i], k.command
			break
		}
	}
	r.widths = nil
	for _, d := range gap.Split(rule, -1) {
		r.widths = append(r.widths, len(d))
	}
	if t.kind == nil || len(r.widths) != len(t.Columns) {
		return false
	}
	t.Title, r.title = strings.TrimSuffix(r.title, ":"), ""
	r.report.Tables = append(r.report.Tables, t)
	r.table, r.module = &r.report.Tables[len(r.report.Tables)-1], nil
	r.at++
	return true
}

func fits(columns, first []string) bool {
	if len(columns) < len(first) {
		return false
	}
	for i, f := range first {
		if columns[i] != f && (i == 0 || len(f) > 3 || !strings.HasPrefix(columns[i], f)) { // MC and ALL count from other numbers
			return false
		}
	}
	return true
}

// row reads a row. Columns are two blanks apart; where a cell is empty, or has two blanks
// itself, the widths decide.
func (r *reader) row(text string) {
	t := r.table
	cells := gap.Split(text, -1)
	if len(cells) != len(t.Columns) {
		cells = cutAt(strings.TrimRight(r.lines[r.at], " \t\r"), r.widths)
	}
	if len(cells) < len(t.Columns) {
		if t.Command != "lldp table" || len(cells) < 3 { // of a neighbour, capability and description may be empty
			r.few.Add(&r.problems, "rows that end before their end", tool.Truncated, r.at+1, "The row %q has %d of %d columns.", cells[0], len(cells), len(t.Columns))
			return
		}
		cells = append(cells, make([]string, len(t.Columns)-len(cells))...)
	}
	t.Rows, t.lines = append(t.Rows, cells[:len(t.Columns)]), append(t.lines, r.at+1)
}

// cutAt cuts a line at columns of these widths, two blanks apart.
func cutAt(line string, widths []int) (cells []string) {
	runes := []rune(line)
	at := 0
	for i, w := range widths {
		if at >= len(runes) {
			break
		}
		end := min(at+w, len(runes))
		if i == len(widths)-1 {
			end = len(runes)
		}
		cells = append(cells, strings.TrimSpace(string(runes[at:end])))
		at = end + 2
	}
	return cells
}

// finish judges what was read.
func (r *reader) finish() {
	last := len(r.lines) - 1
	if text := strings.TrimSpace(r.lines[last]); text != "" && r.table != nil && !total.MatchString(text) {
		r.few.Add(&r.problems, "last lines", tool.Truncated, last+1, "The output ends within its last line.")
	}
	for i := range r.report.Tables {
		t := &r.report.Tables[i]
		if len(t.Rows) == 0 && t.Command != "lldp table" {
			r.few.Add(&r.problems, "tables without rows", tool.Truncated, 0, "The table of show %s has no row.", t.Command)
		}
		if t.kind.judge != nil {
			t.kind.judge(r, t)
		}
	}
	for i := range r.report.Modules {
		r.judgeModule(&r.report.Modules[i])
	}
	r.few.Rest(&r.problems)
}

// each calls a function with the cells of each row, by column.
func (t *Table) each(f func(line int, cell func(column string) string)) {
	for i, row := range t.Rows {
		f(t.lines[i], func(column string) string {
			for j, c := range t.Columns {
				if c == column {
					return row[j]
				}
			}
			return ""
		})
	}
}

// Summary has a line for each command, with what stands out.
func (r *Report) Summary() []string {
	var lines []string
	for i := range r.Tables {
		t := &r.Tables[i]
		if n := len(lines); n > 0 && i > 0 && t.Command == r.Tables[i-1].Command && t.Title == r.Tables[i-1].Title && t.Command == "queue counters" {
			continue
		}
		name := t.Command
		if t.Title != "" {
			name += ", " + t.Title
		}
		lines = append(lines, fmt.Sprintf("show %s: %d rows%s", name, len(t.Rows), t.note()))
	}
	for _, m := range r.Modules {
		lines = append(lines, m.summary())
	}
	return lines
}
