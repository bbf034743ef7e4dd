// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// The size of what is no terminal, in characters and lines.
const (
	plainWidth  = 100
	plainHeight = 24
)

// isTerminal reports whether a reader or writer is one.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// makeRaw has a terminal pass on each key as it is typed, and returns what puts it back; what is no
// terminal is left as it is.
func makeRaw(in io.Reader) (raw bool, restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, func() {}, nil
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return false, nil, fmt.Errorf("terminal: %w", err)
	}
	return true, func() { _ = term.Restore(int(f.Fd()), before) }, nil
}

// terminalSize is the width and height of the terminal that w writes to.
func terminalSize(w io.Writer) (width, height int) {
	if f, ok := w.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return plainWidth, plainHeight
}

// colors reports whether lines for w have colors (https://no-color.org).
func (a *app) colors(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	no, _ := a.environ("NO_COLOR")
	return no == "" && isTerminal(w)
}

// screenOf is the width of a text for w, and how many lines somebody sees of it at once.
func screenOf(w io.Writer) (width, lines int) {
	if !isTerminal(w) {
		return plainWidth, plainLines
	}
	width, lines = terminalSize(w)
	return width, lines - 1
}

// screen keeps a block of lines at the lower end of a terminal and redraws it in
// place. What is printed above it scrolls away as usual. It is not safe for
// concurrent use, and nothing else may write to the terminal meanwhile.
type screen struct {
	w     io.Writer
	size  func() (width, height int)
	color bool
	drawn int // lines of the block that stand on the terminal
	last  [2]int
}

// Control sequences (ECMA-48, and DEC private mode 7: wrapping).
const (
	upToColumn1 = "\x1b[%dF"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
	clearAll    = "\x1b[H\x1b[J"
	wrapOff     = "\x1b[?7l"
	wrapOn      = "\x1b[?7h"
)

// draw prints lines above the block for good and redraws the block, which frame
// makes for a width and at most a height; it never has more lines than fit, so
// that moving the cursor up always reaches its first. Wrapping is off while the
// block is drawn: a line that is wider than it looks stays one line.
func (s *screen) draw(above []string, frame func(width, height int) []line) {
	width, height := s.size()
	lines := frame(width, height-1)
	lines = lines[:max(0, min(len(lines), height-1))]
	b := &strings.Builder{}
	switch size := [2]int{width, height}; {
	case s.drawn > 0 && s.last != size:
		b.WriteString(clearAll) // the terminal has moved the old block: nobody knows where to
		s.last = size
	case s.drawn > 0:
		fmt.Fprintf(b, upToColumn1, s.drawn)
	default:
		s.last = size
	}
	if len(above) > 0 {
		b.WriteString(eraseBelow)
	}
	for _, l := range above {
		b.WriteString(l + "\n")
	}
	b.WriteString(wrapOff)
	for _, l := range lines {
		text := clipLine(l.text, width)
		if s.color && l.style != normal {
			text = "\x1b[" + string(l.style) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text + eraseLine + "\n")
	}
	b.WriteString(eraseBelow + wrapOn)
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String()) // a closed terminal: nobody is left to be told
}
