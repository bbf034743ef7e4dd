// SPDX-License-Identifier: Apache-2.0

// Package mlnxqos reads what mlnx_qos -i INTERFACE prints: how an NVIDIA NIC
// sorts, pauses and schedules traffic. Source: python/mlnx_qos of
// Mellanox/mlnx-tools.
package mlnxqos

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "mlnx_qos"

// QoS is the content. What a version or a NIC does not say is empty.
type QoS struct {
	DCBX        string         `json:"dcbx_mode,omitempty"` // "OS controlled", "Firmware controlled"
	Trust       string         `json:"trust,omitempty"`     // dscp or pcp; none where the NIC does not know it
	DSCP        map[string]int `json:"dscp_to_priority,omitempty"`
	BufferSizes []int          `json:"receive_buffer_bytes,omitempty"` // of buffers 0 to 7
	MaxBuffer   int            `json:"max_buffer_bytes,omitempty"`
	Cable       int            `json:"cable_length_m,omitempty"`
	PFC         []bool         `json:"pfc"`    // of priorities 0 to 7; empty where it is not there
	Buffers     []int          `json:"buffer"` // receive buffer of priorities 0 to 7
	Classes     []Class        `json:"traffic_classes"`
}

// Class is a traffic class and how it is scheduled.
type Class struct {
	TC         int    `json:"tc"`
	RateLimit  string `json:"rate_limit,omitempty"`        // as printed: unlimited, "10.0 Gbps"
	Algorithm  string `json:"algorithm,omitempty"`         // ets, strict, vendor, unknown
	Bandwidth  *int   `json:"bandwidth_percent,omitempty"` // of ets only
	Priorities []int  `json:"priorities"`
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case pfcHead.Match(data) && (trust.Match(data) || pfcRow.Match(data)), trust.Match(data):
			return 95
		case class.Match(data):
			return 85
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	trust   = lazyregexp.New(`(?m)^[ \t]*Priority trust state:[ \t]*(\w+)[ \t]*\r?$`)
	pfcHead = lazyregexp.New(`(?m)^[ \t]*PFC configuration:[ \t]*\r?$`)
	pfcRow  = lazyregexp.New(`(?m)^[ \t]*(priority|enabled|buffer):?[ \t]+([0-9 \t]+?)[ \t]*\r?$`)
	dscp    = lazyregexp.New(`^prio:([0-7]) dscp:([0-9, ]*)$`)
	class   = lazyregexp.New(`(?m)^[ \t]*tc: ([0-9]+) ratelimit: ([^,\n]+), tsa: (\w+)(?:, bw: ([0-9]+)%)?[ \t]*\r?$`)
	member  = lazyregexp.New(`^(?:priority|up):\s+([0-7])$`)
	failure = lazyregexp.New(`(?i)^(traceback \(most recent|.*(not supported|no such device|permission denied|operation not permitted|error:))`)
)

// trusts are all states of trust that mlnx_qos names.
var trusts = map[string]bool{"dscp": true, "pcp": true, "both": true, "port": true, "none": true}

// algorithms are all that mlnx_qos names.
var algorithms = map[string]bool{"ets": true, "strict": true, "vendor": true, "unknown": true}

// priorities is how many a port has (IEEE 802.1Q).
const priorities = 8

// Parse reads the output for one interface.
func Parse(data []byte) (*QoS, tool.Problems, error) {
	r := reader{content: QoS{PFC: []bool{}, Buffers: []int{}, Classes: []Class{}}}
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		r.read(strings.TrimSpace(line))
	}
	if r.known == 0 {
		return nil, nil, errors.New("it has nothing of mlnx_qos")
	}
	r.finish(len(data) > 0 && data[len(data)-1] == '\n')
	return &r.content, r.problems, nil
}

type reader struct {
	content  QoS
	problems tool.Problems
	line     int
	known    int // the last line that was understood
	last     int // the last line that is not empty
	pfc      int // the line of "PFC configuration:"
}

func (r *reader) read(text string) {
	if text == "" {
		return
	}
	r.last = r.line
	key, value, found := strings.Cut(text, ":")
	switch {
	case r.table(text):
	case failure.MatchString(text):
		r.problems.Add(tool.Failed, r.line, "mlnx_qos failed: %s", text)
	case found && r.value(key, strings.TrimSpace(value)):
	default:
		return
	}
	r.known = r.line
}

// value reads a line "key: value"; false when it is none of mlnx_qos, or not whole.
func (r *reader) value(key, value string) bool {
	switch key {
	case "DCBX mode":
		if value == "" {
			return false
		}
		r.content.DCBX = value
	case "Priority trust state":
		if !trusts[value] {
			return false
		}
		r.content.Trust = value
	case "dscp2prio mapping", "default priority", "skprio", "Enabled TC": // says nothing that is kept
	case "Receive buffer size (bytes)":
		r.buffers(value)
	case "Cable len":
		r.content.Cable = r.number(value)
	case "PFC configuration":
		r.pfc = r.line
	default:
		return false
	}
	return true
}

