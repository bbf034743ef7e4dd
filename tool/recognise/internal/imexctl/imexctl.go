// SPDX-License-Identifier: Apache-2.0

// Package imexctl reads what nvidia-imex-ctl prints about an NVLink domain: -N, the nodes
// and how each sees each other one, as text or with -j as JSON, and -q, the state of
// this node's service. Source: NVIDIA's IMEX guide, "nvidia-imex-ctl", and outputs that
// users published; the service itself was not asked.
package imexctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// Name is the kind's name.
const Name = "nvidia-imex-ctl"

// Report is the content.
type Report struct {
	Domain string `json:"domain,omitempty"` // UP, DEGRADED, DOWN; empty with -q
	State  string `json:"state,omitempty"`  // of this node's service, with -q
	Nodes  []Node `json:"nodes"`
}

// Node is a node of the domain, as its list of addresses has it.
type Node struct {
	Number  int    `json:"number"`
	Host    string `json:"host"`
	Name    string `json:"host_name,omitempty"` // with -H
	Status  string `json:"status"`              // READY, UNAVAILABLE, and the states of a start
	Version string `json:"version,omitempty"`   // of its driver
	// To is how this node sees each other one, by number: CONNECTED, or what is wrong.
	To map[int]string `json:"connections,omitempty"`

	line int
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case domain.Match(data) || nodeLine.Match(data):
			return 95
		case isDocument(data):
			return 95
		case states[strings.TrimSpace(string(data[:min(len(data), 64)]))] && len(data) < 64:
			return 60
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

// states are those of the service, which -q prints alone (DCGM, dcgm_fields.h, field 1503).
var states = map[string]bool{
	"INITIALIZING": true, "STARTING_AUTH_SERVER": true, "WAITING_FOR_PEERS": true, "WAITING_FOR_RECOVERY": true,
	"INIT_GPU": true, "READY": true, "SHUTTING_DOWN": true, "UNAVAILABLE": true,
}

// links are the letters of the table, by the words of its legend and of JSON.
var links = map[string]string{
	"I": "INVALID", "N": "NEVER_CONNECTED", "R": "RECOVERING", "D": "DISCONNECTED", "A": "AUTHENTICATING",
	"!V!": "VERSION_MISMATCH", "!M!": "NODE_MAP_MISMATCH", "C": connected,
}

const (
	ready     = "READY"
	connected = "CONNECTED"
)

// mostShown is how many links that are not connected are problems of their own.
const mostShown = 10

var (
	domain   = lazyregexp.New(`(?m)^[ \t]*Domain State:[ \t]*(\w*)[ \t]*\r?$`)
	nodeLine = lazyregexp.New(`(?m)^[ \t]*Node #(\d+)[ \t]+[-*][ \t]+(\S[^\n]*?)[ \t]*\*?[ \t]+-[ \t]+([A-Z_]+)(?:[ \t]+-[ \t]+Version:[ \t]*(\S*))?[ \t]*\r?$`)
	matrix   = lazyregexp.New(`^Nodes From\\To\s+((?:\d+\s*)+)$`)
	row      = lazyregexp.New(`^(\d+)((?:\s+(?:[A-Z]|![A-Z]!))+)$`)
	begun    = lazyregexp.New(`^Node #\d+`)
)

// Parse reads the output. A node that is not ready, a pair that is not connected and a
// domain that is not up are problems.
func Parse(data []byte) (*Report, tool.Problems, error) {
	if state := strings.TrimSpace(string(data)); states[state] {
		r := Report{State: state, Nodes: []Node{}}
		var problems tool.Problems
		if state != ready {
			problems.Add(tool.Failed, 1, "The IMEX service of this node is %s, not READY.", state)
		}
		return &r, problems, nil
	}
	if isDocument(data) {
		return parseDocument(data)
	}
	r := reader{report: Report{Nodes: []Node{}}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.report.Nodes) == 0 && r.report.Domain == "" {
		return nil, nil, errors.New("it has no node and no domain")
	}
	r.finish()
	return &r.report, append(r.problems, r.report.judge()...), nil
}

type reader struct {
	report   Report
	problems tool.Problems
	line     int
	columns  []int
	rows     int
}

func (r *reader) read(text string) {
	if m := nodeLine.FindStringSubmatch(text); m != nil {
		n := Node{Host: m[2], Status: m[3], Version: m[4], line: r.line}
		n.Number, _ = strconv.Atoi(m[1]) // digits
		r.report.Nodes = append(r.report.Nodes, n)
		return
	}
	if m := domain.FindStringSubmatch(text); m != nil && m[1] != "" {
		r.report.Domain = m[1]
		return
	}
	if m := matrix.FindStringSubmatch(text); m != nil {
		r.columns = nil
		for _, f := range strings.Fields(m[1]) {
			n, _ := strconv.Atoi(f) // digits
			r.columns = append(r.columns, n)
		}
		return
	}
	if m := row.FindStringSubmatch(text); m != nil && r.columns != nil {
		r.row(m[1], strings.Fields(m[2]))
		return
	}
	if begun.MatchString(text) {
		r.problems.Add(tool.Truncated, r.line, "The line of a node ends before its end.")
	}
}

// row reads how one node sees the others.
func (r *reader) row(number string, cells []string) {
	r.rows++
	if len(cells) != len(r.columns) {
		r.problems.Add(tool.Truncated, r.line, "Node %s says %d of %d connections.", number, len(cells), len(r.columns))
	}
	i := slices.IndexFunc(r.report.Nodes, func(n Node) bool { return strconv.Itoa(n.Number) == number })
	if i < 0 {
		r.problems.Add(tool.Inconsistent, r.line, "Node %s has connections, and is not among the nodes.", number)
		return
	}
	n := &r.report.Nodes[i]
	n.To = map[int]string{}
	for j, c := range cells[:min(len(cells), len(r.columns))] {
		word, known := links[c]
		if !known {
			word = c
		}
		n.To[r.columns[j]] = word
	}
}

// finish says what is missing of the text.
func (r *reader) finish() {
	if r.columns != nil && r.rows < len(r.columns) {
		r.problems.Add(tool.Truncated, 0, "The connections of %d of %d nodes are here.", r.rows, len(r.columns))
	}
	if r.report.Domain == "" {
		r.problems.Add(tool.Truncated, 0, "The state of the domain, which comes last, is not there.")
	}
}

// judge says what is wrong with the domain.
func (r *Report) judge() (problems tool.Problems) {
	few := ibdiags.Few{Limit: mostShown}
	versions := map[string]bool{}
	for _, n := range r.Nodes {
		if n.Status != ready {
			few.Add(&problems, "nodes that are not READY", tool.Failed, n.line, "Node %d (%s) is %s, not READY.", n.Number, n.Host, n.Status)
		}
		if n.Version != "" {
			versions[n.Version] = true
		}
		for _, to := range slices.Sorted(maps.Keys(n.To)) {
			if n.To[to] != connected && n.Status == ready {
				few.Add(&problems, "connections that are not CONNECTED", tool.Failed, 0, "Node %d (%s) to node %d is %s, not CONNECTED.", n.Number, n.Host, to, n.To[to])
			}
		}
	}
	few.Rest(&problems)
	if len(versions) > 1 {
		problems.Add(tool.Inconsistent, 0, "The nodes' drivers have several versions: %s.", strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
	}
	if r.Domain != "" && r.Domain != "UP" {
		problems.Add(tool.Failed, 0, "The domain is %s, not UP.", r.Domain)
	}
	return problems
}

// document is what -j prints.
type document struct {
	Status string `json:"status"`
	Nodes  map[string]struct {
		Status      string `json:"status"`
		Host        string `json:"host"`
		Name        string `json:"hostName"`
		Version     string `json:"version"`
		Connections map[string]struct {
			Status string `json:"status"`
		} `json:"connections"`
	} `json:"nodes"`
}

var documentHead = lazyregexp.New(`"nodes"\s*:\s*\{\s*"\d+"\s*:\s*\{\s*"(?:status|host|connections|hostName|version)"`)

func isDocument(data []byte) bool { return documentHead.Match(data[:min(len(data), 64<<10)]) }

func parseDocument(data []byte) (*Report, tool.Problems, error) {
	text, ok := jsontext.Find(data)
	var d document
	if !ok {
		return nil, nil, errors.New("it has no JSON object")
	}
	if err := json.Unmarshal(text.Data, &d); err != nil {
		return nil, nil, err
	}
	r := Report{Domain: d.Status, Nodes: []Node{}}
	var problems tool.Problems
	if text.Cut {
		problems.Add(tool.Truncated, 0, "The object ends before its end: what it has so far was read.")
	} else if d.Status == "" {
		problems.Add(tool.Missing, 0, "The state of the domain is not there.")
	}
	for key, n := range d.Nodes {
		number, err := strconv.Atoi(key)
		if err != nil {
			return nil, nil, fmt.Errorf("%q is no number of a node", key)
		}
		node := Node{Number: number, Host: n.Host, Name: n.Name, Status: n.Status, Version: n.Version, line: text.Line}
		for to, c := range n.Connections {
			if k, err := strconv.Atoi(to); err == nil {
				if node.To == nil {
					node.To = map[int]string{}
				}
				node.To[k] = c.Status
			}
		}
		r.Nodes = append(r.Nodes, node)
	}
	if len(r.Nodes) == 0 {
		return nil, nil, errors.New("it has no node")
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return a.Number - b.Number })
	return &r, append(problems, r.judge()...), nil
}

// Summary says the state of the domain and names the nodes that are not ready.
func (r *Report) Summary() []string {
	if r.State != "" {
		return []string{"the IMEX service of this node is " + r.State}
	}
	count, state := 0, r.Domain
	for _, n := range r.Nodes {
		if n.Status == ready {
			count++
		}
	}
	if state == "" {
		state = "unknown"
	}
	lines := []string{fmt.Sprintf("domain %s, %d of %d nodes READY", state, count, len(r.Nodes))}
	for _, n := range r.Nodes {
		if n.Status != ready {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("node %d, %s %s: %s", n.Number, n.Host, n.Name, n.Status)))
		}
	}
	return lines
}
