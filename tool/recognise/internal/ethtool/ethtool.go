// SPDX-License-Identifier: Apache-2.0

// Package ethtool reads what ethtool prints of one interface: its link, the
// counters of its NIC by the names that the driver gives them (-S), or that all
// drivers share (-S --groups), its module or
// cable (-m), and its driver (-i). Source: the manual page ethtool(8), and ethtool.c, stats.c,
// sff-common.c, qsfp.c and cmis.c of ethtool.
package ethtool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name of counters.
const Name = "ethtool-S"

// Statistics is the content. Names are the driver's: rx_prio3_pause of mlx5_core.
type Statistics struct {
	Counters map[string]uint64 `json:"counters"`
}

// Formats are the outputs of ethtool.
var Formats = []tool.Format{Format, SettingsFormat, ModuleFormat, DriverFormat}

// Format is what recognises and reads the output of ethtool -S.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if head.Match(data) {
			return 90
		}
		if failure.Match(data) {
			return 60
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	head    = lazyregexp.New(`(?m)^[ \t]*(?:NIC statistics|Standard stats for \S+):[ \t]*\r?$`)
	failure = lazyregexp.New(`(?m)^[ \t]*(Cannot get stats|no stats available)`)
	prompt  = lazyregexp.New(`^[#$]|^\[?[\w.-]+@[^$#]*[$#](?: |$)`)
	line    = lazyregexp.New(`^(.*\S):\s+(\S+)$`)
)

// Parse reads the counters of one interface.
func Parse(data []byte) (*Statistics, tool.Problems, error) {
	r := statisticsReader{content: Statistics{Counters: map[string]uint64{}}}
	for text := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(text)
	}
	if r.begun == 0 && !r.failed {
		return nil, nil, errors.New("it has no counters of a NIC and no failure of ethtool")
	}
	r.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &r.content, r.problems, nil
}

// statisticsReader goes through the lines of ethtool -S.
type statisticsReader struct {
	content  Statistics
	problems tool.Problems
	line     int
	begun    int    // the line of the last heading; 0: none yet
	failed   bool   // ethtool said so
	last     string // the last line that is of it: the heading, or a counter
	indented bool   // its counters are
}

func (r *statisticsReader) read(text string) {
	apart := strings.TrimLeft(text, " \t") != text
	text = strings.TrimSpace(text)
	switch {
	case text == "" || prompt.MatchString(text):
	case failure.MatchString(text):
		r.failed = true
		r.problems.Add(tool.Failed, r.line, "ethtool failed: %s", text)
	case head.MatchString(text):
		if r.begun > 0 {
			r.problems.Add(tool.Inconsistent, r.line, "The counters of a second interface begin here.")
		}
		r.begun, r.last = r.line, text
	case r.indented && !apart && !line.MatchString(text): // counters are indented: this is of another program
	case r.begun > 0:
		r.last, r.indented = text, r.indented || apart
		r.counter(text)
	}
}

func (r *statisticsReader) counter(text string) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		r.problems.Add(tool.Truncated, r.line, "The line of a counter ends before its value.")
		return
	}
	value, err := strconv.ParseUint(m[2], 10, 64)
	if err != nil {
		r.problems.Add(tool.Inconsistent, r.line, "%s is %q, which is no counter.", m[1], m[2])
		return
	}
	if _, again := r.content.Counters[m[1]]; again {
		r.problems.Add(tool.Inconsistent, r.line, "%s is there twice.", m[1])
	}
	r.content.Counters[m[1]] = value
}

// finish checks that the counters are there, and the last of them whole.
func (r *statisticsReader) finish(newline bool) {
	if r.begun > 0 && len(r.content.Counters) == 0 && !r.failed {
		r.problems.Add(tool.Truncated, r.begun, "No counter follows.")
	}
	if !newline && r.begun > 0 && !line.MatchString(r.last) && !head.MatchString(r.last) && len(r.problems) == 0 {
		r.problems.Add(tool.Truncated, r.line, "The output ends within its last line.")
	}
}

// lossy are parts of the names of counters of things that went wrong.
var lossy = lazyregexp.New(`discard|drop|error|_err|out_of_buffer|out_of_sequence|timeout|storm|pause|fifo|crc|link_down|symbol`)

// Summary names counters of loss, errors and pauses that are not zero.
func (s *Statistics) Summary() []string {
	var bad []string
	for name, n := range s.Counters {
		if n > 0 && lossy.MatchString(name) {
			bad = append(bad, fmt.Sprintf("%s %d", name, n))
		}
	}
	slices.Sort(bad)
	return append([]string{fmt.Sprintf("%d counters", len(s.Counters))}, bad...)
}
