// SPDX-License-Identifier: Apache-2.0

// Package ibdiagnet reads what ibdiagnet of NVIDIA's ibutils2 writes: its log, which it
// prints as well, and its database of the subnet, ibdiagnet2.db_csv. Sources: NVIDIA's
// manual of ibdiagnet, and the forms of lines and sections that public readers of it
// handle; the program itself is closed, and was not run.
package ibdiagnet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/ibdiags"
)

// Formats are the log and the database.
var Formats = []tool.Format{
	{
		Name: "ibdiagnet",
		Is: func(data []byte) int {
			if summary.Match(data) || ended.Match(data) {
				return 92
			}
			return 0
		},
		Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
	},
	{
		Name: "ibdiagnet-db",
		Is: func(data []byte) int {
			if start.Match(data) && columns.Match(data) {
				return 92
			}
			return 0
		},
		Parse: func(data []byte) (any, tool.Problems, error) { return ParseDatabase(data) },
	},
}

// Report is what a run found.
type Report struct {
	Nodes    int       `json:"nodes,omitempty"` // discovered
	Switches int       `json:"switches,omitempty"`
	Stages   []Stage   `json:"stages"`   // of the summary, which comes last
	Messages []Message `json:"messages"` // warnings and errors
}

// Stage is a line of the summary.
type Stage struct {
	Name     string `json:"name"`
	Warnings int    `json:"warnings"`
	Errors   int    `json:"errors"`
	Comment  string `json:"comment,omitempty"`
}

// Message is a warning or an error, with the lines below it that belong to it.
type Message struct {
	Line    int      `json:"line"`
	Stage   string   `json:"stage,omitempty"`
	Error   bool     `json:"error"` // else it is a warning
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
}

// mostShown is how many problems of a sort are written out.
const mostShown = 10

var (
	summary    = lazyregexp.New(`(?m)^[ \t]*-I- +Stage +Warnings +Errors`)
	ended      = lazyregexp.New(`(?m)^[ \t]*-[IE]- +[A-Z][\w ()/-]+ finished (?:successfully|with errors)[ \t]*\r?$`)
	message    = lazyregexp.New(`^-([IWE])-\s*(.*)$`)
	stage      = lazyregexp.New(`^(\S.*?) {2,}(\d+) +(\d+)(?: +(\S.*))?$`)
	discovered = lazyregexp.New(`(\d+) nodes \((\d+) Switches & \d+ CA-?s\) discovered`)
	rule       = lazyregexp.New(`^-{20,}$`)
)

// Parse reads a log. Errors of the run are problems of kind failed.
func Parse(data []byte) (*Report, tool.Problems, error) {
	r := logReader{report: Report{Stages: []Stage{}, Messages: []Message{}}, few: ibdiags.Few{Limit: mostShown}}
	known := false
	for line := range strings.SplitSeq(string(data), "\n") {
		r.line++
		text := strings.TrimSpace(line)
		known = known || message.MatchString(text)
		r.read(text)
	}
	if !known {
		return nil, nil, errors.New("no line of ibdiagnet in it")
	}
	r.finish()
	return &r.report, r.problems, nil
}

type logReader struct {
	report   Report
	problems tool.Problems
	few      ibdiags.Few
	line     int
	named    bool   // the line above is a rule: a stage's name follows
	stage    string // that runs
	table    bool   // the summary's lines follow
	open     bool   // lines that follow belong to the last message
}

func (r *logReader) read(text string) {
	named := r.named
	r.named = false
	m := message.FindStringSubmatch(text)
	switch {
	case rule.MatchString(text):
		r.named, r.open, r.table = true, false, false
	case text == "":
		r.open, r.table = false, false
	case named && m == nil:
		r.stage = text
	case m != nil && r.table && m[1] == "I":
		r.count(m[2])
	case m != nil && summary.MatchString(text):
		r.table, r.open = true, false
	case m != nil:
		r.message(m[1], m[2])
	case r.open:
		last := &r.report.Messages[len(r.report.Messages)-1]
		last.Details = append(last.Details, text)
	}
}

// message takes a line of a level.
func (r *logReader) message(level, text string) {
	r.open = level != "I"
	if d := discovered.FindStringSubmatch(text); d != nil {
		r.report.Nodes, _ = strconv.Atoi(d[1]) // digits
		r.report.Switches, _ = strconv.Atoi(d[2])
	}
	if level != "I" {
		r.report.Messages = append(r.report.Messages, Message{Line: r.line, Stage: r.stage, Error: level == "E", Text: text})
	}
}

// count takes a line of the summary.
func (r *logReader) count(text string) {
	m := stage.FindStringSubmatch(text)
	if m == nil {
		r.few.Add(&r.problems, "lines of the summary", tool.Truncated, r.line, "The line of a stage ends before its end.")
		return
	}
	s := Stage{Name: m[1], Comment: m[4]}
	s.Warnings, _ = strconv.Atoi(m[2]) // digits
	s.Errors, _ = strconv.Atoi(m[3])
	r.report.Stages = append(r.report.Stages, s)
}

// finish makes problems of the errors, and compares them with the summary.
func (r *logReader) finish() {
	said := map[string]bool{}
	for _, m := range r.report.Messages {
		if !m.Error || strings.HasSuffix(m.Text, "finished with errors") {
			continue
		}
		said[m.Stage] = true
		text := m.Text
		if len(m.Details) > 0 {
			text += " / " + strings.Join(m.Details[:min(len(m.Details), 4)], " / ")
		}
		r.few.Add(&r.problems, "errors of "+m.Stage, tool.Failed, m.Line, "ibdiagnet says: %s", text)
	}
	r.few.Rest(&r.problems)
	for _, s := range r.report.Stages {
		if s.Errors > 0 && !said[s.Name] {
			r.problems.Add(tool.Failed, 0, "Stage %q has %d errors, which are not here: they are in ibdiagnet2.log.", s.Name, s.Errors)
		}
	}
	if len(r.report.Stages) == 0 {
		r.problems.Add(tool.Truncated, 0, "The summary, which comes last, is not there.")
	}
}

// Summary counts what was found, and names the stages with errors or warnings.
func (r *Report) Summary() []string {
	failed, warned := 0, 0
	for _, m := range r.Messages {
		if m.Error {
			failed++
		} else {
			warned++
		}
	}
	head := fmt.Sprintf("%d stages, %d lines of errors and %d of warnings", len(r.Stages), failed, warned)
	if r.Nodes > 0 {
		head = fmt.Sprintf("%d nodes, %d of them switches; %s", r.Nodes, r.Switches, head)
	}
	lines := []string{head}
	for _, s := range r.Stages {
		if s.Errors+s.Warnings > 0 {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %d errors, %d warnings %s", s.Name, s.Errors, s.Warnings, s.Comment)))
		}
	}
	return lines
}
