// SPDX-License-Identifier: Apache-2.0

// Package opensmlog reads the log of opensm, the subnet manager of InfiniBand:
// /var/log/opensm.log. Source: linux-rdma/opensm, opensm/osm_log.c (the form of a
// line) and include/opensm/osm_log.h (its levels).
package opensmlog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Name is the kind's name.
const Name = "opensm-log"

// Log is what a subnet manager did and met.
type Log struct {
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`          // the last that it entered: MASTER, STANDBY, DISCOVERING, NOT-ACTIVE; EXITED
	Engine  string `json:"routing_engine,omitempty"` // that set the last tables
	Sweeps  int    `json:"sweeps"`                   // that ended with the subnet up
	// Ready is whether the subnet was up after the last sweep; nil where no sweep is in the log.
	Ready  *bool   `json:"subnet_up"`
	Lines  int     `json:"lines"`
	Errors []Entry `json:"errors"`
}

// Entry is a line of level ERROR, or one in which opensm says that it could not do
// what its files ask for.
type Entry struct {
	Line int    `json:"line"`
	Time string `json:"time"`           // of the host, without a year
	Code string `json:"code,omitempty"` // four hexadecimal digits, as in "ERR 5411"
	From string `json:"from,omitempty"` // the function
	Text string `json:"text"`
}

// Format is what recognises and reads this log.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		if stamp.Match(data) {
			return 90
		}
		return 0
	},
	Parse:  func(data []byte) (any, tool.Problems, error) { return Parse(data) },
	Stream: stream,
}

// levelError is the level of an error. Lines that are written at any level, as that of the
// version, have several bits.
const levelError = "0x01"

// mostShown is how many errors of one code are problems of their own.
const mostShown = 5

var (
	stamp = lazyregexp.New(`(?m)^[ \t]*([A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{6}) \[[0-9A-F]+\] (0x[0-9a-fA-F]{2}) -> (.*)$`)
	// A line without its level and its text: begin and end of what stamp says.
	stampBegin  = lazyregexp.New(`^[ \t]*([A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{6}) \[[0-9A-F]+$`)
	levelDigits = lazyregexp.New(`^[0-9a-fA-F]{2}$`)

	version = lazyregexp.New(`^OpenSM (\S+)`)
	state   = lazyregexp.New(`^(?:SM port is down|Entering (DISCOVERING|MASTER|STANDBY|NOT[- ]ACTIVE) state|(Exiting) SM)`)
	engine  = lazyregexp.New(`ucast_mgr_process: (\S+) tables configured on all switches`)
	code    = lazyregexp.New(`^(\w+): ERR ([0-9A-F]{4}): (.*)$`)
	from    = lazyregexp.New(`^(\w+): (.*)$`)
)

// troubles are what opensm logs below the level of errors, or once, when it continues
// without what its files ask for: after a syntax error in partitions.conf the subnet comes
// up, with no isolation.
var troubles = []string{
	"PARSE ERROR", "Partition configuration in error", "cannot find or setup routing engine", "Failed to setup routing engine",
	"cannot build lid matrices", "Found more than one root", "cannot parse node map", "Failed to parse", "duplicated GUID",
	"Errors during initialization", "SM port is down", "Fatal: ", "credit loops",
}

// Parse reads a log. Errors are problems of kind failed; of one code, the first few.
func Parse(data []byte) (*Log, tool.Problems, error) {
	r := newReader()
	for line := range strings.SplitSeq(string(data), "\n") {
		r.add(line)
	}
	return r.end()
}

// stream reads a log line by line: nothing but its errors is kept.
func stream([]byte) (tool.Stream, bool) {
	r := newReader()
	return tool.Stream{Line: r.add, End: func() (any, tool.Problems, error) { return r.end() }}, true
}

func newReader() *reader {
	return &reader{log: Log{Errors: []Entry{}}, few: ibdiags.Few{Limit: mostShown}}
}

// add takes the next line, and reports whether it is one of opensm.
func (r *reader) add(line string) bool {
	r.line++
	if at, level, text, ok := cutStamp(line); ok {
		r.read(at, level, strings.TrimRight(text, " \t\r"))
		return true
	}
	if strings.TrimSpace(line) != "" {
		r.torn = strings.Contains(line, " [") && !strings.Contains(line, " -> ") && begun.MatchString(line)
	}
	return false
}

// cutStamp returns the parts of a line of opensm: its time, its level and its text.
func cutStamp(line string) (at, level, text string, ok bool) {
	begin, rest, _ := strings.Cut(line, "] 0x")
	if len(rest) < len("00 -> ") || rest[2:6] != " -> " {
		return "", "", "", false
	}
	m := stampBegin.FindStringSubmatch(begin)
	if m == nil || !levelDigits.MatchString(rest[:2]) {
		return "", "", "", false
	}
	return m[1], "0x" + rest[:2], rest[6:], true
}

func (r *reader) end() (*Log, tool.Problems, error) {
	if r.log.Lines == 0 {
		return nil, nil, errors.New("no line of opensm in it")
	}
	r.few.Rest(&r.problems)
	if r.lost {
		r.problems.Add(tool.Truncated, 0, "There are more than %d errors: the first ones are shown.", mostErrors)
	}
	if r.torn {
		r.problems.Add(tool.Truncated, 0, "The log ends within its last line.")
	}
	if r.log.Ready != nil && !*r.log.Ready {
		r.problems.Add(tool.Failed, 0, "The last sweep did not end with the subnet up.")
	}
	return &r.log, r.problems, nil
}

// mostErrors is how many errors are kept.
const mostErrors = 100_000

// begun is a line that ends within its stamp.
var begun = lazyregexp.New(`^[ \t]*[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{6} \[`)

type reader struct {
	log      Log
	problems tool.Problems
	few      ibdiags.Few
	line     int
	torn     bool
	lost     bool // there were more errors than are kept
}

// read takes a line: its time, its level and its text.
func (r *reader) read(at, level, text string) {
	r.log.Lines++
	r.torn = false
	if m := version.FindStringSubmatch(text); m != nil {
		r.log.Version = m[1]
	}
	if m := engine.FindStringSubmatch(text); m != nil {
		r.log.Engine = m[1]
	}
	r.state(text)
	if level != levelError && !isTrouble(text) {
		return
	}
	if len(r.log.Errors) == mostErrors {
		r.lost = true
		return
	}
	at, text = strings.Clone(at), strings.Clone(text)
	e := Entry{Line: r.line, Time: at, Text: text}
	if m := code.FindStringSubmatch(text); m != nil {
		e.From, e.Code, e.Text = m[1], m[2], m[3]
	} else if m := from.FindStringSubmatch(text); m != nil {
		e.From, e.Text = m[1], m[2]
	}
	r.log.Errors = append(r.log.Errors, e)
	sort := "lines of errors without a code"
	if e.Code != "" {
		sort = "errors of code " + e.Code
	}
	r.few.Add(&r.problems, sort, tool.Failed, r.line, "opensm says: %s", text)
}

// state follows what the manager is and whether the subnet is up.
func (r *reader) state(text string) {
	up := strings.HasPrefix(text, "SUBNET UP")
	if up || strings.Contains(text, "Errors during initialization") {
		r.log.Ready = &up
	}
	if up {
		r.log.Sweeps++
	}
	if m := state.FindStringSubmatch(text); m != nil {
		switch {
		case m[1] != "":
			r.log.State = strings.ReplaceAll(m[1], " ", "-")
		case m[2] != "":
			r.log.State = "EXITED"
		}
	}
}

func isTrouble(text string) bool {
	for _, words := range troubles {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// Summary is a line for the whole and one for each error, at most twenty.
func (l *Log) Summary() []string {
	known := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	out := []string{fmt.Sprintf("opensm %s: state %s, routing engine %s, %d sweeps ended with the subnet up; %d errors in %d lines", known(l.Version), known(l.State), known(l.Engine), l.Sweeps, len(l.Errors), l.Lines)}
	for i, e := range l.Errors {
		if i == 20 {
			return append(out, fmt.Sprintf("and %d more", len(l.Errors)-i))
		}
		out = append(out, strings.TrimSpace(e.Time+" "+e.Code+" "+e.Text))
	}
	return out
}
