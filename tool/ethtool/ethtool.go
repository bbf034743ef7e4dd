// Package ethtool reads what ethtool prints of one interface: its link, the
// counters of its NIC by the names that the driver gives them (-S), or that all
// drivers share (-S --groups), its module or
// cable (-m), and its driver (-i). Source: the manual page ethtool(8), and ethtool.c, stats.c,
// sff-common.c, qsfp.c and cmis.c of ethtool.
package ethtool

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	head    = regexp.MustCompile(`(?m)^[ \t]*(?:NIC statistics|Standard stats for \S+):[ \t]*\r?$`)
	failure = regexp.MustCompile(`(?m)^[ \t]*(Cannot get stats|no stats available)`)
	prompt  = regexp.MustCompile(`^[#$]|^\[?[\w.-]+@[^$#]*[$#](?: |$)`)
	line    = regexp.MustCompile(`^(.*\S):\s+(\S+)$`)
)

// Parse reads the counters of one interface.
func Parse(data []byte) (*Statistics, tool.Problems, error) {
	s, problems := Statistics{Counters: map[string]uint64{}}, tool.Problems(nil)
	n, begun, failed, last, indented := 0, 0, false, "", false
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		apart := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t")
		text = strings.TrimSpace(text)
		switch {
		case text == "" || prompt.MatchString(text):
		case failure.MatchString(text):
			failed = true
			problems.Add(tool.Failed, n, "ethtool failed: %s", text)
		case head.MatchString(text):
			if begun > 0 {
				problems.Add(tool.Inconsistent, n, "The counters of a second interface begin here.")
			}
			begun, last = n, text
		case indented && !apart && !line.MatchString(text): // counters are indented: this is of another program
		case begun > 0:
			last, indented = text, indented || apart
			s.read(text, n, &problems)
		}
	}
	if begun == 0 && !failed {
		return nil, nil, errors.New("it has no counters of a NIC and no failure of ethtool")
	}
	if begun > 0 && len(s.Counters) == 0 && !failed {
		problems.Add(tool.Truncated, begun, "No counter follows.")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && begun > 0 && !line.MatchString(last) && !head.MatchString(last) && len(problems) == 0 {
		problems.Add(tool.Truncated, n, "The output ends within its last line.")
	}
	return &s, problems, nil
}

func (s *Statistics) read(text string, n int, problems *tool.Problems) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		problems.Add(tool.Truncated, n, "The line of a counter ends before its value.")
		return
	}
	value, err := strconv.ParseUint(m[2], 10, 64)
	if err != nil {
		problems.Add(tool.Inconsistent, n, "%s is %q, which is no counter.", m[1], m[2])
		return
	}
	if _, again := s.Counters[m[1]]; again {
		problems.Add(tool.Inconsistent, n, "%s is there twice.", m[1])
	}
	s.Counters[m[1]] = value
}

// lossy are parts of the names of counters of things that went wrong.
var lossy = regexp.MustCompile(`discard|drop|error|_err|out_of_buffer|out_of_sequence|timeout|storm|pause|fifo|crc|link_down|symbol`)

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