// table reads the lines of the tables: DSCP, PFC and traffic classes.
func (r *reader) table(text string) bool {
	if m := dscp.FindStringSubmatch(text); m != nil {
		r.dscp(r.number(m[1]), m[2])
		return true
	}
	if m := pfcRow.FindStringSubmatch(text); m != nil && r.pfc > 0 && len(strings.Fields(m[2])) > 1 {
		r.row(m[1], strings.Fields(m[2]))
		return true
	}
	if m := class.FindStringSubmatch(text); m != nil {
		c := Class{TC: r.number(m[1]), RateLimit: strings.TrimSpace(m[2]), Algorithm: m[3], Priorities: []int{}}
		if m[4] != "" {
			share := r.number(m[4])
			c.Bandwidth = &share
		}
		if c.Algorithm == "ets" && c.Bandwidth == nil || !algorithms[c.Algorithm] {
			r.problems.Add(tool.Truncated, r.line, "The line of traffic class %d ends before its end.", c.TC)
		}
		r.content.Classes = append(r.content.Classes, c)
		return true
	}
	if m := member.FindStringSubmatch(text); m != nil && len(r.content.Classes) > 0 {
		c := &r.content.Classes[len(r.content.Classes)-1]
		c.Priorities = append(c.Priorities, r.number(m[1]))
		return true
	}
	return false
}

// dscp reads "prio:3 dscp:31,30,29,28,27,26,25,24,": the last comma is there.
func (r *reader) dscp(priority int, list string) {
	if r.content.DSCP == nil {
		r.content.DSCP = map[string]int{}
	}
	if strings.TrimSpace(list) != "" && !strings.HasSuffix(strings.TrimSpace(list), ",") {
		r.problems.Add(tool.Truncated, r.line, "The line of the DSCPs of priority %d ends before its end.", priority)
	}
	for value := range strings.SplitSeq(list, ",") {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		n := r.number(value)
		name := strconv.Itoa(n)
		if before, again := r.content.DSCP[name]; again || n > 63 {
			r.problems.Add(tool.Inconsistent, r.line, "DSCP %d is in priority %d, and was in priority %d, or is past 63.", n, priority, before)
		}
		r.content.DSCP[name] = priority
	}
}

// row reads a line of the PFC table.
func (r *reader) row(name string, values []string) {
	if len(values) != priorities {
		r.problems.Add(tool.Truncated, r.line, "The line %q of PFC has %d of %d priorities.", name, len(values), priorities)
	}
	for i, v := range values {
		n := r.number(v)
		switch {
		case name == "priority" && n != i:
			r.problems.Add(tool.Inconsistent, r.line, "Priority %d stands where %d does.", n, i)
		case name == "enabled" && len(r.content.PFC) < priorities:
			r.content.PFC = append(r.content.PFC, n != 0)
		case name == "buffer" && len(r.content.Buffers) < priorities:
			r.content.Buffers = append(r.content.Buffers, n)
		}
	}
}

// buffers reads "130944,130944,0,0,0,0,0,0,max_buffer_size=262016".
func (r *reader) buffers(list string) {
	r.content.BufferSizes = nil
	for value := range strings.SplitSeq(list, ",") {
		value = strings.TrimSpace(value)
		if most, found := strings.CutPrefix(value, "max_buffer_size="); found {
			r.content.MaxBuffer = r.number(most)
		} else if value != "" && len(r.content.BufferSizes) < priorities {
			r.content.BufferSizes = append(r.content.BufferSizes, r.number(value))
		}
	}
}

func (r *reader) number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		r.problems.Add(tool.Inconsistent, r.line, "%q is no number.", text)
	}
	return int(n)
}

func (r *reader) finish(newline bool) {
	c := &r.content
	if !newline && r.known != r.last {
		r.problems.Add(tool.Truncated, r.last, "The output ends within its last line.")
	}
	switch {
	case r.pfc == 0:
		r.problems.Add(tool.Missing, 0, "The PFC configuration is not there.")
	case len(c.PFC) != priorities:
		r.problems.Add(tool.Truncated, r.pfc, "The PFC configuration does not say which priorities are paused.")
	case len(c.Classes) == 0:
		r.problems.Add(tool.Truncated, 0, "The traffic classes, which come last, are not there.")
	}
	placed := map[int]bool{}
	for _, class := range c.Classes {
		for _, p := range class.Priorities {
			if placed[p] {
				r.problems.Add(tool.Inconsistent, 0, "Priority %d is in two traffic classes.", p)
			}
			placed[p] = true
		}
	}
	if len(placed) > 0 && len(placed) < priorities {
		r.problems.Add(tool.Truncated, 0, "%d of %d priorities have a traffic class.", len(placed), priorities)
	}
}

// Paused returns the priorities with PFC.
func (q *QoS) Paused() (list []int) {
	for p, on := range q.PFC {
		if on {
			list = append(list, p)
		}
	}
	return list
}

// Priority returns the priority of a DSCP. Where the NIC prints no map, as in old
// versions, it is not known.
func (q *QoS) Priority(value int) (int, bool) {
	p, known := q.DSCP[strconv.Itoa(value)]
	return p, known
}

// Summary says what is trusted and paused.
func (q *QoS) Summary() []string {
	paused := "no priority"
	if list := q.Paused(); len(list) > 0 {
		paused = fmt.Sprintf("priorities %v", list)
	}
	return []string{fmt.Sprintf("trust %s, PFC on %s", orUnknown(q.Trust), paused)}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
