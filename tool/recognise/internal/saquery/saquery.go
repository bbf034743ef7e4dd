// SPDX-License-Identifier: Apache-2.0

// Package saquery reads what saquery of infiniband-diags prints: records of the subnet
// administration, a field a line. Source: rdma-core, infiniband-diags/saquery.c.
package saquery

import (
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

// Name is the kind's name.
const Name = "saquery"

// Answer is the content.
type Answer struct {
	Records []Record `json:"records"`
}

// Record is one record, such as that of a node, a port, a path or a subnet manager.
type Record struct {
	Type   string            `json:"type"` // as printed, without "dump": NodeRecord, PortInfoRecord
	Fields map[string]string `json:"fields"`

	line int
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case heading.Match(data) && field.Match(data):
			return 92
		case failed.Match(data):
			return 90
		}
		return ibdiags.FailureOf(Name, data)
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	heading = lazyregexp.New(`(?m)^[ \t]*(\w+Record|SA ClassPortInfo|\w+Record group|\w+Record member|InformInfoRecord|GUIDInfo Record)(?: dump)?:[ \t]*\r?$`)
	part    = lazyregexp.New(`^\w+ dump:$`)
	field   = lazyregexp.New(`(?m)^[ \t]*([A-Za-z][\w /]*?):?\.{2,}[ \t]*([^\n]*)$`)
	torn    = lazyregexp.New(`^[A-Za-z][\w /]*:?\.*$`)
	failed  = lazyregexp.New(`(?m)^.*(?:Failed to bind to the SA|Query SA failed|ibwarn: \[\d+\] sa_query|saquery: iberror)`)
	ended   = lazyregexp.New(`^rc=\d+$`)
)

// mostShown is how many problems of a sort are written out.
const mostShown = 10

// Parse reads the records. Ports that are down, paths to nowhere and managers that do not
// agree are problems.
func Parse(data []byte) (*Answer, tool.Problems, error) {
	r := reader{few: ibdiags.Few{Limit: mostShown}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if len(r.answer.Records) == 0 && !r.failed {
		return nil, nil, errors.New("it has no record")
	}
	if r.answer.Records == nil {
		r.answer.Records = []Record{}
	}
	if n := len(r.answer.Records); n > 0 && (r.cut || len(r.answer.Records[n-1].Fields) == 0) {
		r.few.Add(&r.problems, "records that end", tool.Truncated, r.last, "The last record ends before its end.")
	}
	r.compare()
	r.few.Rest(&r.problems)
	return &r.answer, r.problems, nil
}

type reader struct {
	answer   Answer
	problems tool.Problems
	few      ibdiags.Few
	line     int
	last     int  // the last line that is not empty
	cut      bool // that line ends before a value
	failed   bool
}

func (r *reader) read(text string) {
	if text == "" || ended.MatchString(text) {
		return
	}
	r.last, r.cut = r.line, false
	if m := heading.FindStringSubmatch(text); m != nil {
		r.answer.Records = append(r.answer.Records, Record{m[1], map[string]string{}, r.line})
		return
	}
	if ibdiags.IsFailure(text) || failed.MatchString(text) {
		r.failed = true
		r.few.Add(&r.problems, "failed queries", tool.Failed, r.line, "saquery failed: %s", text)
		return
	}
	if len(r.answer.Records) == 0 || part.MatchString(text) || text == "RID" {
		return
	}
	fields := r.answer.Records[len(r.answer.Records)-1].Fields
	if m := field.FindStringSubmatch(text); m != nil && m[2] != "" {
		if _, again := fields[m[1]]; !again {
			fields[m[1]] = strings.TrimSpace(m[2])
		}
		return
	}
	r.cut = torn.MatchString(text) && strings.Contains(text, "..")
}

// compare judges the records, each type by its own fields.
func (r *reader) compare() {
	var managers []Record
	for _, x := range r.answer.Records {
		switch x.Type {
		case "SMInfoRecord":
			managers = append(managers, x)
		case "PortInfoRecord":
			r.port(x)
		case "PathRecord":
			if x.Fields["dlid"] == "0" || x.Fields["slid"] == "0" {
				r.few.Add(&r.problems, "paths without a LID", tool.Failed, x.line, "The path from %s to %s has LIDs %s and %s: a port has no LID.", x.Fields["sgid"], x.Fields["dgid"], x.Fields["slid"], x.Fields["dlid"])
			}
		}
	}
	if len(managers) > 0 {
		r.managers(managers)
	}
}

// managers holds the subnet managers against each other: one is the master, the one with the
// highest priority.
func (r *reader) managers(list []Record) {
	var masters []string
	priority, best := map[string]int{}, -1
	for _, x := range list {
		state, guid := x.Fields["SMState"], x.Fields["GUID"]
		p, err := strconv.Atoi(x.Fields["Priority"])
		if err != nil {
			p = -1
		}
		priority[guid], best = p, max(best, p)
		switch state {
		case "3":
			masters = append(masters, guid)
		case "2", "":
		default:
			r.few.Add(&r.problems, "subnet managers that do not work", tool.Failed, x.line, "The subnet manager %s at LID %s is in state %s: neither standby (2) nor master (3).", guid, x.Fields["LID"], state)
		}
	}
	switch {
	case len(masters) == 0:
		r.problems.Add(tool.Failed, 0, "No subnet manager is master.")
	case len(masters) > 1:
		r.problems.Add(tool.Inconsistent, 0, "%d subnet managers are master: %s.", len(masters), strings.Join(masters, ", "))
	case priority[masters[0]] < best:
		r.problems.Add(tool.Inconsistent, 0, "The master %s has priority %d, and a standby has %d.", masters[0], priority[masters[0]], best)
	}
}

// port judges a port with a link.
func (r *reader) port(x Record) {
	state, physical := x.Fields["LinkState"], x.Fields["PhysLinkState"]
	name := fmt.Sprintf("port %s at LID %s", x.Fields["PortNum"], x.Fields["EndPortLid"])
	if state != "" && state != "Active" {
		r.few.Add(&r.problems, "ports that are not active", tool.Failed, x.line, "The %s is %s, its physical state is %s.", name, state, physical)
		return
	}
	if width, most := x.Fields["LinkWidthActive"], x.Fields["LinkWidthEnabled"]; width == "1X" && strings.Contains(most, "4X") {
		r.few.Add(&r.problems, "ports that are narrow", tool.Failed, x.line, "The %s runs at %s, and %s is enabled.", name, width, most)
	}
}

// Summary counts the records by type, and has a line for each subnet manager.
func (a *Answer) Summary() []string {
	count := map[string]int{}
	var lines []string
	names := map[string]string{"0": "not active", "1": "discovering", "2": "standby", "3": "master"}
	for _, x := range a.Records {
		count[x.Type]++
		if x.Type == "SMInfoRecord" {
			state := x.Fields["SMState"]
			if names[state] != "" {
				state = names[state]
			}
			lines = append(lines, fmt.Sprintf("subnet manager %s at LID %s: %s, priority %s", x.Fields["GUID"], x.Fields["LID"], state, x.Fields["Priority"]))
		}
	}
	var counts []string
	for _, t := range slices.Sorted(maps.Keys(count)) {
		counts = append(counts, fmt.Sprintf("%d %s", count[t], t))
	}
	if len(counts) == 0 {
		counts = []string{"no record"}
	}
	return append([]string{strings.Join(counts, ", ")}, lines...)
}
