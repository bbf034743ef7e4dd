// SPDX-License-Identifier: Apache-2.0

// Package ibqueryerrors reads what ibqueryerrors prints: the error counters of a
// subnet's ports that are beyond a threshold, or with --data their traffic.
// Source: the manual page ibqueryerrors(8) and infiniband-diags/ibqueryerrors.c of
// rdma-core.
package ibqueryerrors

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
	"github.com/ironrail/ironrail/tool/recognise/internal/iblinkinfo"
)

// Name is the kind's name.
const Name = "ibqueryerrors"

// AllPorts is the port of a switch's counters over all of its ports, as in
// perfquery.
const AllPorts = 255

// Report is the content.
type Report struct {
	Nodes   []Node   `json:"nodes"`   // that have something to report
	Checked *Checked `json:"summary"` // null: not in the output
}

// Node is a node with what was counted at its ports.
type Node struct {
	GUID  addr.GUID `json:"guid,omitzero"` // of a switch, and with --data of any
	Name  string    `json:"name"`
	Data  bool      `json:"data,omitempty"` // traffic is counted, not errors
	Ports []Port    `json:"ports"`
}

// Port is one port's counters. Those of 16 bits and fewer stop at their greatest
// value.
type Port struct {
	GUID     addr.GUID         `json:"guid"`
	Port     int               `json:"port"`           // AllPorts: the sum over a switch
	Counters map[string]uint64 `json:"counters"`       // by the names of perfquery
	Link     *iblinkinfo.Port  `json:"link,omitempty"` // with --report-port
	line     int
}

// Checked is the summary, the last lines.
type Checked struct {
	Nodes      int      `json:"nodes_checked"`
	BadNodes   int      `json:"bad_nodes"`
	Ports      int      `json:"ports_checked"`
	BadPorts   int      `json:"bad_ports"`
	Failures   int      `json:"query_failures"`
	Suppressed []string `json:"suppressed"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if nodeLine.Match(data) && portLine.Match(data) || checked.Match(data) && badPorts.Match(data) && !script.Match(data) {
			return 95
		}
		return ibdiags.FailureOf(Name, data)
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	nodeLine = lazyregexp.New(`(?m)^[ \t]*(Errors|Data Counters) for (?:(0x[0-9a-fA-F]+) )?"(.*)"[ \t]*\r?$`)
	portLine = lazyregexp.New(`(?m)^[ \t]*GUID (0x[0-9a-fA-F]+) port ([0-9]+|ALL):(.*)$`)
	counter  = lazyregexp.New(`\[([A-Za-z0-9_]+) == ([0-9]+)(?: \([^)\]]*\))?\]`)
	checked  = lazyregexp.New(`(?m)^[ \t]*## Summary: ([0-9]+) nodes checked, ([0-9]+) bad nodes found[ \t]*\r?$`)
	badPorts = lazyregexp.New(`(?m)^[ \t]*##[ \t]+([0-9]+) ports checked, ([0-9]+) ports have errors beyond threshold[ \t]*\r?$`)
	failures = lazyregexp.New(`^##[ \t]+([0-9]+) PMA query failures$`)
	withheld = lazyregexp.New(`^## Suppressed:(.*)$`)
	// script is what ibcheckerrors writes, whose summary is the same.
	script = lazyregexp.New(`(?m)^[ \t]*(?:#warn: counter|Error check on lid|# Check)`)
)

// maxSame is how many problems of one sort are written out.
const maxSame = 20

// reader collects nodes line by line.
type reader struct {
	report   Report
	problems tool.Problems
	few      ibdiags.Few
	line     int
	failed   bool
	old      bool // of an old version: other names of counters, what is suppressed first, and no summary
}

// oldNames are how old versions, of OFED 1.x, call counters: they have no summary.
var oldNames = lazyregexp.New(`\[(?:SymbolErrors|LinkRecovers|LinkDowned|RcvErrors|RcvRemotePhysErrors|RcvSwRelayErrors|XmtDiscards|(?:Xmt|Rcv)ConstraintErrors|LinkIntegrityErrors|ExcBufOverrunErrors|Xmt(?:Data|Pkts|Wait)|Rcv(?:Data|Pkts)) == |^Suppressing:`)

// Parse reads the whole output. Its time and memory grow with the input.
func Parse(data []byte) (*Report, tool.Problems, error) {
	r := reader{report: Report{Nodes: []Node{}}, few: ibdiags.Few{Limit: maxSame}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.report.Nodes) == 0 && r.report.Checked == nil && !r.failed {
		return nil, nil, errors.New("it has no port, no summary and no failure of ibqueryerrors")
	}
	r.finish()
	return &r.report, r.problems, nil
}

func (r *reader) read(text string) {
	r.old = r.old || oldNames.MatchString(text)
	switch {
	case text == "" || ibdiags.IsWarning(text):
	case ibdiags.IsFailure(text):
		r.failed = true
		r.few.Add(&r.problems, "lines in which a program says that it failed", tool.Failed, r.line, "ibqueryerrors or a library of it failed: %s", text)
	case strings.HasPrefix(text, "##"):
		r.summary(text)
	case nodeLine.MatchString(text):
		m := nodeLine.FindStringSubmatch(text)
		guid, _ := ibdiags.ParseGUID(m[2])
		r.report.Nodes = append(r.report.Nodes, Node{GUID: guid, Name: m[3], Data: m[1] != "Errors", Ports: []Port{}})
	case strings.HasPrefix(text, "GUID 0x"):
		r.port(text)
	case strings.HasPrefix(text, "Link info:"):
		r.link(strings.TrimPrefix(text, "Link info:"))
	}
}

