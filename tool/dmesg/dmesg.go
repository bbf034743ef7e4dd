// SPDX-License-Identifier: Apache-2.0

// Package dmesg finds in a kernel log what matters to the acceptance of a node:
// Xid and SXid of NVIDIA, RAS events of amdgpu, PCIe errors (AER), PCIe links
// that came up slower than they can, memory errors (EDAC, machine checks), NVMe
// timeouts, bugs of the kernel itself, programs killed for want of memory,
// nvidia-peermem, and links and firmware of mlx5 NICs. It reads dmesg, dmesg -T, journalctl -k and /dev/kmsg; each may
// be of several boots.
package dmesg

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Formats is the kernel log.
var Formats = []tool.Format{{
	Name: "dmesg", Is: matchFormat,
	Parse: func(b []byte) (any, tool.Problems, error) {
		l, p, err := Parse(b)
		if err != nil {
			return nil, p, err
		}
		return l, p, nil
	},
	Stream: func([]byte) (tool.Stream, bool) {
		s := NewStream()
		return tool.Stream{Line: s.read, End: func() (any, tool.Problems, error) { return s.End() }}, true
	},
}}

// Level is how much an event counts.
type Level string

// The levels.
const (
	Fatal       Level = "fatal"       // the part does not work until it is reset or replaced
	Degraded    Level = "degraded"    // the part works and is not as it should be
	Application Level = "application" // the program that ran is the likely cause
	Notice      Level = "notice"      // corrected, or only said
)

// Log is what was found.
type Log struct {
	Lines  int     `json:"-"` // of the file
	Events []Event `json:"events"`
	GPUs   []GPU   `json:"gpus,omitempty"` // that NVRM named with an Xid
}

// Event is one thing that happened.
type Event struct {
	Line    int    `json:"line"`
	Time    string `json:"time,omitempty"` // as printed
	Kind    string `json:"kind"`           // xid, sxid, nvrm, amdgpu, aer, pcie-link, edac, mce, nvme, kernel, oom, peermem, nic
	Bus     string `json:"bus,omitempty"`  // PCI address as in sysfs
	Code    int    `json:"code,omitempty"` // of xid and sxid
	Link    *int   `json:"link,omitempty"` // of an NVSwitch
	Level   Level  `json:"level"`
	Meaning string `json:"meaning"`
	Action  string `json:"action,omitempty"` // what to do next
	Text    string `json:"text"`             // the kernel's words
}

// GPU is what NVRM says of a GPU before its first Xid.
type GPU struct {
	Bus    string `json:"bus"`
	UUID   string `json:"uuid,omitempty"`
	Serial string `json:"serial,omitempty"`
}

// errNone says that no line is of a kernel log.
var errNone = errors.New("no line of a kernel log in it")

// longest is how much of a line is kept.
const longest = 400

// stamps are the ways in which lines begin: dmesg, dmesg -T, both with -x,
// journalctl in its short form, whose months are of any language, and ISO forms,
// and /dev/kmsg.
var stamps = []*lazyregexp.Regexp{
	lazyregexp.New(`^\s*(?:<\d+>|[a-z]+ *:[a-z]+ *: )?\[ *(\d+\.\d+|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]\s?`),
	lazyregexp.New(`^\s*((?:\p{L}{2,5}\.?|\d{1,2}月) [ \d]\d \d\d:\d\d:\d\d) \S+ kernel:\s(?:\[ *\d+\.\d+\]\s)?`),
	lazyregexp.New(`^\s*(?:[a-z]+ *:[a-z]+ *: )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.,:+Z-]*) (?:\S+ kernel: )?(?:\[ *\d+\.\d+\]\s)?`),
	lazyregexp.New(`^\s*\d+,\d+,(\d+),[-cf][^;]{0,80};`),
}

// splitTimestamp takes the time off a line; false if it has none.
func splitTimestamp(line string) (time, rest string, ok bool) {
	if time, rest, ok = cutStamp(line); ok {
		return time, rest, true
	}
	for _, s := range stamps {
		if m := s.FindStringSubmatch(line); m != nil {
			return m[1], line[len(m[0]):], true
		}
	}
	return "", line, false
}

func matchFormat(b []byte) int {
	stamped, total, events := 0, 0, false
	for raw := range bytes.Lines(b) {
		if total++; total > 2000 {
			break
		}
		line := string(raw[:min(len(raw), 4*longest)])
		_, rest, ok := splitTimestamp(line)
		if ok {
			stamped++
		}
		if _, found := parseEvent(rest); found {
			events = true
		}
	}
	switch {
	case events && stamped > 0:
		return 88
	case events:
		return 70
	case stamped > 2 && stamped*2 > total:
		return 40
	}
	return 0
}

// Parse reads a kernel log. A fatal event is a problem of kind failed too.
func Parse(b []byte) (Log, tool.Problems, error) {
	s := NewStream()
	for raw := range bytes.Lines(b) {
		s.Line(string(raw))
	}
	return s.End()
}

