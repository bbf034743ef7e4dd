// SPDX-License-Identifier: Apache-2.0

// Package fabricmanager reads the log of NVIDIA Fabric Manager, the service that
// sets the NVSwitches of an HGX board up: /var/log/fabricmanager.log, or what
// journalctl -u nvidia-fabricmanager shows of it.
package fabricmanager

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Formats is the log of Fabric Manager.
var Formats = []tool.Format{{
	Name: "fabricmanager", Is: matchFormat,
	Parse: func(b []byte) (any, tool.Problems, error) {
		l, p, err := Parse(b)
		if err != nil {
			return nil, p, err
		}
		return l, p, nil
	},
	Stream: stream,
}}

// Log is what Fabric Manager did and met.
type Log struct {
	Version string `json:"version,omitempty"` // has to be that of the driver
	Build   string `json:"build,omitempty"`
	// Configured is whether the last start ended with all switches set up; nil
	// where the log shows no start.
	Configured *bool   `json:"configured"`
	Lines      Counts  `json:"lines"`
	Errors     []Error `json:"errors"`
}

// Counts is how many lines there are of each level.
type Counts struct {
	Info    int `json:"info"`
	Warning int `json:"warning"`
	Error   int `json:"error"`
}

// Error is a line of level ERROR, CRITICAL or FATAL.
type Error struct {
	Line int    `json:"line"`
	Time string `json:"time,omitempty"`
	Text string `json:"text"`
	// The following are of NVSwitch errors.
	Fatal bool   `json:"fatal,omitempty"`
	SXid  int    `json:"sxid,omitempty"`
	Bus   string `json:"bus,omitempty"` // of the switch, as in sysfs
	Port  *int   `json:"port,omitempty"`
}

// errNone says that there is no line of Fabric Manager.
var errNone = errors.New("no line of Fabric Manager in it")

var (
	// logBegin is a line of the log up to "] [tid 1584] ", after which its text stands.
	logBegin = lazyregexp.New(`^\s*\[([A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d)\] \[(INFO|WARNING|ERROR|CRITICAL|FATAL|DEBUG|NOTICE)$`)

	journal = lazyregexp.New(`^\s*(?:(\S+ +\d+ [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ )?(?:nv-fabricmanager|nvidia-fabricmanager-start\.sh)\[\d+\]: (.*)$`)
	// service is what systemd says of it, in the journal and above it in systemctl status.
	service = lazyregexp.New(`^\s*(?:(\S+ +\d+ [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ systemd\[\d+\]: (nvidia-fabricmanager\.service: .*|Failed to start .*[fF]abric [mM]anager.*)|(Active: failed.*))$`)
	version = lazyregexp.New(`(?i)fabric ?manager version(?: is)?:? ?(\d+\.\d+(?:\.\d+)?)`)
	build   = lazyregexp.New(`(?i)^build(?: is)?:? ?(.+)$`)
	nvError = lazyregexp.New(`detected NVSwitch (non-fatal|fatal) error (\d+)(?: on fid \d+)?(?: on NVSwitch)?(?:.*?pci bus id (\S+))?(?:.*?port (\d+))?`)
	done    = lazyregexp.New(`(?i)successfully configured all the available .*NVSwitches|successfully configured NVSwitches`)
	broken  = lazyregexp.New(`(?i)^(?:failed to|fabric manager .*(?:failed|aborted|mismatch)|error|.*(?:does not exist|don't match|doesn't match|version mismatch|exit code: [1-9]|code=exited, status=[1-9]|failed with result|has an invalid value|active: failed|not loaded|unable to open|request to query NVSwitch))`)
)

func matchFormat(b []byte) int {
	sure, n := 0, 0
	for raw := range bytes.Lines(b) {
		if n++; n > 500 {
			break
		}
		line := strings.TrimRight(string(raw), "\r\n")
		if _, _, _, ok := cutLog(line); ok || journal.MatchString(line) {
			sure = 85
		}
	}
	return sure
}

// Parse reads a log. Lines of level ERROR and above are problems of kind failed.
func Parse(b []byte) (Log, tool.Problems, error) {
	r := newReader()
	for raw := range bytes.Lines(b) {
		r.add(string(raw))
	}
	return r.end()
}

// stream reads a log line by line: nothing but its errors is kept.
func stream([]byte) (tool.Stream, bool) {
	r := newReader()
	return tool.Stream{Line: r.add, End: func() (any, tool.Problems, error) { return r.end() }}, true
}

// mostErrors is how many errors are kept.
const mostErrors = 40_000

// reader reads a log line by line.
type reader struct {
	log      Log
	problems tool.Problems
	line     int
	lost     bool // there were more errors than are kept
}

