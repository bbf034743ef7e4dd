// SPDX-License-Identifier: Apache-2.0

package ibdiagnet

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Database is what ibdiagnet2.db_csv has: sections of rows. Of the sections that are
// judged the rows are kept, of the others their number.
type Database struct {
	Rows     map[string]int `json:"rows"` // by section
	Nodes    []Node         `json:"nodes"`
	Links    []Link         `json:"links"`
	Managers []Manager      `json:"managers,omitempty"`
	Counters []Counters     `json:"counters,omitempty"` // of ports that counted an error
}

// Node is a switch or a host adapter.
type Node struct {
	GUID   string `json:"guid"`
	Name   string `json:"name"`
	Switch bool   `json:"switch"`
}

// Link is a cable, by its ends.
type Link struct {
	Ends [2]End `json:"ends"`
}

// End is a port.
type End struct {
	GUID string `json:"guid"` // of the node
	Port int    `json:"port"`
}

// Manager is a subnet manager.
type Manager struct {
	GUID     string `json:"guid"`
	State    int    `json:"state"` // 2 standby, 3 master
	Priority int    `json:"priority"`
}

// Counters are the errors that a port counted.
type Counters struct {
	End
	Errors map[string]uint64 `json:"errors"`
}

var (
	start   = lazyregexp.New(`(?m)^[ \t]*START_([A-Z][A-Z0-9_]*)[ \t]*\r?$`)
	end     = lazyregexp.New(`^END_([A-Z][A-Z0-9_]*)$`)
	columns = lazyregexp.New(`(?mi)^[ \t]*(?:NodeDesc,|NodeGUID,|NodeGuid1,|Scope,|NodeType,|SwitchGUID,)`)
)

// Values of LinkWidthActv, and bits of LinkWidthSup (IBTA, PortInfo).
const (
	width1x = 1
	width4x = 2
)

// counterNames are the counters of errors in PM_INFO; a name with Ext or Extended behind it
// is the same in 64 bits.
var counterNames = []string{
	"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortXmitDiscards", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors",
}

// ParseDatabase reads the file. Links whose ends differ or that are narrow, adapters
// whose port is not active, errors of the run and managers that do not agree are problems.
func ParseDatabase(data []byte) (*Database, tool.Problems, error) {
	r := dbReader{
		db:  Database{Rows: map[string]int{}, Nodes: []Node{}, Links: []Link{}},
		few: ibdiags.Few{Limit: mostShown}, node: map[string]int{}, ports: map[End]portRow{},
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.db.Rows) == 0 {
		return nil, nil, errors.New("it has no section of ibdiagnet")
	}
	r.finish()
	return &r.db, r.problems, nil
}

// portRow is what is judged of a row of PORTS; -1: not there.
type portRow struct{ line, width, supported, speed, state int }

type dbReader struct {
	db       Database
	problems tool.Problems
	few      ibdiags.Few
	line     int
	section  string
	begun    int // its line
	header   []string
	node     map[string]int // index by GUID
	ports    map[End]portRow
}

func (r *dbReader) read(text string) {
	if m := start.FindStringSubmatch(text); m != nil {
		r.closeSection()
		r.section, r.begun, r.header = m[1], r.line, nil
		r.db.Rows[r.section] += 0
		return
	}
	if m := end.FindStringSubmatch(text); m != nil && m[1] == r.section {
		r.section = ""
		return
	}
	if text == "" || r.section == "" {
		return
	}
	c := csv.NewReader(strings.NewReader(text))
	c.LazyQuotes, c.FieldsPerRecord = true, -1
	cells, err := c.Read()
	switch {
	case err != nil:
		r.few.Add(&r.problems, "rows that are no CSV", tool.Truncated, r.line, "This row of %s is no CSV: %v.", r.section, err)
	case r.header == nil:
		r.header = cells
	case len(cells) < len(r.header):
		r.few.Add(&r.problems, "rows that end before their end", tool.Truncated, r.line, "This row of %s has %d of %d columns.", r.section, len(cells), len(r.header))
	default:
		r.db.Rows[r.section]++
		r.row(cells)
	}
}

func (r *dbReader) closeSection() {
	if r.section != "" {
		r.few.Add(&r.problems, "sections without an end", tool.Truncated, r.begun, "The line END_%s is not there.", r.section)
	}
}

