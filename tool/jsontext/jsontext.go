// SPDX-License-Identifier: Apache-2.0

// Package jsontext makes valid JSON of what programs print as JSON: cut off when
// the program was killed, with inf and nan where C's printf wrote them, with a
// comma behind the last value, and with other text before and behind it.
package jsontext

import "bytes"

// maxDepth is how deep objects and lists may lie in one another.
const maxDepth = 256

// Text is a JSON object or list that was found in a text.
type Text struct {
	Data []byte // valid JSON as far as brackets, strings and numbers go
	Line int    // that it begins on, from 1
	Cut  bool   // it ended before its end, and was closed after its last whole value
}

// Find returns the first object or list of a text that begins on a line of its
// own: no character but blanks stands before it. False when there is none.
func Find(data []byte) (Text, bool) {
	line := 1
	for rest := data; len(rest) > 0; line++ {
		l, after, _ := bytes.Cut(rest, []byte("\n"))
		if start := bytes.TrimLeft(l, " \t\r"); len(start) > 0 && (start[0] == '{' || start[0] == '[' && opensList(rest)) {
			s := scanner{in: rest[len(l)-len(start):]}
			s.scan()
			return Text{Data: s.out, Line: line, Cut: s.cut}, true
		}
		rest = after
	}
	return Text{}, false
}

// opensList reports whether a bracket begins a list of objects, not a label of a
// log line such as "[0] NCCL INFO".
func opensList(data []byte) bool {
	rest := bytes.TrimLeft(bytes.TrimLeft(data, " \t\r")[1:], " \t\r\n")
	return len(rest) > 0 && rest[0] == '{'
}

// scanner copies one JSON value, and knows after which of its bytes it could be
// closed.
type scanner struct {
	in, out []byte
	stack   []byte // closing brackets that are due, innermost last
	at      int
	whole   int    // length of out after the last whole value
	open    []byte // the stack there
	key     bool   // a string that comes is a key
	cut     bool
}

func (s *scanner) scan() {
	for s.at < len(s.in) {
		if !s.next() {
			break
		}
		if len(s.stack) == 0 {
			return
		}
	}
	s.cut = true
	s.out = s.out[:s.whole]
	for i := len(s.open) - 1; i >= 0; i-- {
		s.out = append(s.out, s.open[i])
	}
}

// next copies one token; false when the text cannot go on.
func (s *scanner) next() bool {
	c := s.in[s.at]
	switch {
	case c == '{' || c == '[':
		if len(s.stack) == maxDepth {
			return false
		}
		s.stack = append(s.stack, c+2) // in ASCII, '}' is '{'+2 and ']' is '['+2
		s.copy(1)
		s.mark()
		s.key = c == '{'
	case c == '}' || c == ']':
		if s.stack[len(s.stack)-1] != c {
			return false
		}
		s.stack = s.stack[:len(s.stack)-1]
		if out, ok := bytes.CutSuffix(bytes.TrimRight(s.out, " \t\r\n"), []byte(",")); ok { // one too many
			s.out = out
		}
		s.copy(1)
		s.mark()
	case c == '"':
		return s.text()
	case c == ':':
		s.copy(1)
		s.key = false
	case c == ',':
		s.copy(1)
		s.key = s.stack[len(s.stack)-1] == '}'
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.copy(1)
	default:
		return s.bare()
	}
	return true
}

func (s *scanner) copy(n int) {
	s.out = append(s.out, s.in[s.at:s.at+n]...)
	s.at += n
}

// mark notes that the value could end here.
func (s *scanner) mark() {
	s.whole = len(s.out)
	s.open = append(s.open[:0], s.stack...)
}

// text copies a string. Bytes below a blank, which JSON does not allow in it, are
// copied as blanks; an escape that JSON does not have loses its backslash.
func (s *scanner) text() bool {
	i := s.at + 1
	for i < len(s.in) && s.in[i] != '"' {
		if s.in[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s.in) {
		return false
	}
	s.out = append(s.out, '"')
	for j := s.at + 1; j < i; j++ {
		switch b := s.in[j]; {
		case b < ' ':
			s.out = append(s.out, ' ')
		case b == '\\' && bytes.IndexByte([]byte(`"\/bfnrtu`), s.in[j+1]) < 0:
		case b == '\\':
			s.out = append(s.out, b, s.in[j+1])
			j++
		default:
			s.out = append(s.out, b)
		}
	}
	s.out = append(s.out, '"')
	s.at = i + 1
	if !s.key {
		s.mark()
	}
	return true
}

// bare copies a number or a word; what C prints for infinite and not a number is
// null. A number at the very end may be cut, so it does not count as whole.
func (s *scanner) bare() bool {
	n := bytes.IndexAny(s.in[s.at:], ",:]}\" \t\r\n[{")
	if n < 0 {
		return false
	}
	word := s.in[s.at : s.at+n]
	switch string(bytes.ToLower(bytes.TrimLeft(word, "+-"))) {
	case "inf", "infinity", "nan", "nan(ind)":
		s.out = append(s.out, "null"...)
		s.at += n
	default:
		s.copy(n)
	}
	if !s.key {
		s.mark()
	}
	return true
}