// mostEvents is how many events a Stream keeps at most.
const mostEvents = 60_000

// Stream reads a log line by line, so that nothing but its events is kept. It is not
// safe for concurrent use.
type Stream struct {
	l        Log
	problems tool.Problems
	stamped  int
	last     string // bus of the line above
	lost     bool
}

// NewStream returns a Stream that has read nothing.
func NewStream() *Stream { return &Stream{l: Log{Events: []Event{}}} }

// Line reads the next line.
func (s *Stream) Line(line string) { s.read(line) }

// read reads the next line, and reports whether it begins as those of a kernel log do.
func (s *Stream) read(line string) (stamped bool) {
	s.l.Lines++
	line = strings.TrimRight(line, "\r\n")
	time, rest, ok := splitTimestamp(line)
	if ok {
		s.stamped++
	}
	s.last = s.l.identity(rest, s.last)
	e, found := parseEvent(rest)
	if !found {
		return ok
	}
	if s.lost = s.lost || len(s.l.Events) == mostEvents; s.lost {
		return ok
	}
	e.Line, e.Time, e.Text = s.l.Lines, strings.Clone(time), strings.Clone(rest[:min(len(rest), longest)])
	s.l.Events = append(s.l.Events, e)
	if e.Level == Fatal {
		s.problems.Add(tool.Failed, e.Line, "%s", e)
	}
	return ok
}

// Lost reports whether there were more events than are kept; those that came first
// are.
func (s *Stream) Lost() bool { return s.lost }

// End returns what was read, as Parse does.
func (s *Stream) End() (Log, tool.Problems, error) {
	if s.stamped == 0 && len(s.l.Events) == 0 {
		return Log{}, nil, errNone
	}
	if s.lost {
		s.problems.Add(tool.Truncated, 0, "there are more than %d events: the first ones are shown", mostEvents)
	}
	return s.l, s.problems, nil
}

var (
	nvrmGPU    = lazyregexp.New(`NVRM: GPU at (?:PCI:)?([0-9a-fA-F:.]+): (GPU-[0-9a-f-]+)`)
	nvrmSerial = lazyregexp.New(`NVRM: GPU Board Serial Number: (\S+)`)
)

// identity notes which GPU is at an address. NVRM names the address and then,
// on the next line, the serial number; bus is that of the line above.
func (l *Log) identity(line, bus string) string {
	if !strings.Contains(line, "NVRM: GPU ") {
		return ""
	}
	if m := nvrmGPU.FindStringSubmatch(line); m != nil {
		g := l.gpu(NormalizeAddress(m[1]))
		g.UUID = m[2]
		return g.Bus
	}
	if m := nvrmSerial.FindStringSubmatch(line); m != nil && bus != "" {
		l.gpu(bus).Serial = m[1]
	}
	return ""
}

// gpu returns the GPU at an address, made if it is new; there are never many.
func (l *Log) gpu(bus string) *GPU {
	for i := range l.GPUs {
		if l.GPUs[i].Bus == bus {
			return &l.GPUs[i]
		}
	}
	if len(l.GPUs) == 64 {
		return &GPU{Bus: bus}
	}
	l.GPUs = append(l.GPUs, GPU{Bus: bus})
	return &l.GPUs[len(l.GPUs)-1]
}

// Serial is the serial number that the log gives for the GPU at an address;
// empty if it gives none.
func (l Log) Serial(bus string) string {
	for _, g := range l.GPUs {
		if g.Bus == bus {
			return g.Serial
		}
	}
	return ""
}

// NormalizeAddress returns a PCI address of a kernel message in the form of sysfs: NVRM leaves
// the function out (0000:9b:00) and RM writes eight digits for the domain.
func NormalizeAddress(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, ":"))
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		s = domain[4:] + ":" + rest
	}
	if strings.Count(s, ":") == 1 {
		s = "0000:" + s
	}
	if strings.Count(s, ":") == 2 && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// String is the event for a person.
func (e Event) String() string {
	what := e.Kind
	if e.Code > 0 {
		what = fmt.Sprintf("%s %d", map[string]string{"xid": "Xid", "sxid": "SXid"}[e.Kind], e.Code)
	}
	if e.Bus != "" {
		what += " at " + e.Bus
	}
	return what + ": " + e.Meaning
}

// Summary is a line for the log and one for each kind of event, with the count.
func (l Log) Summary() []string {
	type key struct {
		level Level
		text  string
	}
	counts := map[key]int{}
	var order []key
	for _, e := range l.Events {
		k := key{e.Level, e.String()}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	out := []string{fmt.Sprintf("%d lines, %d events", l.Lines, len(l.Events))}
	for _, k := range order {
		out = append(out, fmt.Sprintf("%s: %s, %d times", k.level, strings.ReplaceAll(k.text, "\n", " "), counts[k]))
	}
	return out
}