func newReader() *reader { return &reader{log: Log{Errors: []Error{}}} }

// add takes the next line, and reports whether it is one of Fabric Manager.
func (r *reader) add(line string) bool {
	r.line++
	line = strings.TrimRight(line, "\r\n")
	if time, level, text, ok := cutLog(line); ok {
		r.read(time, level, text)
		return true
	}
	if strings.Contains(line, "fabricmanager") {
		if m := journal.FindStringSubmatch(line); m != nil {
			r.read(splitJournalLine(m[1], m[2]))
			return true
		}
	}
	if strings.Contains(line, "systemd") || strings.Contains(line, "Active:") {
		if m := service.FindStringSubmatch(line); m != nil && broken.MatchString(m[2]+m[3]) {
			r.read(m[1], "ERROR", m[2]+m[3])
			return true
		}
	}
	return false // the rest of a message
}

// cutLog returns the parts of a line of the log.
func cutLog(line string) (time, level, text string, ok bool) {
	begin, rest, _ := strings.Cut(line, "] [tid ")
	thread, text, ok := strings.Cut(rest, "]")
	if !ok {
		return "", "", "", false
	}
	if _, err := strconv.ParseUint(thread, 10, 64); err != nil {
		return "", "", "", false
	}
	m := logBegin.FindStringSubmatch(begin)
	if m == nil {
		return "", "", "", false
	}
	return m[1], m[2], strings.TrimPrefix(text, " "), true
}

func (r *reader) end() (Log, tool.Problems, error) {
	if r.log.Lines == (Counts{}) {
		return Log{}, nil, errNone
	}
	if r.lost {
		r.problems.Add(tool.Truncated, 0, "there are more than %d errors: the first ones are shown", mostErrors)
	}
	return r.log, r.problems, nil
}

// splitJournalLine returns a message that the journal has: a line of the log where it writes
// that to the terminal, as on systems with NVLink 5, or a text alone, whose level is
// not said.
func splitJournalLine(at, message string) (time, level, text string) {
	if time, level, text, ok := cutLog(message); ok {
		return time, level, text
	}
	if broken.MatchString(message) || nvError.MatchString(message) {
		return at, "ERROR", message
	}
	return at, "INFO", message
}

// read takes one message.
func (r *reader) read(time, level, text string) {
	l, lower := &r.log, strings.ToLower(text)
	if strings.Contains(lower, "version") {
		if m := version.FindStringSubmatch(text); m != nil {
			no := false
			l.Version, l.Configured = strings.Clone(m[1]), &no // a start
		}
	}
	if strings.HasPrefix(lower, "build") {
		if m := build.FindStringSubmatch(text); m != nil {
			l.Build = strings.Clone(strings.TrimSpace(m[1]))
		}
	}
	if strings.Contains(lower, "successfully configured") && done.MatchString(text) {
		yes := true
		l.Configured = &yes
	}
	switch level {
	case "WARNING":
		l.Lines.Warning++
	case "ERROR", "CRITICAL", "FATAL":
		l.Lines.Error++
		r.fail(time, text)
	default:
		l.Lines.Info++
	}
}

// fail takes a message of an error.
func (r *reader) fail(time, text string) {
	if len(r.log.Errors) == mostErrors {
		r.lost = true
		return
	}
	text = strings.Clone(text)
	e := Error{Line: r.line, Time: strings.Clone(time), Text: text}
	if m := nvError.FindStringSubmatch(text); m != nil {
		e.Fatal = m[1] == "fatal"
		e.SXid, _ = strconv.Atoi(m[2])
		e.Bus = findAddress(m[3])
		if port, err := strconv.Atoi(m[4]); err == nil {
			e.Port = &port
		}
	}
	r.log.Errors = append(r.log.Errors, e)
	r.problems.Add(tool.Failed, r.line, "Fabric Manager says: %s", text)
}

// findAddress returns a PCI address with the domain of sysfs.
func findAddress(s string) string {
	s = strings.ToLower(s)
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return s
}

// Summary is a line for the whole and one for each error, at most twenty.
func (l Log) Summary() []string {
	state := "no start of it in the log"
	if l.Configured != nil {
		state = "its last start did not end with all switches set up"
		if *l.Configured {
			state = "all switches set up"
		}
	}
	v := l.Version
	if v == "" {
		v = "of unknown version"
	}
	out := []string{fmt.Sprintf("Fabric Manager %s: %s; %d errors, %d warnings", v, state, l.Lines.Error, l.Lines.Warning)}
	for i, e := range l.Errors {
		if i == 20 {
			out = append(out, fmt.Sprintf("and %d more", len(l.Errors)-i))
			break
		}
		out = append(out, strings.TrimSpace(e.Time+" "+e.Text))
	}
	return out
}