// row takes a row of a section that is judged.
func (r *dbReader) row(cells []string) {
	cell := func(name string) string {
		for i, h := range r.header {
			if strings.EqualFold(h, name) {
				return strings.TrimSpace(cells[i])
			}
		}
		return ""
	}
	number := func(name string) int {
		n, err := strconv.ParseInt(cell(name), 0, 32)
		if err != nil {
			return -1
		}
		return int(n)
	}
	switch {
	case r.section == "NODES":
		n := Node{cell("NodeGUID"), cell("NodeDesc"), cell("NodeType") == "2"}
		r.node[n.GUID] = len(r.db.Nodes)
		r.db.Nodes = append(r.db.Nodes, n)
	case r.section == "PORTS":
		r.ports[End{cell("NodeGuid"), number("PortNum")}] = portRow{r.line, number("LinkWidthActv"), number("LinkWidthSup"), number("LinkSpeedActv"), number("PortState")}
	case r.section == "LINKS":
		r.db.Links = append(r.db.Links, Link{[2]End{{cell("NodeGuid1"), number("PortNum1")}, {cell("NodeGuid2"), number("PortNum2")}}})
	case r.section == "SM_INFO":
		r.db.Managers = append(r.db.Managers, Manager{cell("PortGUID"), number("SmState"), number("Priority")})
	case r.section == "PM_INFO":
		r.counters(End{cell("NodeGUID"), number("PortNumber")}, cell)
	case strings.HasPrefix(r.section, "ERRORS_"):
		text := cell("Summary")
		if text == "" {
			text = strings.Join(cells, ", ")
		}
		r.few.Add(&r.problems, "errors in "+r.section, tool.Failed, r.line, "ibdiagnet says: %s", text)
	}
}

// counters keeps the errors of a port.
func (r *dbReader) counters(at End, cell func(string) string) {
	found := map[string]uint64{}
	for _, name := range counterNames {
		for _, suffix := range []string{"", "Ext", "Extended"} {
			if n, err := strconv.ParseUint(cell(name+suffix), 0, 64); err == nil && n > found[name] {
				found[name] = n
			}
		}
	}
	if len(found) > 0 {
		r.db.Counters = append(r.db.Counters, Counters{at, found})
	}
}

// finish judges what was read.
func (r *dbReader) finish() {
	r.closeSection()
	for _, at := range slices.SortedFunc(maps.Keys(r.ports), func(a, b End) int { return r.ports[a].line - r.ports[b].line }) {
		p := r.ports[at]
		if i, ok := r.node[at.GUID]; ok && !r.db.Nodes[i].Switch && p.state >= 0 && p.state != 4 { // 4: active (IBTA, PortInfo)
			r.few.Add(&r.problems, "adapters whose port is not active", tool.Failed, p.line, "%s is not active: its state is %d.", r.name(at), p.state)
		}
	}
	for _, l := range r.db.Links {
		r.link(l)
	}
	r.few.Rest(&r.problems)
	masters := 0
	for _, m := range r.db.Managers {
		if m.State == 3 {
			masters++
		}
	}
	if len(r.db.Managers) > 0 && masters != 1 {
		r.problems.Add(tool.Inconsistent, 0, "%d of %d subnet managers are master.", masters, len(r.db.Managers))
	}
}

// link compares the ends of a cable.
func (r *dbReader) link(l Link) {
	a, okA := r.ports[l.Ends[0]]
	b, okB := r.ports[l.Ends[1]]
	if !okA || !okB {
		return
	}
	ends := r.name(l.Ends[0]) + " and " + r.name(l.Ends[1])
	switch {
	case a.width != b.width || a.speed != b.speed:
		r.few.Add(&r.problems, "links whose ends differ", tool.Inconsistent, a.line, "The ends of the link between %s have widths %d and %d, and speeds %d and %d.", ends, a.width, b.width, a.speed, b.speed)
	case a.width == width1x && a.supported > 0 && b.supported > 0 && a.supported&b.supported&width4x != 0:
		r.few.Add(&r.problems, "links that are narrow", tool.Failed, a.line, "The link between %s runs at 1x, and both ends support 4x.", ends)
	}
}

// name says which port an end is.
func (r *dbReader) name(e End) string {
	node := e.GUID
	if i, ok := r.node[e.GUID]; ok && r.db.Nodes[i].Name != "" {
		node = r.db.Nodes[i].Name
	}
	return fmt.Sprintf("port %d of %s", e.Port, node)
}

// Summary counts the sections, and names ports with errors, at most twenty.
func (d *Database) Summary() []string {
	switches := 0
	for _, n := range d.Nodes {
		if n.Switch {
			switches++
		}
	}
	lines := []string{fmt.Sprintf("%d sections: %d nodes, %d of them switches; %d ports, %d links; %d ports have counted errors", len(d.Rows), len(d.Nodes), switches, d.Rows["PORTS"], len(d.Links), len(d.Counters))}
	for i, c := range d.Counters {
		if i == 20 {
			return append(lines, fmt.Sprintf("and %d more", len(d.Counters)-i))
		}
		var list []string
		for _, name := range slices.Sorted(maps.Keys(c.Errors)) {
			list = append(list, fmt.Sprintf("%s %d", name, c.Errors[name]))
		}
		lines = append(lines, fmt.Sprintf("%s port %d: %s", c.GUID, c.Port, strings.Join(list, ", ")))
	}
	return lines
}
