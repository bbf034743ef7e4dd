// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

var (
	// healthIn is the heading of dcgmi health -c, as a table and as JSON.
	healthIn = lazyregexp.New(`(?m)^\s*\| Health Monitor Report\s+\||"Health Monitor Report"|"Overall Health"\s*:\s*\{`)
	// overall is how DCGM before 2 prints the first line, in one column.
	overall = lazyregexp.New(`^\s*\| Overall Health:\s+(\S+)`)
	// branch is a row of the tree below it: "-> 0" and "-> Memory system".
	branch = lazyregexp.New(`^-> (.+)$`)
)

// parseHealth reads dcgmi health -c: the health over all, and of each entity the
// systems that had an incident (dcgmi/Health.cpp of DCGM).
func parseHealth(data []byte, problems *tool.Problems) (Content, error) {
	if text, ok := jsontext.Find(data); ok {
		return healthJSON(text, problems)
	}
	h := health{c: Content{Command: "health", Tests: []Test{}}}
	n, closed := 0, false
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		if m := overall.FindStringSubmatch(line); m != nil {
			h.c.Health = parseStatus(m[1])
		} else if m := cells.FindStringSubmatch(line); m != nil {
			h.row(strings.TrimSpace(m[1]), m[2], n)
			closed = false
		} else if strings.HasPrefix(strings.TrimSpace(line), "+") {
			closed = true
		}
	}
	switch {
	case h.c.Health == "":
		problems.Add(tool.Missing, 0, "the overall health is not there")
	case !closed:
		problems.Add(tool.Truncated, 0, "the table ends before its end")
	}
	return h.c, nil
}

// health goes through the rows of the tree.
type health struct {
	c      Content
	group  string // GPU, NvSwitch, CPU
	entity string
	into   *Result
}

func (h *health) row(name, value string, line int) {
	m := branch.FindStringSubmatch(name)
	switch {
	case name == "" && h.into != nil:
		h.into.text(value)
	case name == "Overall Health":
		h.c.Health = parseStatus(value)
	case m == nil && value == "" && h.c.Health != "":
		h.group, h.entity, h.into = name, "", nil
	case m == nil || m[1] == "Errors":
	case strings.Trim(m[1], "0123456789") == "":
		h.entity, h.into = m[1], nil
	case h.entity != "":
		h.c.Tests = append(h.c.Tests, Test{Category: h.group, Name: m[1], Results: []Result{{Entities: strings.TrimPrefix(h.group+" "+h.entity, "GPU "), Status: parseStatus(value)}}, line: line})
		h.into = &h.c.Tests[len(h.c.Tests)-1].Results[0]
	}
}

// longest is how many bytes of the text of an incident are kept.
const longest = 64 << 10

// text adds a line of the text of an incident.
func (r *Result) text(line string) {
	if line = strings.TrimSpace(line); line != "" && len(r.Warnings) == 0 {
		r.Warnings = []string{line}
	} else if line != "" && len(r.Warnings[0]) < longest {
		r.Warnings[0] += " " + line
	}
}

// node is a branch of the tree as JSON.
type node struct {
	Value    string          `json:"value"`
	Overflow []string        `json:"overflow"`
	Children map[string]node `json:"children"`
}

// healthJSON reads dcgmi health -c -j.
func healthJSON(text jsontext.Text, problems *tool.Problems) (Content, error) {
	var doc struct {
		Body map[string]node `json:"body"`
	}
	if err := json.Unmarshal(text.Data, &doc); err != nil || doc.Body == nil {
		return Content{}, errors.New("it is no JSON of dcgmi health")
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "the output ends before its end: what it has so far was read")
	}
	h := health{c: Content{Command: "health", Tests: []Test{}}}
	for _, group := range sortedKeys(doc.Body) {
		if group == "Overall Health" {
			h.c.Health = parseStatus(doc.Body[group].Value)
			continue
		}
		h.group = group
		for _, entity := range sortedKeys(doc.Body[group].Children) {
			h.entity = entity
			systems := doc.Body[group].Children[entity].Children["Errors"].Children
			for _, system := range sortedKeys(systems) {
				h.row("-> "+system, systems[system].Value, 0)
				for _, line := range systems[system].Overflow {
					h.row("", line, 0)
				}
			}
		}
	}
	if h.c.Health == "" {
		problems.Add(tool.Missing, 0, "the overall health is not there")
	}
	return h.c, nil
}

func sortedKeys(m map[string]node) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
