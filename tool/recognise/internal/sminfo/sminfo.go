// SPDX-License-Identifier: Apache-2.0

// Package sminfo reads what sminfo of infiniband-diags prints: a line about one
// subnet manager. Source: rdma-core, infiniband-diags/sminfo.c.
package sminfo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "sminfo"

// Report is the content: of one run, or of several whose lines are in one file.
type Report struct {
	Managers []Manager `json:"managers"`
}

// Manager is a subnet manager as it describes itself.
type Manager struct {
	LID      int    `json:"lid"` // 0: that of this node, asked by directed route
	GUID     string `json:"guid"`
	Activity uint64 `json:"activity"` // counts on while the manager works
	Priority int    `json:"priority"` // 0 to 15, the highest is the master
	State    string `json:"state"`    // MASTER, STANDBY, DISCOVER, NOTACT
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if line.Match(data) {
			return 95
		}
		return ibdiags.FailureOf(Name, data)
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	line  = lazyregexp.New(`(?m)(?:^|\bsminfo: |\s)sm lid (\d+) sm guid (0x[0-9a-f]+), activity count (\d+) priority (\d+) state (\d+) SMINFO_([A-Z]+)[ \t]*\r?$`)
	begun = lazyregexp.New(`\bsm lid \d|^sminfo: sm\b`)
)

// Parse reads the output. A manager that is neither master nor standby is a problem.
func Parse(data []byte) (*Report, tool.Problems, error) {
	r, problems := Report{Managers: []Manager{}}, tool.Problems(nil)
	n, failed := 0, false
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		text = strings.TrimSpace(text)
		switch m := line.FindStringSubmatch(text); {
		case m != nil:
			r.Managers = append(r.Managers, parseManager(m, n, &problems))
		case ibdiags.IsFailure(text):
			failed = true
			problems.Add(tool.Failed, n, "sminfo failed: %s", text)
		case begun.MatchString(text):
			failed = true
			problems.Add(tool.Truncated, n, "The line of a subnet manager ends before its end.")
		}
	}
	if len(r.Managers) == 0 && !failed {
		return nil, nil, errors.New("it has no subnet manager")
	}
	return &r, problems, nil
}

func parseManager(m []string, n int, problems *tool.Problems) Manager {
	s := Manager{GUID: m[2], State: m[6]}
	s.LID, _ = strconv.Atoi(m[1]) // digits; 0 past the range is caught below
	s.Activity, _ = strconv.ParseUint(m[3], 10, 64)
	s.Priority, _ = strconv.Atoi(m[4])
	if s.Priority > 15 {
		problems.Add(tool.Inconsistent, n, "Priority %s is past 15, the highest that there is.", m[4])
	}
	if s.LID > 0xbfff {
		problems.Add(tool.Inconsistent, n, "LID %s is past 49151, the highest of a port.", m[1])
	}
	if s.State != "MASTER" && s.State != "STANDBY" {
		problems.Add(tool.Failed, n, "The subnet manager at LID %d is in state %s, neither master nor standby.", s.LID, s.State)
	}
	return s
}

// Summary has a line for each manager.
func (r *Report) Summary() []string {
	if len(r.Managers) == 0 {
		return []string{"no subnet manager answered"}
	}
	var lines []string
	for _, m := range r.Managers {
		lines = append(lines, fmt.Sprintf("LID %d, GUID %s: %s, priority %d, activity %d", m.LID, m.GUID, m.State, m.Priority, m.Activity))
	}
	return lines
}
