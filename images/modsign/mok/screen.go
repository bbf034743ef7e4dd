// SPDX-License-Identifier: Apache-2.0

package mok

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Size of a screen. Firmware that takes the terminal for a larger one writes beyond the 80 columns and
// 25 rows that every one has (EDK2's TerminalDxe knows 100 by 31 as well).
const (
	rows    = 60
	columns = 200
)

// cell is one character of a screen.
type cell struct {
	char byte // 0: nothing was written; border for what is no ASCII
	back int  // background colour of ECMA-48, 40 to 47; 0: the terminal's own
}

// border stands for the lines of boxes, which terminals draw by different characters.
const border = '|'

// Screen is what a terminal shows that is written to: text at places and its background, as
// firmware draws menus (ECMA-48; EDK2, TerminalDxe). It is an io.Writer that never fails, and
// safe for concurrent use. What it shows is text from outside.
type Screen struct {
	mu       sync.Mutex
	cells    [rows][columns]cell
	row, col int
	back     int
	state    parse
	params   []byte
	writes   int // calls of Write
}

// parse is where in a sequence of characters a screen is.
type parse int

// The states.
const (
	text      parse = iota
	escape          // after ESC
	charset         // after ESC ( or ESC ): one more
	control         // of ESC [
	multibyte       // of a character in UTF-8
)

// Write takes what was printed.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	for _, c := range b {
		s.put(c)
	}
	return len(b), nil
}

func (s *Screen) put(c byte) {
	was := s.state
	s.state = text
	switch {
	case c == 0x1b:
		s.state = escape
	case was == escape:
		s.escaped(c)
	case was == charset:
	case was == control:
		s.control(c)
	case was == multibyte && c >= 0x80 && c < 0xc0:
		s.state = multibyte // its first byte stands for it
	case c < ' ' || c == 0x7f:
		s.motion(c)
	case c >= 0x80:
		s.print(border)
		if c >= 0xc0 {
			s.state = multibyte
		}
	default:
		s.print(c)
	}
}

// escaped takes what follows ESC.
func (s *Screen) escaped(c byte) {
	switch c {
	case '[':
		s.state, s.params = control, s.params[:0]
	case '(', ')':
		s.state = charset
	}
}

// control takes one character of a control sequence.
func (s *Screen) control(c byte) {
	if c >= 0x40 && c <= 0x7e {
		s.sequence(c)
		return
	}
	s.state = control
	if len(s.params) < 32 {
		s.params = append(s.params, c)
	}
}

// print puts one character where the cursor is.
func (s *Screen) print(c byte) {
	if s.col < columns {
		s.cells[s.row][s.col] = cell{c, s.back}
	}
	s.col = min(s.col+1, columns)
}

// motion takes a control character.
func (s *Screen) motion(c byte) {
	switch c {
	case '\r':
		s.col = 0
	case '\b':
		s.col = max(s.col-1, 0)
	case '\n':
		if s.row++; s.row >= rows {
			copy(s.cells[:], s.cells[1:])
			s.row, s.cells[rows-1] = rows-1, [columns]cell{}
		}
	}
}

// sequence takes the end of a control sequence.
func (s *Screen) sequence(c byte) {
	n := parameters(string(s.params))
	first := max(n[0], 1)
	switch c {
	case 'H', 'f':
		second := max(append(n, 1)[1], 1)
		s.row, s.col = min(first, rows)-1, min(second, columns)-1
	case 'A':
		s.row = max(s.row-first, 0)
	case 'B':
		s.row = min(s.row+first, rows-1)
	case 'C':
		s.col = min(s.col+first, columns-1)
	case 'D':
		s.col = max(s.col-first, 0)
	case 'J':
		if n[0] == 2 {
			s.cells = [rows][columns]cell{}
		}
	case 'K':
		if n[0] == 0 {
			clear(s.cells[s.row][min(s.col, columns):])
		}
	case 'm':
		s.attributes(n)
	}
}

// attributes takes what concerns the background.
func (s *Screen) attributes(n []int) {
	for _, v := range n {
		switch {
		case v == 0 || v == 49:
			s.back = 0
		case v >= 40 && v <= 47:
			s.back = v
		}
	}
}

// parameters are the numbers of a control sequence, at least one; what is none is 0.
func parameters(words string) (n []int) {
	for word := range strings.SplitSeq(words, ";") {
		v, _ := strconv.ParseUint(word, 10, 16) // 0 as the standard has it
		n = append(n, int(v))
	}
	return n
}

// field is a text between the borders of a row.
type field struct {
	text string
	back int
}

// view is what a screen shows.
type view struct {
	rows   [][]field // of each row that is not empty
	writes int       // how often it had been written to
}

// changes counts how often the screen was written to.
func (s *Screen) changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// view returns what is shown now.
func (s *Screen) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{writes: s.writes}
	for r := range s.cells {
		if fields := fieldsOf(s.cells[r][:]); len(fields) > 0 {
			v.rows = append(v.rows, fields)
		}
	}
	return v
}

// fieldsOf splits a row.
func fieldsOf(row []cell) (all []field) {
	var b strings.Builder
	back := 0
	end := func() {
		if t := strings.TrimSpace(b.String()); t != "" {
			all = append(all, field{t, back})
		}
		b.Reset()
		back = 0
	}
	for _, c := range row {
		switch {
		case c.char == border:
			end()
		case c.char == 0:
			b.WriteByte(' ')
		default:
			if c.char != ' ' {
				back = c.back
			}
			b.WriteByte(c.char)
		}
	}
	end()
	return all
}

// Lines are the texts that the screen shows, one for each row, without the lines of boxes.
func (s *Screen) Lines() (list []string) {
	for _, r := range s.view().rows {
		var words []string
		for _, f := range r {
			if strings.Trim(f.text, "+-") != "" {
				words = append(words, f.text)
			}
		}
		if len(words) > 0 {
			list = append(list, strings.Join(words, "  "))
		}
	}
	return list
}

// find returns the first field with a text, and the number of its row.
func (v view) find(text string) (field, int, bool) {
	for row, r := range v.rows {
		if i := slices.IndexFunc(r, func(f field) bool { return f.text == text }); i >= 0 {
			return r[i], row, true
		}
	}
	return field{}, 0, false
}

// contains reports whether a field holds a text.
func (v view) contains(text string) bool {
	return slices.ContainsFunc(v.rows, func(r []field) bool {
		return slices.ContainsFunc(r, func(f field) bool { return strings.Contains(f.text, text) })
	})
}
