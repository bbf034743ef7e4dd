// SPDX-License-Identifier: Apache-2.0

// Package perfquery reads what perfquery prints: the counters of one or several
// InfiniBand ports, also those of -x (extended), -E (receive errors) and -X
// (discards). Source: the manual page perfquery(8), infiniband-diags/perfquery.c
// of rdma-core, and the InfiniBand Architecture Specification volume 1, 16.1.3.
package perfquery

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "perfquery"

// Counters is the content: a record for each query.
type Counters struct {
	Records []Record `json:"records"`
}

// Record is what one query of one port answered.
type Record struct {
	Title     string            `json:"title"` // such as "Port extended counters"
	Address   string            `json:"address"`
	LID       int               `json:"lid"`  // 0 where the address is a directed route
	Port      int               `json:"port"` // 255: all ports of the node together
	CapMask   string            `json:"cap_mask,omitempty"`
	Values    map[string]uint64 `json:"counters"`            // data in units of four bytes
	Saturated []string          `json:"saturated,omitempty"` // stand at the most that they can hold, and count no further

	line int
	last string
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if head.Match(data) && value.Match(data) {
			return 95
		}
		return ibdiags.FailureOf(Name, data)
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	head  = lazyregexp.New(`(?m)^[ \t]*# (.+ counters|PortSamples(?:Control|Result)): ((?:Lid|LID|DR path|GID) .*?) port ([0-9]+)(?: \((CapMask: .*)\))?[ \t]*\r?$`)
	value = lazyregexp.New(`(?m)^[ \t]*([A-Za-z][A-Za-z0-9_ ]*):\.+(0x[0-9a-fA-F]+|[0-9]+)[ \t]*\r?$`)
	torn  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*:?\.*$`)
	lid   = lazyregexp.New(`^(?:Lid|LID) ([0-9]+)$`)
)

// bits are the sizes of the counters of PortCounters, which stop at their
// greatest value; those that are not named have 32.
var bits = map[string]int{
	"SymbolErrorCounter": 16, "LinkErrorRecoveryCounter": 8, "LinkDownedCounter": 8, "PortRcvErrors": 16, "PortRcvRemotePhysicalErrors": 16,
	"PortRcvSwitchRelayErrors": 16, "PortXmitDiscards": 16, "PortXmitConstraintErrors": 8, "PortRcvConstraintErrors": 8,
	"LocalLinkIntegrityErrors": 4, "ExcessiveBufferOverrunErrors": 4, "QP1Dropped": 16, "VL15Dropped": 16,
	"PortXmitData": 32, "PortRcvData": 32, "PortXmitPkts": 32, "PortRcvPkts": 32, "PortXmitWait": 32,
	// The names of old versions, of OFED 1.x.
	"SymbolErrors": 16, "LinkRecovers": 8, "LinkDowned": 8, "RcvErrors": 16, "RcvRemotePhysErrors": 16,
	"RcvSwRelayErrors": 16, "XmtDiscards": 16, "XmtConstraintErrors": 8, "RcvConstraintErrors": 8,
	"LinkIntegrityErrors": 4, "ExcBufOverrunErrors": 4,
	"XmtData": 32, "RcvData": 32, "XmtPkts": 32, "RcvPkts": 32, "XmtWait": 32,
}

// ends are the counters that stand last, by the title of a record: more than one
// where it depends on what a port has.
var ends = map[string][]string{
	"Port counters":                {"PortXmitWait", "PortRcvPkts", "XmtWait", "RcvPkts"},
	"Port extended counters":       {"QP1Dropped", "PortMulticastRcvPkts", "MulticastRcvPkts", "RcvMcastPkts"},
	"PortRcvErrorDetails counters": {"PortLoopingErrors"},
	"PortXmitDiscardDetails counters": {
		"PortSwHOQLifetimeLimitDiscards", "PortSwHOQLimitDiscards",
	},
}

// Parse reads the counters of every port in the output.
func Parse(data []byte) (*Counters, tool.Problems, error) {
	c, problems := Counters{Records: []Record{}}, tool.Problems(nil)
	n, failed, whole := 0, false, 0
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		text := strings.TrimSpace(line)
		m := head.FindStringSubmatch(text)
		switch {
		case text == "":
			whole = n
		case ibdiags.IsFailure(text):
			failed, whole = true, n
			problems.Add(tool.Failed, n, "perfquery failed: %s", text)
		case m != nil:
			c.Records = append(c.Records, parseRecord(m, n))
		case len(c.Records) == 0:
		default:
			whole = c.Records[len(c.Records)-1].read(text, n, whole, &problems)
		}
	}
	if len(c.Records) == 0 && !failed {
		return nil, nil, errors.New("it has no counters of a port and no failure of perfquery")
	}
	for i := range c.Records {
		c.Records[i].finish(&problems)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' && whole != n && (len(problems) == 0 || problems[len(problems)-1].Kind != tool.Truncated) {
		problems.Add(tool.Truncated, n, "The output ends within its last line.")
	}
	return &c, problems, nil
}

// parseRecord begins a record: "# Port counters: Lid 2052 port 1 (CapMask: 0x5300)".
func parseRecord(m []string, line int) Record {
	port, _ := strconv.Atoi(m[3])
	r := Record{Title: m[1], Address: m[2], Port: port, CapMask: strings.TrimPrefix(m[4], "CapMask: "), Values: map[string]uint64{}, line: line}
	if l := lid.FindStringSubmatch(m[2]); l != nil {
		r.LID, _ = strconv.Atoi(l[1])
	}
	return r
}

// read takes one line of a record and returns the last line that is whole.
func (r *Record) read(text string, line, whole int, problems *tool.Problems) int {
	m := value.FindStringSubmatch(text)
	if m == nil {
		if torn.MatchString(text) {
			problems.Add(tool.Truncated, line, "The line of a counter ends before its value.")
			return line
		}
		return whole
	}
	n, err := strconv.ParseUint(m[2], 0, 64)
	if err != nil {
		problems.Add(tool.Inconsistent, line, "%s is %s, more than 64 bits hold.", m[1], m[2])
		return line
	}
	if _, again := r.Values[m[1]]; again {
		problems.Add(tool.Inconsistent, line, "%s is there twice.", m[1])
	}
	if m[1] == "PortSelect" && int(n) != r.Port {
		problems.Add(tool.Inconsistent, line, "The counters are of port %d, and port %d was asked for.", n, r.Port)
	}
	r.Values[m[1]], r.last = n, m[1]
	if size, known := bits[m[1]]; known && r.Title == "Port counters" && n >= 1<<size-1 {
		r.Saturated = append(r.Saturated, m[1])
	}
	if slices.Contains(ends[r.Title], m[1]) {
		return line
	}
	return whole
}

// finish notes a record that has no counters, or not its last one.
func (r *Record) finish(problems *tool.Problems) {
	known, named := ends[r.Title]
	if len(r.Values) == 0 || named && !slices.Contains(known, r.last) {
		problems.Add(tool.Truncated, r.line, "The counters of port %d of %s end at %q.", r.Port, r.Address, r.last)
	}
}

// errorCounters are the counters whose increase is a fault of the link or of what
// it carries, not traffic.
var errorCounters = []string{
	"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors", "PortRcvSwitchRelayErrors",
	"PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped", "QP1Dropped",
	"SymbolErrors", "LinkRecovers", "LinkDowned", "RcvErrors", "RcvRemotePhysErrors", "RcvSwRelayErrors",
	"XmtDiscards", "XmtConstraintErrors", "RcvConstraintErrors", "LinkIntegrityErrors", "ExcBufOverrunErrors",
}

// Summary names the error counters that are not zero.
func (c *Counters) Summary() []string {
	lines := []string{fmt.Sprintf("counters of %d queries", len(c.Records))}
	for _, r := range c.Records {
		var bad []string
		for _, name := range errorCounters {
			if n := r.Values[name]; n > 0 {
				bad = append(bad, fmt.Sprintf("%s %d", name, n))
			}
		}
		if len(bad) > 0 {
			lines = append(lines, fmt.Sprintf("%s port %d: %s", r.Address, r.Port, strings.Join(bad, ", ")))
		}
	}
	return lines
}
