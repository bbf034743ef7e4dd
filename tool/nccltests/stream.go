// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// What a Stream keeps at most. The largest machines have some 100,000 GPUs.
const (
	mostRanks    = 1 << 20
	mostRows     = 1 << 16
	mostPrograms = 64
	mostProblems = 1 << 16
)

// Stream reads the table of a test line by line, beside the log of the library, so
// that no more is kept than the ranks, the rows and what went wrong. Files of -J and
// records are for Parse. It is not safe for concurrent use.
type Stream struct {
	r        *reader
	problems tool.Problems
	lost     string // what is more than can be kept; "": nothing
}

// NewStream returns a Stream that has read nothing.
func NewStream() *Stream {
	s := new(Stream)
	s.r = &reader{problems: &s.problems}
	return s
}

// stream is a Stream as tool.Format has it, of a table.
func stream(begin []byte) (tool.Stream, bool) {
	if isJSON(begin) || csvHead.Match(begin) {
		return tool.Stream{}, false
	}
	s := NewStream()
	return tool.Stream{
		Line: func(line string) bool {
			s.Line(line)
			return strings.Contains(line, "NCCL ") || strings.HasPrefix(line, "#") || begun.MatchString(line)
		},
		End: func() (any, tool.Problems, error) {
			c, problems, err := s.End()
			if s.lost != "" {
				problems.Add(tool.Truncated, s.r.line, "there are %s: the output was read up to there", s.lost)
			}
			return c, problems, err
		},
	}, true
}

// Line reads the next line, without its line break.
func (s *Stream) Line(line string) {
	if s.lost != "" {
		return
	}
	s.r.line++
	s.r.read(strings.TrimRight(line, " \t\r"))
	if len(s.r.tests) == 0 {
		return
	}
	switch t := s.r.test(); {
	case len(t.Ranks) > mostRanks:
		s.lost = fmt.Sprintf("more than %d ranks", mostRanks)
	case len(t.Rows) > mostRows:
		s.lost = fmt.Sprintf("more than %d rows", mostRows)
	case len(s.problems) > mostProblems:
		s.lost = fmt.Sprintf("more than %d problems", mostProblems)
	case len(s.r.tests) > mostPrograms:
		s.lost = fmt.Sprintf("more than %d tests", mostPrograms)
	}
}

// Lost is what the output has too much of to be kept; the content is not whole then.
func (s *Stream) Lost() string { return s.lost }

// End returns what was read, as Parse does. It is called once.
func (s *Stream) End() (Content, tool.Problems, error) {
	s.r.drop()
	s.r.finish()
	return concludeTests(s.r.tests, &s.problems)
}

// concludeTests checks the tests of one output.
func concludeTests(tests []Test, problems *tool.Problems) (Content, tool.Problems, error) {
	if len(tests) == 0 {
		return Content{}, nil, fmt.Errorf("there is no test of nccl-tests in it")
	}
	for i := range tests {
		deduceRanks(&tests[i])
		checkTest(&tests[i], problems)
	}
	slices.SortStableFunc(*problems, func(a, b tool.Problem) int { return problemOrder(a) - problemOrder(b) })
	return Content{Test: tests[0], More: tests[1:]}, *problems, nil
}
