// SPDX-License-Identifier: Apache-2.0

// Package tool is what other people's programs print: the types that every parser
// of such an output shares. A parser is a package below this one, such as
// tool/nccltests, or below tool/recognise/internal where `ironrail read` alone uses
// it, and one line of the table in tool/recognise. Parsers are pure: bytes in, data
// out. They take any bytes without a panic, in time and memory that grow with the
// input only, and never guess.
package tool

import (
	"fmt"
	"strings"
)

// ProblemKind says what is wrong with an output.
type ProblemKind string

// The kinds of problems.
const (
	Missing      ProblemKind = "missing"      // a part that this output always has is not there
	Truncated    ProblemKind = "truncated"    // it ends, or a line ends, before its end
	Inconsistent ProblemKind = "inconsistent" // it contradicts itself
	Failed       ProblemKind = "failed"       // the program says that something failed
)

// Problem is one thing that is wrong with an output, or that the output says is
// wrong.
type Problem struct {
	Kind ProblemKind `json:"kind"`
	Text string      `json:"text"`           // a sentence; may quote the output, so whoever shows it escapes it
	Line int         `json:"line,omitempty"` // from 1; 0: of the whole
}

// Problems collects problems in the order in which they are found.
type Problems []Problem

// Add notes a problem at a line; 0 is the whole.
func (p *Problems) Add(kind ProblemKind, line int, format string, args ...any) {
	*p = append(*p, Problem{Kind: kind, Line: line, Text: fmt.Sprintf(format, args...)})
}

// IsElision reports whether a line stands for others that somebody left out: "[...]",
// "...", "(snip)". It is no line of any program.
func IsElision(line string) bool {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(line), "[]()<>-*_# ")) {
	case "...", "…", "..", "....", "snip", "snipped", "cut", "truncated", "omitted":
		return true
	}
	return false
}

// Format is one kind of output that can be recognised by its content. Its
// functions are pure and safe for concurrent use.
type Format struct {
	// Name is the tool's name in lower case, such as "nccl-tests".
	Name string
	// Is reports how sure it is that the bytes are of this format: 0 no, 100
	// beyond doubt. It reads no more than it must.
	Is func([]byte) int
	// Parse returns the content, which can be encoded as JSON, and what is wrong
	// with it. An error means that it is not this format after all.
	Parse func([]byte) (any, Problems, error)
	// Merged says that the lines of several ranks or nodes make one output, as
	// those of an MPI job do. Of any other format, the lines of two nodes in one
	// file are refused.
	Merged bool
	// Stream begins to read an output of any length, line by line, in memory that does
	// not grow with it; nil, and false for how an output begins: it is read whole.
	Stream func(begin []byte) (Stream, bool)
}

// Stream reads one output. Its functions are called by one goroutine.
type Stream struct {
	// Line takes the next line, without its end, and reports whether it is surely one of
	// this format.
	Line func(string) bool
	// End returns what Parse of all lines would; it is called once.
	End func() (any, Problems, error)
}

// Summarizer is content that a person can read at a glance. The content of every
// format has it.
type Summarizer interface {
	// Summary returns lines without line breaks; text of the output stands in them
	// as it is, so whoever shows them escapes them.
	Summary() []string
}
