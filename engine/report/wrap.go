// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// textWidth is the width of a terminal, in columns, that texts are made for.
const textWidth = 80

// wrapLines breaks lines that are longer than a width between words; what follows is
// indented four columns deeper than the line. A word is never broken: one that is longer
// than the width, such as a digest, stands alone and sticks out.
func wrapLines(text []byte, width int) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for i, part := range wrapLine(line[len(indent):], width-len(indent), width-len(indent)-4) {
			if i > 0 {
				b.WriteString("    ")
			}
			b.WriteString(indent + part + "\n")
		}
	}
	return b.Bytes()
}

// wrapLine breaks a line into parts, the first of at most so many columns and the others of
// as many as rest says. Spaces within a part stay as they are.
func wrapLine(line string, first, rest int) (parts []string) {
	room := max(first, 20)
	for utf8.RuneCountInString(line) > room {
		at := lastSpace(line, room)
		if at < 0 {
			break
		}
		parts = append(parts, strings.TrimRight(line[:at], " "))
		line, room = strings.TrimLeft(line[at:], " "), max(rest, 20)
	}
	return append(parts, line)
}

// lastSpace is where the last space stands that leaves at most so many columns before it,
// else the first one after those; negative: there is none.
func lastSpace(line string, room int) int {
	columns, at := 0, -1
	for i, r := range line {
		switch {
		case columns > room && at > 0:
			return at
		case r == ' ' && i > 0:
			at = i
		}
		columns++
	}
	return at
}