// port reads a line such as
//
//	GUID 0x2c903006e29b0 port 5: [SymbolErrorCounter == 65535] [PortXmitData == 198 (1.2GB)]
func (r *reader) port(text string) {
	m := portLine.FindStringSubmatch(text)
	if m == nil || len(r.report.Nodes) == 0 {
		r.few.Add(&r.problems, "lines of ports without a part", tool.Truncated, r.line, "The line of a port ends before its counters, or no node is before it.")
		return
	}
	guid, err := ibdiags.ParseGUID(m[1])
	if err != nil {
		r.few.Add(&r.problems, "GUIDs that are none", tool.Inconsistent, r.line, "%s.", err)
	}
	p := Port{GUID: guid, Port: AllPorts, Counters: map[string]uint64{}, line: r.line}
	if m[2] != "ALL" {
		p.Port, _ = strconv.Atoi(m[2])
	}
	for _, c := range counter.FindAllStringSubmatch(m[3], -1) {
		n, err := strconv.ParseUint(c[2], 10, 64)
		if _, again := p.Counters[c[1]]; again || err != nil {
			r.few.Add(&r.problems, "counters that are there twice or too large", tool.Inconsistent, r.line, "%s is there twice, or more than 64 bits hold.", c[1])
		}
		p.Counters[c[1]] = n
	}
	if rest := strings.TrimSpace(counter.ReplaceAllString(m[3], "")); rest != "" || len(p.Counters) == 0 {
		r.few.Add(&r.problems, "lines that end before their end", tool.Truncated, r.line, "The line of port %s ends within a counter.", m[2])
	}
	n := &r.report.Nodes[len(r.report.Nodes)-1]
	n.Ports = append(n.Ports, p)
}

// link reads what --report-port says below a port.
func (r *reader) link(text string) {
	if len(r.report.Nodes) == 0 || len(r.report.Nodes[len(r.report.Nodes)-1].Ports) == 0 {
		return
	}
	n := &r.report.Nodes[len(r.report.Nodes)-1]
	l, ok := iblinkinfo.Line(text)
	if !ok {
		r.few.Add(&r.problems, "links that end before their end", tool.Truncated, r.line, "The line of a link ends before its end.")
		return
	}
	l.Node.Name, l.Node.GUID = n.Name, n.GUID
	n.Ports[len(n.Ports)-1].Link = &l
}

// summary reads the last lines.
func (r *reader) summary(text string) {
	s := r.report.Checked
	if m := checked.FindStringSubmatch(text); m != nil {
		if s != nil {
			r.few.Add(&r.problems, "summaries", tool.Inconsistent, r.line, "A second summary: two outputs are in one file.")
			return
		}
		r.report.Checked = &Checked{Nodes: parseNumber(m[1]), BadNodes: parseNumber(m[2]), Suppressed: []string{}}
		return
	}
	if s == nil {
		return
	}
	if m := badPorts.FindStringSubmatch(text); m != nil {
		s.Ports, s.BadPorts = parseNumber(m[1]), parseNumber(m[2])
	} else if m := failures.FindStringSubmatch(text); m != nil {
		s.Failures = parseNumber(m[1])
		r.few.Add(&r.problems, "failed queries", tool.Failed, r.line, "%d queries of counters failed: those ports are not in the output.", s.Failures)
	} else if m := withheld.FindStringSubmatch(text); m != nil && len(s.Suppressed) == 0 {
		s.Suppressed = append(s.Suppressed, strings.Fields(m[1])...)
	}
}

// finish compares the summary with what stands above it.
func (r *reader) finish() {
	r.few.Rest(&r.problems)
	s := r.report.Checked
	if s == nil {
		if !r.failed && !r.old {
			r.problems.Add(tool.Truncated, 0, "The summary, which comes last, is not there.")
		}
		return
	}
	nodes, ports := 0, 0
	for _, n := range r.report.Nodes {
		if n.Data {
			continue
		}
		nodes++
		for _, p := range n.Ports {
			if p.Port != AllPorts {
				ports++
			}
		}
	}
	if nodes != s.BadNodes || ports != s.BadPorts {
		r.problems.Add(tool.Inconsistent, 0, "The summary counts %d nodes and %d ports with errors, and %d and %d are here.", s.BadNodes, s.BadPorts, nodes, ports)
	}
}

func parseNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// Summary says how many ports were checked, and names those with counters.
func (r *Report) Summary() []string {
	lines := []string{fmt.Sprintf("%d nodes with counters to report", len(r.Nodes))}
	if s := r.Checked; s != nil {
		lines = []string{fmt.Sprintf("%d of %d ports of %d nodes have errors beyond the threshold", s.BadPorts, s.Ports, s.Nodes)}
	}
	for _, n := range r.Nodes {
		lines = append(lines, n.lines()...)
	}
	return lines
}

// lines returns a line for each port.
func (n Node) lines() (lines []string) {
	for _, p := range n.Ports {
		if p.Port == AllPorts {
			continue
		}
		var bad []string
		for name, value := range p.Counters {
			bad = append(bad, fmt.Sprintf("%s %d", name, value))
		}
		slices.Sort(bad)
		lines = append(lines, fmt.Sprintf("%s port %d: %s", n.Name, p.Port, strings.Join(bad, ", ")))
	}
	return lines
}
