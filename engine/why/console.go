// SPDX-License-Identifier: Apache-2.0

package why

import "strings"

// Screen turns what a serial console prints into lines: escape sequences of
// terminals (ECMA-48) and other control characters are left out, and a line ends
// at a line feed or after maxLine bytes. It is an io.Writer that never fails. What
// lines hold is text from outside. It is not safe for concurrent use.
type Screen struct {
	Line func(string) // called for each line that is not empty

	line  []byte
	state escape
}

// maxLine bounds one line of a console.
const maxLine = 1024

// escape is where in an escape sequence a Screen is.
type escape int

// The states.
const (
	plainText escape = iota
	escaped          // after ESC
	inside           // of a control sequence, ESC [ ...
	returned         // after CR: what follows writes over the line
)

// Write takes what was printed.
func (s *Screen) Write(b []byte) (int, error) {
	for _, c := range b {
		s.put(c)
	}
	return len(b), nil
}

// Flush ends a line that was begun.
func (s *Screen) Flush() {
	if text := strings.TrimSpace(string(s.line)); text != "" {
		s.Line(text)
	}
	s.line = s.line[:0]
}

func (s *Screen) put(c byte) {
	was := s.state
	s.state = plainText
	switch {
	case c == 0x1b:
		s.state = escaped
	case was == escaped && c == '[':
		s.state = inside
	case was == escaped:
	case was == inside:
		s.sequence(c)
	case c == '\n':
		s.Flush()
	case c == '\r':
		s.state = returned
	case c == '\t':
		s.line = append(s.line, ' ')
	case c < ' ' || c == 0x7f:
		s.state = was
	default:
		if was == returned {
			s.Flush()
		}
		s.line = append(s.line, c)
	}
	if len(s.line) >= maxLine {
		s.Flush()
	}
}

// sequence takes one byte of a control sequence. One that moves the cursor or
// clears the screen begins another line: menus of firmware have no line feeds.
func (s *Screen) sequence(c byte) {
	switch {
	case c < 0x40 || c > 0x7e:
		s.state = inside
	case c == 'H' || c == 'f' || c == 'J':
		s.Flush()
	}
}
